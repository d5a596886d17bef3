// How a number was obtained. The badge in the window and "provenance" in every JSON are this enum.
#pragma once

#include <string>
#include <string_view>

namespace fp8lab {

enum class Provenance { tensor_core, gpu_emulated, cpu_emulated, recorded };

constexpr std::string_view to_string(Provenance p) {  // as in JSON, see cli.md
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

}  // namespace fp8lab
