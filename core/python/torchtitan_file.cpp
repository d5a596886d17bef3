#include "core/python/torchtitan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/python/pytorch_code.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab::python {
namespace {

// torchtitan 0.2.2 reads flags; its main branch, here commit b5bcd76c of 2026-08-21, has dropped them for converters.
// tests/unit/python/torchtitan_options.json lists what both take. Empty: there is none.
struct Titan {
    std::string_view recipe;     // in our names
    std::string_view flags;      // separated by spaces
    std::string_view converter;  // "Float8LinearConverter"
    std::string_view arguments;  // of its Config
};
// Without the output layer, which our recipes do not cast either (scope=linears).
constexpr std::array kTitans = {
    Titan{"bf16", "--training.mixed_precision_param=bfloat16", {}, {}},
    Titan{"fp32", "--training.mixed_precision_param=float32", {}, {}},
    Titan{"current",
          "--model.converters=quantize.linear.float8 --quantize.linear.float8.recipe_name=tensorwise "
          "--quantize.linear.float8.filter_fqns=output",
          {},
          {}},
    Titan{"rowwise:bwd=e4m3:pow2=1",
          "--model.converters=quantize.linear.float8 --quantize.linear.float8.recipe_name=rowwise "
          "--quantize.linear.float8.filter_fqns=output",
          "Float8LinearConverter", "recipe_name=\"rowwise\", filter_fqns=[\"lm_head\"]"},
    Titan{"mxfp8",
          "--model.converters=quantize.linear.mx --quantize.linear.mx.recipe_name=mxfp8_cublas_rceil "
          "--quantize.linear.mx.filter_fqns=output",
          "MXFP8LinearConverter", "fqns=[\"layers\"]"},
    Titan{"mxfp8:mxrule=floor",
          "--model.converters=quantize.linear.mx --quantize.linear.mx.recipe_name=mxfp8_cublas "
          "--quantize.linear.mx.filter_fqns=output",
          {},
          {}},
    Titan{"nvfp4-te:rht=bf16", {}, "NVFP4LinearConverter", "fqns=[\"layers\"]"},
};

// Weight gradients have the type of the layer there, as in BF16 training; the rest is what it says.
const Titan* titan_of(Recipe recipe) {
    recipe.wgrad = row_of(recipe).recipe.wgrad;
    const auto found = std::ranges::find(kTitans, recipe_text(recipe), &Titan::recipe);
    return found == kTitans.end() ? nullptr : &*found;
}

std::string flag_list(std::string_view flags) {
    std::string out =
        "# For: torchrun ... -m torchtitan.train --job.config_file CONFIG.toml, of torchtitan 0.2.2, with "
        "torchao 0.16.\nFLAGS "
        "= [\n";
    while (!flags.empty()) {
        const auto space = std::min(flags.find(' '), flags.size());
        out += fmt::format("    \"{}\",\n", flags.substr(0, space));
        flags.remove_prefix(std::min(space + 1, flags.size()));
    }
    return out + "]\n";
}

std::string converter_function(const Titan& titan) {
    return fmt::format(R"(def converters(model_compile_enabled=True):
    """For model_registry(..., converters=converters()) of torchtitan's main branch (commit b5bcd76c, 2026-08-21)."""
    from torchtitan.components.quantization import {0}
    return [{0}.Config({1}, model_compile_enabled=model_compile_enabled)]
)",
                       titan.converter, titan.arguments);
}

}  // namespace

std::string torchtitan_refusal(const Recipe& recipe) {
    if (titan_of(recipe)) return {};
    if (recipe.scale == ScaleSource::delayed) return "it has no delayed scaling";
    std::string names;
    for (const Titan& titan : kTitans) names += (names.empty() ? "" : ", ") + std::string(titan.recipe);
    return "of our recipes it has " + names;
}

std::string torchtitan_file(const Recipe& recipe) {
    const Titan& titan = *titan_of(recipe);
    const std::string check = casts_and_check(recipe);
    std::string out = head(recipe, "torchtitan", "torchtitan",
                           "torchtitan needs GPUs that have the format, and torchao. check() is plain "
                           "PyTorch on the CPU: it "
                           "compares the casts\nthat the flags stand for with FP8 Lab's codes.") +
                      imports_of(check) + "import torch\n\n";
    if (!titan.flags.empty()) out += flag_list(titan.flags) + "\n\n";
    if (!titan.converter.empty())
        out += (titan.flags.empty() ? "\n" : "") + converter_function(titan) + "\n\n";
    return out + check + "\n\nif __name__ == \"__main__\":\n    check()\n" +
           (titan.flags.empty() ? "    print(\"The codes are FP8 Lab's.\")\n" : "    print(*FLAGS)\n");
}

}  // namespace fp8lab::python
