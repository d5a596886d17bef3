// Any bytes as a model's config.json: either refused with an input error, or a model that L10 takes, with a finite number of
// parameters, of which a token uses no more than there are; its compact form is the same model.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "labs/memory/model.h"
#include "labs/set_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const plan::ModelSize model = plan::read_model_size(text, "config.json");
        const std::string compact = plan::compact_config(text, "config.json");
        if (!(plan::read_model_size(compact, "config") == model)) std::abort();
        if (!std::isfinite(model.parameters) || model.active > model.parameters || model.active <= 0)
            std::abort();
        memory::MemoryLab lab;
        set_fields(lab, std::vector<std::string>{"model=own", "config=" + compact});
        if (lab->outcome->parameters != model.parameters) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
