// Named ranges for NVIDIA's profilers (NVTX); their cost without a profiler is negligible.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace fp8lab::cuda {

class Range {
  public:
    explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
    ~Range() { nvtxRangePop(); }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
};

}  // namespace fp8lab::cuda
