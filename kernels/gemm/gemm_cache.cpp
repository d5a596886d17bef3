#include "kernels/gemm/gemm_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files/files.h"
#include "kernels/gemm/autotune.h"

namespace fp8lab::cuda {
namespace {

// How the algorithms were chosen (autotune.h); what was chosen otherwise is timed anew.
constexpr std::string_view kChosen = "back to back, in stages", kQuickly = "back to back, quickly";

std::string cache_path() {
    const char* xdg = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (xdg && *xdg) return std::string(xdg) + "/fp8lab/gemm-plans.json";
    return home && *home ? std::string(home) + "/.cache/fp8lab/gemm-plans.json" : "";
}

std::string dotted(std::size_t version) {
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string lt_version_text() {
    const std::size_t found = cublasLtGetVersion();
    constexpr std::size_t kBuilt = CUBLAS_VERSION;
    if (found == kBuilt) return dotted(found);
    return fmt::format("{} (built with {})", dotted(found), dotted(kBuilt));
}

GemmCache::GemmCache() : path_(cache_path()) {
    if (path_.empty() || !std::filesystem::exists(path_)) return;
    try {
        const std::vector<std::byte> bytes = read_bytes(path_);
        const char* text = reinterpret_cast<const char*>(bytes.data());
        algos_ = nlohmann::json::parse(text, text + bytes.size()).get<std::map<std::string, std::string>>();
    } catch (const std::exception&) {
        algos_.clear();  // the candidates are timed again, and the file written anew
    }
}

std::string GemmCache::key(const GemmSpec& spec) {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    return fmt::format("{}, cuBLASLt {}, {}: {}", properties.name, cublasLtGetVersion(),
                       quick_tuning() ? kQuickly : kChosen, to_string(spec));
}

std::optional<cublasLtMatmulAlgo_t> GemmCache::find(const GemmSpec& spec) {
    const std::lock_guard lock(mutex_);
    const auto hit = algos_.find(key(spec));
    cublasLtMatmulAlgo_t algo{};
    if (hit == algos_.end() || hit->second.size() != 2 * sizeof algo) return std::nullopt;
    std::array<unsigned char, sizeof algo> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        char* end = nullptr;
        const std::string digits = hit->second.substr(2 * i, 2);
        bytes[i] = static_cast<unsigned char>(std::strtoul(digits.c_str(), &end, 16));
        if (*end) return std::nullopt;
    }
    std::memcpy(&algo, bytes.data(), sizeof algo);
    return algo;
}

void GemmCache::put(const GemmSpec& spec, const cublasLtMatmulAlgo_t& algo) {
    const std::lock_guard lock(mutex_);
    std::array<unsigned char, sizeof algo> bytes{};
    std::memcpy(bytes.data(), &algo, sizeof algo);
    std::string hex;
    for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
    algos_[key(spec)] = hex;
    if (path_.empty()) return;
    try {
        std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
        write_file(path_, nlohmann::json(algos_).dump(1) + "\n");
    } catch (const std::exception&) {
        // An unwritable cache costs the next start the timing, nothing else.
    }
}

GemmCache& gemm_cache() {
    static GemmCache cache;
    return cache;
}

}  // namespace fp8lab::cuda
