#include "core/python/torchao_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/python/cast_code.h"
#include "core/python/code_check.h"
#include "core/python/pytorch_code.h"
#include "core/python/torchao_layers.h"
#include "core/scaling/recipe_lists.h"

namespace fp8lab::python {
namespace {

bool has_blocks(const Recipe& recipe) {
    using enum Granularity;
    return recipe.granularity != tensor && recipe.granularity != row;
}

// The groups that are cast: what stays in the layer's type has no codes to compare.
std::vector<CastGroup> narrow_groups(const Recipe& recipe) {
    std::vector<CastGroup> groups = cast_groups(recipe);
    std::erase_if(groups, [](const CastGroup& group) { return width_bits(*group.cast.plan.format) > 8; });
    return groups;
}

std::string about(const Recipe& recipe, bool on_cpu) {
    std::string out =
        on_cpu
            ? "For torchao 0.18. As a program it compares the codes of torchao's own casts with FP8 Lab's, "
              "and takes a step on the CPU,\nwhere torchao emulates the products; layer(\"cuda\") is for "
              "a GPU that has the format."
            : "For torchao 0.18, whose layer needs a GPU that has the format. check() is plain PyTorch on "
              "the CPU: it compares the\ncasts that the layer stands for with FP8 Lab's codes.";
    if (recipe.out == OutType::bf16 && recipe.wgrad == OutType::fp32)
        out += "\ntorchao gives weight gradients in the layer's type, BF16.";
    return out;
}

std::string step_and_main(const Recipe& recipe, bool on_cpu) {
    return fmt::format(
        R"(def step(device="{0}"):
    model = layer(device)
    x = torch.randn({1}, device=device, dtype={2}, requires_grad=True)
    model(x).float().square().mean().backward()


if __name__ == "__main__":
    check()
    step()
    print("The codes are FP8 Lab's.")
)",
        on_cpu ? "cpu" : "cuda", on_cpu ? "96, 64" : "256, 1024", layer_dtype(recipe));
}

}  // namespace

Recipe without_types(Recipe recipe) {
    const Recipe& row = row_of(recipe).recipe;
    recipe.out = row.out, recipe.wgrad = row.wgrad;
    return recipe;
}

std::string_view layer_dtype(const Recipe& recipe) {
    return recipe.out == OutType::fp32 ? "torch.float32" : "torch.bfloat16";
}

std::string_view layer_format(const Recipe& recipe) { return recipe.out == OutType::fp32 ? "fp32" : "bf16"; }

std::string beyond_row(const Recipe& rest) {
    const std::string text = recipe_text(rest);
    return text.size() > rest.base.size() ? text.substr(rest.base.size() + 1) : std::string();
}

std::string torchao_refusal(const Recipe& recipe) {
    Recipe layer = recipe;
    layer.fast_accum = row_of(recipe).recipe.fast_accum;  // torchao has it
    if (const std::string why = pytorch_refusal(layer); !why.empty()) return why;
    if (recipe.fake) return "its layers for training cast dy too, and do so for every product";
    if (recipe.columns_from_rowwise)
        return "it casts a tensor for every product, and never the codes of another cast";
    if (narrow_groups(recipe).empty())
        return "nothing is cast to 8 bits or fewer: torch.nn.Linear is the layer";
    if (recipe.out == OutType::fp32 && recipe.wgrad == OutType::bf16)
        return "its weight gradients have the type of the layer, FP32 with out=fp32";
    return has_blocks(recipe) ? block_layer_refusal(recipe) : float8_linear_refusal(recipe);
}

std::string torchao_file(const Recipe& recipe) {
    const AoLayer parts = has_blocks(recipe) ? block_layer(recipe) : float8_linear(recipe);
    const bool on_cpu = !parts.casts.empty();
    const std::string check =
        on_cpu ? parts.casts + check_functions(narrow_groups(recipe), recipe) : casts_and_check(recipe);
    return head(recipe, "torchao", "torchao", about(recipe, on_cpu)) + imports_of(check + parts.layer) +
           "import torch\n" + parts.imports + "\n" + (parts.settings.empty() ? "" : parts.settings + "\n") +
           "\n" + check + "\n\n" + parts.layer + "\n\n" + step_and_main(recipe, on_cpu);
}

}  // namespace fp8lab::python
