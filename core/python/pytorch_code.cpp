#include "core/python/pytorch_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/python/cast_code.h"
#include "core/python/code_check.h"
#include "core/python/element_code.h"
#include "core/scaling/recipe_keys.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab::python {
namespace {

// Options that a linear layer on a CPU does not have.
struct Refused {
    std::string_view key, why;
};
constexpr std::string_view kOptimizer = "it is of the optimizer, and the file has a layer",
                           kModel = "it is of a whole model, and the file has one layer";
constexpr std::array kRefused = {
    Refused{"round", "PyTorch draws other random numbers, so that no codes could be compared"},
    Refused{"round_update", kOptimizer},
    Refused{"master", kOptimizer},
    Refused{"m", kOptimizer},
    Refused{"v", kOptimizer},
    Refused{"moment_block", kOptimizer},
    Refused{"round_m", kOptimizer},
    Refused{"round_v", kOptimizer},
    Refused{"loss_scale", "torch.amp.GradScaler does it, around a whole training"},
    Refused{"growth_interval", "torch.amp.GradScaler does it, around a whole training"},
    Refused{"scope", kModel},
    Refused{"act", kModel},
    Refused{"router", kModel},
    Refused{"wide", kModel},
    Refused{"acc", "the sums of PyTorch's products are FP32"},
    Refused{"fast_accum", "the sums of PyTorch's products on a CPU are FP32"},
};

// One cast of each tensor serves both products that read it.
bool casts_once(const Recipe& recipe) {
    return recipe.fake || (recipe.granularity == Granularity::tensor && !has_inputs(recipe));
}

std::vector<CastGroup> groups_in_use(const Recipe& recipe) {
    std::vector<CastGroup> groups = cast_groups(recipe);
    if (recipe.fake)
        std::erase_if(groups, [](const CastGroup& group) {
            return std::ranges::none_of(group.operands,
                                        [](const Operand& one) { return one.gemm == Gemm::fprop; });
        });
    for (CastGroup& group : groups)
        if (recipe.fake)
            group.name = "quantize_" + std::string(groups.size() == 1          ? "x_w"
                                                   : &group == &groups.front() ? "x"
                                                                               : "w");
    return groups;
}

std::string element_functions(const std::vector<CastGroup>& groups) {
    std::vector<std::string> names;
    std::string out;
    const auto add = [&](const CastPlan& plan) {
        const std::string name = element_name(plan), text = element_function(plan);
        if (text.empty() || std::ranges::find(names, name) != names.end()) return;
        names.push_back(name);
        out += text + "\n\n";
    };
    for (const CastGroup& group : groups) {
        if (group.cast.plan.granularity == Granularity::block16 && group.cast.plan.scaled)
            add({.format = &find_format("e4m3")});  // of the scales
        add(group.cast.plan);
    }
    return out;
}

std::string cast_functions(const std::vector<CastGroup>& groups, const Recipe& recipe) {
    std::string out;
    if (std::ranges::any_of(groups, &CastGroup::is_delayed)) out += delayed_class(recipe) + "\n\n";
    for (const CastGroup& group : groups)
        if (!group.is_delayed()) out += quantize_function(group, recipe) + "\n\n";
    return out;
}

std::string casts(const std::vector<CastGroup>& groups, const Recipe& recipe, const std::string& callers) {
    const std::string functions = cast_functions(groups, recipe);
    return element_functions(groups) + helpers_for(functions + callers, recipe) + functions;
}

// "value(*quantize_w_dgrad(w.T))".
std::string cast_of(const std::vector<CastGroup>& groups, Operand operand, std::string_view what) {
    const CastGroup& group = group_of(groups, operand);
    if (group.cast.plan.format->name == "fp32") return std::string(what);
    return fmt::format("value(*{}{}({}))", group.is_delayed() ? "layer." : "", group.name, what);
}

std::string rounded(const std::string& product, bool to_bf16) {
    return to_bf16 ? fmt::format("({}).bfloat16().float()", product) : product;
}

std::string products(const std::vector<CastGroup>& groups, const Recipe& recipe) {
    using enum TensorClass;
    const bool out = recipe.out == OutType::bf16, wgrad = recipe.wgrad == OutType::bf16,
               once = casts_once(recipe);
    const bool from_codes = recipe.columns_from_rowwise;
    const std::string x_q = cast_of(groups, {x, Gemm::fprop}, "x"),
                      w_q = cast_of(groups, {w, Gemm::fprop}, "w");
    std::string text =
        "class Products(torch.autograd.Function):\n"
        "    \"\"\"y = x w^T and its gradients, dx = dy w and dw = dy^T x, of operands that were cast. A "
        "product sums over the\n"
        "    last dimension of what is cast for it.\"\"\"\n\n"
        "    @staticmethod\n    def forward(ctx, x, w, layer):\n";
    const bool saves_cast = once || from_codes;
    if (!saves_cast) text += "        ctx.save_for_backward(x, w)\n";
    text += fmt::format("        x, w = {}, {}\n", x_q, w_q);
    text += saves_cast ? "        ctx.save_for_backward(x, w)\n" : "";
    text += fmt::format("        ctx.layer = layer\n        return {}\n\n", rounded("x @ w.T", out));
    text +=
        "    @staticmethod\n    def backward(ctx, dy):\n        (x, w), layer = ctx.saved_tensors, "
        "ctx.layer\n";
    if (once) {
        if (!recipe.fake) text += fmt::format("        dy = {}\n", cast_of(groups, {dy, Gemm::dgrad}, "dy"));
        return text + fmt::format("        return {}, {}, None\n", rounded("dy @ w", out),
                                  rounded("dy.T @ x", wgrad));
    }
    text += fmt::format("        dy_q = {}\n", cast_of(groups, {dy, Gemm::dgrad}, "dy"));
    text += fmt::format("        dx = dy_q @ {}.T\n", cast_of(groups, {w, Gemm::dgrad}, "w.T"));
    text += fmt::format("        dw = {} @ {}.T\n",
                        cast_of(groups, {dy, Gemm::wgrad}, from_codes ? "dy_q.T" : "dy.T"),
                        cast_of(groups, {x, Gemm::wgrad}, "x.T"));
    return text + fmt::format("        return {}, {}, None\n", out ? "dx.bfloat16().float()" : "dx",
                              wgrad ? "dw.bfloat16().float()" : "dw");
}

std::string layer_class(const std::vector<CastGroup>& groups) {
    std::string text =
        "class Linear(torch.nn.Linear):\n    \"\"\"In place of torch.nn.Linear, in float32.\"\"\"\n\n";
    std::string objects;
    for (const CastGroup& group : groups)
        if (group.is_delayed())
            objects += fmt::format("        self.{} = {}\n", group.name, delayed_call(group));
    if (!objects.empty())
        text +=
            "    def __init__(self, *arguments, **named):\n        super().__init__(*arguments, **named)\n" +
            objects + "\n";
    return text +
           "    def forward(self, x):\n"
           "        y = Products.apply(x.flatten(0, -2), self.weight, self).unflatten(0, x.shape[:-1])\n"
           "        return y if self.bias is None else y + self.bias\n";
}

constexpr std::string_view kMain = R"(if __name__ == "__main__":
    check()
    layer, x = Linear(64, 32), torch.randn(48, 64, requires_grad=True)
    layer(x).square().mean().backward()
    print("The codes are FP8 Lab's. Gradients:", tuple(layer.weight.grad.shape), tuple(x.grad.shape))
)";

}  // namespace

std::string head(const Recipe& recipe, std::string_view target, std::string_view label,
                 std::string_view about) {
    const std::string text = recipe_text(recipe);
    return fmt::format("\"\"\"{} in {}: {}.\n\nWritten by: fp8lab code {} --for {}\n{}\n\"\"\"\n", text,
                       label, recipe.summary, text, target, about);
}

std::string imports_of(const std::string& text) {
    std::string out;
    for (const std::string_view module : {"dataclasses", "math", "os", "struct", "zlib"})
        if (text.find(std::string(module) + ".") != text.npos) out += fmt::format("import {}\n", module);
    return out.empty() ? out : out + "\n";
}

std::string casts_and_check(const Recipe& recipe) {
    const std::vector<CastGroup> groups = groups_in_use(recipe);
    const std::string check = check_functions(groups, recipe);
    return casts(groups, recipe, check) + check;
}

std::string pytorch_code(const Recipe& recipe) {
    const std::vector<CastGroup> groups = groups_in_use(recipe);
    const std::string layer = products(groups, recipe) + "\n\n" + layer_class(groups) + "\n\n",
                      check = check_functions(groups, recipe);
    const std::string body = casts(groups, recipe, layer) + layer + check;
    return head(recipe, "pytorch", "plain PyTorch",
                "Operands are cast and come back as float32, so that it runs on any CPU; products add up in "
                "FP32.\n"
                "As a program it compares its codes with FP8 Lab's.") +
           imports_of(body) + "import torch\n\n\n" + body + "\n\n" + std::string(kMain);
}

std::string pytorch_refusal(const Recipe& recipe) {
    const Recipe& row = row_of(recipe).recipe;
    for (const RecipeKey& key : recipe_keys()) {
        if (!key.applies(row) || key.get(recipe) == key.get(row)) continue;
        const auto refused = std::ranges::find(kRefused, key.name, &Refused::key);
        if (refused != kRefused.end())
            return fmt::format("{}={}: {}", key.name, key.get(recipe), refused->why);
    }
    const std::vector<CastGroup> groups = cast_groups(recipe);
    if (has_inputs(recipe) && std::ranges::any_of(groups, &CastGroup::is_delayed))
        return "operands of one product: with delayed scaling each of them would have a history of its own";
    if (!groups.empty() && groups.front().cast.plan.rounding == Rounding::stochastic)
        return "operands of fprop are rounded by chance, so that no codes could be compared";
    return {};
}

}  // namespace fp8lab::python
