// Any bytes as a model's config.json: either refused with an input error, or fields that L10 takes, with a finite
// number of parameters.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "labs/memory/model.h"
#include "labs/memory/model_config.h"
#include "labs/set_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    try {
        memory::MemoryLab lab;
        const auto fields =
            memory::fields_of_config({reinterpret_cast<const char*>(data), size}, "config.json");
        set_fields(lab, fields);
        if (!std::isfinite(lab->outcome->parameters) || lab->outcome->parameters <= 0) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
