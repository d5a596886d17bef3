#include "core/python/te_file.h"

#include <fmt/format.h>

#include <regex>

#include "core/python/pytorch_code.h"

namespace fp8lab::python {
namespace {

constexpr std::string_view kCannot = "# Transformer Engine cannot express ";

// The call, and what its comment asks for beside it.
struct Call {
    std::string call, note;
};
Call call_of(const Recipe& recipe) {
    const std::string text = transformer_engine_code(recipe);
    const auto hash = text.find("  # ");
    if (hash == text.npos || text.starts_with('#')) return {text, {}};
    return {text.substr(0, hash), text.substr(hash + 2)};
}

const std::regex& variable() {
    static const std::regex kVariable(R"(# with (NVTE_\w+)=(\w+) set before the import\s*)");
    return kVariable;
}

// "# with NVTE_NAME=1 set before the import": done by the program.
std::string environment(const std::string& note) {
    std::smatch found;
    if (!std::regex_search(note, found, variable())) return {};
    return fmt::format("os.environ[\"{}\"] = \"{}\"  # before the import\n\n", found[1].str(),
                       found[2].str());
}

std::string comment_lines(const std::string& note) {
    static const std::regex kNext("  # ");
    const std::string rest = std::regex_replace(note, variable(), "");
    return rest.empty() ? rest : std::regex_replace(rest, kNext, "\n# ") + "\n";
}

std::string layer(const std::string& call, const Recipe& recipe) {
    const bool fp32 = recipe.fwd->name == "fp32";
    const std::string_view dtype = fp32 ? "torch.float32" : "torch.bfloat16";
    const bool casts = !call.starts_with('#');
    std::string out = fmt::format(
        "    layer = te.Linear(in_features=1024, out_features=1024, params_dtype={0})\n"
        "    x = torch.randn(256, 1024, device=\"cuda\", dtype={0}, requires_grad=True)\n",
        dtype);
    out += casts ? "    with te.autocast(enabled=True, recipe=recipe):\n        y = layer(x)\n"
                 : "    y = layer(x)\n";
    return out + "    y.float().square().mean().backward()\n";
}

}  // namespace

std::string te_refusal(const Recipe& recipe) {
    if (recipe.te.empty()) return "it has no such recipe";
    const std::string text = transformer_engine_code(recipe);
    if (text.starts_with("# CustomRecipe"))
        return "operands of one product: Transformer Engine takes a CustomRecipe, with a quantizer of your "
               "own for each";
    if (text.starts_with("# Transformer Engine has no recipe like"))
        return "it has no recipe with these formats";
    if (const auto at = text.find(kCannot); at != text.npos)
        return "it has no " + text.substr(at + kCannot.size());
    return {};
}

std::string te_file(const Recipe& recipe) {
    const auto [call, note] = call_of(recipe);
    const bool casts = !call.starts_with('#');
    std::string out = head(recipe, "te", "Transformer Engine",
                           "Transformer Engine needs a GPU that has the format. check() is plain PyTorch on "
                           "the CPU: it compares the\n"
                           "casts that the recipe stands for with FP8 Lab's codes.");
    const std::string check = casts_and_check(recipe);
    const std::string before = environment(note);
    out += imports_of(before + check) + before + "import torch\nimport transformer_engine.pytorch as te\n";
    if (casts) {
        const std::string name = call.substr(0, call.find('('));
        const bool formats = call.find("Format.") != call.npos;
        out += fmt::format("from transformer_engine.common.recipe import {}{}\n", name,
                           formats ? ", Format" : "");
    }
    out += "\n" + comment_lines(note) + (casts ? "recipe = " + call : call) + "\n\n\n";
    return out + check +
           "\n\ndef step():\n    \"\"\"A layer of 1024 x 1024, forwards and backwards.\"\"\"\n" +
           layer(call, recipe) + "\n\nif __name__ == \"__main__\":\n    check()\n    step()\n";
}

}  // namespace fp8lab::python
