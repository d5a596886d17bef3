#include "app/cli/validate/machine.h"

#include <nlohmann/json.hpp>

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/formats/codec.h"
#include "core/threads/parallel.h"

namespace fp8lab::cli {

nlohmann::json cpu_facts() {
    nlohmann::json vectors = nlohmann::json::array();
    for (const char* target : vector_targets()) vectors.push_back(target);
    return {{"name", cpu_backend()->device().name}, {"threads", threads()}, {"vector_targets", vectors}};
}

nlohmann::json gpu_facts() {
    auto cuda = cuda_backend();
    if (!cuda) return {{"usable", false}, {"reason", cuda.reason()}};
    const DeviceInfo device = cuda.value()->device();
    nlohmann::json found = {{"usable", true},
                            {"name", device.name},
                            {"facts", nlohmann::json::object()},
                            {"modes", nlohmann::json::array()}};
    for (const auto& [name, fact] : device.facts) found["facts"][name] = fact;
    try {
        for (const Capability& mode : cuda.value()->capabilities())
            found["modes"].push_back(
                {{"name", mode.name}, {"available", mode.available}, {"refusal", mode.refusal}});
    } catch (const Error& error) {  // no memory left on the card, say: the rest of the report still helps
        found["modes_failed"] = error.what();
    }
    return found;
}

}  // namespace fp8lab::cli
