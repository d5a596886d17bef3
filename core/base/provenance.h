// Every number knows where it comes from. The badge in the window and "provenance" in every JSON are this
// enum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fp8lab {

enum class Provenance { tensor_core, gpu_emulated, cpu_emulated, recorded };

constexpr std::string_view to_string(Provenance p) {  // the spelling of cli.md
    switch (p) {
        case Provenance::tensor_core:
            return "tensor-core";
        case Provenance::gpu_emulated:
            return "gpu-emulated";
        case Provenance::cpu_emulated:
            return "cpu-emulated";
        case Provenance::recorded:
            return "recorded";
    }
    return "";
}

// A measured value: what, in which unit, from how many observations, obtained how.
template <class T>
struct Measured {
    T value{};
    std::string_view unit;
    std::int64_t n = 0;
    Provenance provenance = Provenance::cpu_emulated;
};

}  // namespace fp8lab
