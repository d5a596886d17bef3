#include "labs/transformer/model_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/live/looks.h"

namespace fp8lab::transformer {
namespace {

struct OperationRow {
    std::string_view id, name, short_name;
    std::string_view gemm = {};  // without its block
};
constexpr std::array<OperationRow, kOperations> kRows = {{{"norm1", "RMSNorm", "norm"},
                                                          {"qkv", "QKV", "QKV", "qkv"},
                                                          {"attention", "attention", "attn", "attention"},
                                                          {"out", "out", "out", "out"},
                                                          {"norm2", "RMSNorm", "norm"},
                                                          {"gate_up", "gate · up", "g · u", "gate_up"},
                                                          {"swiglu", "SwiGLU", "SwiG"},
                                                          {"down", "down", "down", "down"},
                                                          {"head", "LM head", "head", "head"}}};

// NaN only where both are.
double larger(double a, double b) { return std::fmax(a, b); }

void read_tensors(Operation& op, const std::string& gemm, const ModelPlan& plan, const Recipe& recipe,
                  const Health& health) {
    bool found = false;
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const OperandSpec& tensor = plan.tensors[i];
        if (plan.gemms[tensor.gemm].name != gemm) continue;
        const TensorId id{static_cast<std::uint16_t>(i)};
        if (!found) {
            const FormatInfo* format = live::cast_format(recipe, plan, id);
            op.format = format ? format->label : "FP32";
            op.role = live::tensor_role(recipe, plan, id);
            op.narrow = is_narrow(recipe, plan, id);
            found = true;
        }
        const TensorHealth now = i < health.tensors().size() ? health.tensors()[i] : TensorHealth{};
        std::string* name = tensor.tensor == TensorClass::x   ? &op.x
                            : tensor.tensor == TensorClass::w ? &op.w
                                                              : &op.dy;
        if (name->empty()) *name = tensor.name;
        const bool cast = is_narrow(recipe, plan, id);
        // Probabilities have an amax of 1 by their nature.
        if (tensor.tensor == TensorClass::x && !tensor.name.ends_with(".p"))
            op.amax = larger(op.amax, now.amax);
        if (!cast) continue;
        double& lost = tensor.tensor == TensorClass::dy ? op.dy_lost_pct : op.x_lost_pct;
        if (tensor.tensor != TensorClass::w) lost = larger(lost, now.lost_pct);
        if (tensor.tensor == TensorClass::x) op.hurt |= now.lost_pct >= 10 || now.saturated_pct > 1;
        if (tensor.gemm < health.gemms().size()) op.saturated_steps = health.gemms()[tensor.gemm];
    }
}

// Multiplications and additions of the forward pass, per token and in units that cancel in a share.
double weight_of(const ModelPlan& plan, std::size_t gemm, int context) {
    double d = 0;
    for (const ParameterSpec& p : plan.parameters) {
        if (p.name == "norm") d = static_cast<double>(p.shape[0]);
        if (p.operand && plan.tensor(*p.operand).gemm == gemm) return static_cast<double>(p.elements());
    }
    return 2 * d * context;  // the two products of attention, over all positions
}

}  // namespace

std::vector<Operation> operations(int block, const ModelPlan& plan, const Recipe& recipe,
                                  const Health& health) {
    std::vector<Operation> all;
    for (const OperationRow& row : kRows) {
        const bool wide = recipe.out == OutType::bf16;
        Operation op{.id = row.id,
                     .name = row.name,
                     .short_name = row.short_name,
                     .format = wide ? "BF16" : "FP32",
                     .role = wide ? Role::bf16 : Role::truth};
        if (!row.gemm.empty())
            read_tensors(op, row.gemm == "head" ? "head" : fmt::format("{}.{}", block, row.gemm), plan,
                         recipe, health);
        all.push_back(std::move(op));
    }
    return all;
}

double flop_share_pct(const ModelPlan& plan, const Recipe& recipe, int context) {
    double narrow = 0, all = 0;
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const std::size_t gemm = plan.tensors[i].gemm;
        if (i > 0 && plan.tensors[i - 1].gemm == gemm) continue;  // once per GEMM, by its first tensor
        const double flop = weight_of(plan, gemm, context);
        all += flop;
        if (is_narrow(recipe, plan, {static_cast<std::uint16_t>(i)})) narrow += flop;
    }
    return 100 * narrow / all;
}

LinearCount narrow_linears(const ModelPlan& plan, const Recipe& recipe) {
    LinearCount count;
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const ModelGemm& gemm = plan.gemms[plan.tensors[i].gemm];
        if (gemm.role != GemmRole::linear || plan.tensors[i].tensor != TensorClass::x) continue;
        ++count.all;
        count.narrow += is_narrow(recipe, plan, {static_cast<std::uint16_t>(i)}) ? 1 : 0;
    }
    return count;
}

}  // namespace fp8lab::transformer
