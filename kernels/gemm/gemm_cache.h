// The fastest cuBLASLt algorithms, in memory and in a file for later processes. An algorithm is 64 opaque
// bytes that are valid for one library version on one GPU, so both are part of the key.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/gemm/gemm.h"

namespace fp8lab::cuda {

class GemmCache {
  public:
    // ~/.cache/fp8lab/gemm-plans.json, or below XDG_CACHE_HOME. A file that cannot be read is
    // ignored.
    GemmCache();
    std::optional<cublasLtMatmulAlgo_t> find(const GemmSpec& spec);
    void put(const GemmSpec& spec, const cublasLtMatmulAlgo_t& algo);

  private:
    static std::string key(const GemmSpec& spec);
    std::mutex mutex_;
    std::string path_;
    std::map<std::string, std::string> algos_;  // key -> hexadecimal
};
GemmCache& gemm_cache();

std::string lt_version_text();  // "13.1.0"; says so when the library differs from the one this was built with

}  // namespace fp8lab::cuda
