// Whether tests/crash/shim.cpp can be preloaded into the programs of this build.
#pragma once

#include <filesystem>
#include <string>

namespace fp8lab::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPreloads = false;  // the sanitizer's runtime has to come first
#else
inline constexpr bool kPreloads = true;
#endif

// The setting that preloads it, by `link`, which is made: LD_PRELOAD is split at spaces and colons.
inline std::string preloaded(const std::string& link) {
    if (!std::filesystem::is_symlink(link)) std::filesystem::create_symlink(FP8LAB_SHIM, link);
    return "LD_PRELOAD=" + link;
}

}  // namespace fp8lab::test
