// Whether tests/crash/shim.cpp can be preloaded into the programs of this build.
#pragma once

namespace fp8lab::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPreloads = false;  // the sanitizer's runtime has to come first
#else
inline constexpr bool kPreloads = true;
#endif

}  // namespace fp8lab::test
