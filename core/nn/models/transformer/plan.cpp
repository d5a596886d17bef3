#include <fmt/format.h>

#include "core/base/error.h"
#include "core/nn/models/transformer/model.h"

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

ModelPlan transformer_plan(const TransformerShape& s) {
    ModelPlan plan;
    plan.blocks = static_cast<int>(s.blocks);
    plan.gated = true;
    const auto linear = [&](const std::string& name, GemmRole role, int block, std::size_t out,
                            std::size_t in) {
        return plan.add_linear({name, name + ".x", name + ".w", name + ".dy", name + ".w"}, role, block, out,
                               in);
    };
    plan.parameters.push_back({"embedding", {s.vocabulary, s.d}});
    for (int b = 1; b <= plan.blocks; ++b) {
        const std::string block = std::to_string(b) + ".";
        plan.parameters.push_back({block + "norm1", {s.d}});
        linear(block + "qkv", GemmRole::linear, b, s.d + 2 * s.key_cols(), s.d);
        const auto gemm = static_cast<std::uint16_t>(plan.gemms.size());
        plan.gemms.push_back({block + "attention", GemmRole::attention, b});
        for (const char* name : {"q", "k", "v", "p", "ds", "do"})  // backward: do, then ds
            plan.tensors.push_back(
                {block + "attention." + name, name[0] == 'd' ? TensorClass::dy : TensorClass::x, gemm});
        linear(block + "out", GemmRole::linear, b, s.d, s.d);
        plan.parameters.push_back({block + "norm2", {s.d}});
        linear(block + "gate_up", GemmRole::linear, b, 2 * s.ffn, s.d);
        linear(block + "down", GemmRole::linear, b, s.d, s.ffn);
    }
    plan.parameters.push_back({"norm", {s.d}});
    const TensorId head = linear("head", GemmRole::head, 0, s.vocabulary, s.d);
    if (s.tied) {
        plan.parameters.pop_back();
        plan.parameters.front().operand = TensorId{static_cast<std::uint16_t>(head.index + 1)};
    }
    return plan;
}

}  // namespace fp8lab
