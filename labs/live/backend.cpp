#include "labs/live/backend.h"

#include "core/base/error.h"

namespace fp8lab::live {

std::string_view backend_of(const Backends& backends, std::string_view setting) {
    if (setting != "auto") return setting == "cuda" ? "cuda" : "cpu";
    return backends.gpu_reason().empty() ? "cuda" : "cpu";
}

ChosenForTraining get_backend(const Backends& backends, std::string_view setting, std::string_view name) {
    try {
        return {backends.get(name), name};
    } catch (const Error&) {
        if (setting != "auto") throw;
        return {backends.get("cpu"), "cpu"};
    }
}

}  // namespace fp8lab::live
