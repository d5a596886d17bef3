#include <fmt/format.h>

#include "core/base/error.h"
#include "core/nn/models/decoder/shape.h"

namespace fp8lab {

TransformerShape transformer_shape(const TrainSpec& spec) {
    const auto size = [&](const char* name) { return static_cast<std::size_t>(spec.sizes.at(name)); };
    const TransformerShape s{size("d"),
                             size("blocks"),
                             size("heads"),
                             size("kv-heads") == 0 ? size("heads") : size("kv-heads"),
                             size("ffn"),
                             size("context"),
                             static_cast<std::size_t>(spec.vocabulary),
                             size("tie") == 1};
    if (s.d % s.heads != 0)
        throw usage_error("--heads", fmt::format("{} does not divide --d {}", s.heads, s.d));
    if (s.head_size() % 2 != 0)
        throw usage_error("--heads", fmt::format("a head of {} / {} = {} is odd; RoPE turns pairs", s.d,
                                                 s.heads, s.head_size()));
    if (s.heads % s.kv_heads != 0)
        throw usage_error("--kv-heads", fmt::format("{} does not divide --heads {}", s.kv_heads, s.heads));
    return s;
}

std::array<ModelOption, 7> decoder_options(int ffn) {
    return {ModelOption{"d", "width of the residual stream", 64, 2, 16384},
            ModelOption{"blocks", "transformer blocks", 2, 1, 96},
            ModelOption{"heads", "heads of attention; divides d", 4, 1, 256},
            ModelOption{"kv-heads", "heads of K and V, a divisor of heads; 0: as many as heads", 0, 0, 256},
            ModelOption{"ffn", "width of the feed-forward part", ffn, 1, 65536},
            ModelOption{"context", "tokens of a sequence", 64, 8, 4096},
            ModelOption{"tie", "1: the head reads the embedding; 0: it has weights of its own", 0, 0, 1}};
}

void plan_linear(ModelPlan& plan, GemmRole role, int block, const std::string& name, std::size_t out,
                 std::size_t in) {
    const std::string full = fmt::format("{}.{}", block, name);
    plan.add_linear({full, full + ".x", full + ".w", full + ".dy", full + ".w"}, role, block, out, in);
}

ModelPlan decoder_plan(const TransformerShape& s, const PlanFeedForward& feed_forward) {
    ModelPlan plan;
    plan.blocks = static_cast<int>(s.blocks);
    plan.gated = true;
    plan.parameters.push_back({"embedding", {s.vocabulary, s.d}});
    for (int b = 1; b <= plan.blocks; ++b) {
        const std::string block = std::to_string(b) + ".";
        plan.parameters.push_back({block + "norm1", {s.d}});
        plan_linear(plan, GemmRole::linear, b, "qkv", s.d + 2 * s.key_cols(), s.d);
        const auto gemm = static_cast<std::uint16_t>(plan.gemms.size());
        plan.gemms.push_back({block + "attention", GemmRole::attention, b});
        for (const char* name : {"q", "k", "v", "p", "ds", "do"})  // backward: do, then ds
            plan.tensors.push_back(
                {block + "attention." + name, name[0] == 'd' ? TensorClass::dy : TensorClass::x, gemm});
        plan_linear(plan, GemmRole::linear, b, "out", s.d, s.d);
        plan.parameters.push_back({block + "norm2", {s.d}});
        feed_forward(plan, b);
    }
    plan.parameters.push_back({"norm", {s.d}});
    const TensorId head = plan.add_linear({"head", "head.x", "head.w", "head.dy", "head.w"}, GemmRole::head,
                                          0, s.vocabulary, s.d);
    if (s.tied) {
        plan.parameters.pop_back();
        plan.parameters.front().operand = TensorId{static_cast<std::uint16_t>(head.index + 1)};
    }
    return plan;
}

}  // namespace fp8lab
