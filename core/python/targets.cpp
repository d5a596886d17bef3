#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/python/pytorch_code.h"
#include "core/python/recipe_code.h"
#include "core/python/te_file.h"
#include "core/python/torchao_file.h"
#include "core/python/torchtitan_file.h"

namespace fp8lab {

std::span<const CodeTarget> code_targets() {
    static constexpr std::array kTargets = {
        CodeTarget{"pytorch", "plain PyTorch", python::pytorch_code, python::pytorch_refusal},
        CodeTarget{"te", "Transformer Engine", python::te_file, python::te_refusal},
        CodeTarget{"torchao", "torchao", python::torchao_file, python::torchao_refusal},
        CodeTarget{"torchtitan", "torchtitan", python::torchtitan_file, python::torchtitan_refusal},
    };
    return kTargets;
}

const CodeTarget& find_code_target(std::string_view name, std::string_view where) {
    const auto found = std::ranges::find(code_targets(), name, &CodeTarget::name);
    if (found == code_targets().end())
        throw unknown_name(std::string(where), "library", name, code_targets(),
                           [](const CodeTarget& target) { return target.name; });
    return *found;
}

std::string recipe_code(const Recipe& recipe, const CodeTarget& target, std::string_view where) {
    const std::string why = target.refusal(recipe);
    if (!why.empty())
        throw usage_error(std::string(where),
                          fmt::format("{} cannot express {}: {}", target.label, recipe_text(recipe), why));
    return target.code(recipe);
}

}  // namespace fp8lab
