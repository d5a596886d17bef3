// What a model consists of, as data and without memory: its GEMMs, the tensors that they read, and its parameters.
// Trainers, records, CSV columns, checkpoints and figures follow from it; the model itself is core/nn/model.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/quantizer.h"

namespace fp8lab {

// What a recipe's options name: the linear layers, the layer that gives the logits, the products inside attention, and what
// chooses experts.
enum class GemmRole { linear, head, attention, router };

struct ModelGemm {
    std::string name;  // "1.qkv"
    GemmRole role = GemmRole::linear;
    int block = 0;  // 1-based, of ModelPlan::blocks; 0: outside the blocks
};

// A tensor that a GEMM reads: an index into ModelPlan::tensors.
struct TensorId {
    std::uint16_t index = 0;
    bool operator==(const TensorId&) const = default;
};
struct OperandSpec {
    std::string name;  // "dy2", "1.down.x"
    TensorClass tensor = TensorClass::x;
    std::uint16_t gemm = 0;  // index into ModelPlan::gemms
};
struct ParameterSpec {
    std::string name;                      // in checkpoints
    std::vector<std::size_t> shape;        // row-major
    std::optional<TensorId> operand = {};  // weights: the tensor that a GEMM reads
    bool optimised = true;                 // false: the model itself changes it, in after_update()
    std::size_t elements() const;
};

struct ModelPlan {
    int blocks = 0;      // what `wide` counts
    bool gated = false;  // has a SwiGLU, which the option `act` is about
    std::vector<ModelGemm> gemms;
    // The order is that of the forward pass, tensors of one GEMM together. The backward pass computes those of class
    // dy in the reverse order.
    std::vector<OperandSpec> tensors;
    std::vector<ParameterSpec> parameters;

    const OperandSpec& tensor(TensorId id) const { return tensors[id.index]; }
    const ModelGemm& gemm(TensorId id) const { return gemms[tensor(id).gemm]; }
    std::optional<TensorId> find(std::string_view name) const;
    // The matrices of linear layers. A tied embedding, whose name is not that of the head's tensor, is looked up too.
    bool only_gemms_read(const ParameterSpec& p) const {
        return p.operand && tensor(*p.operand).name == p.name;
    }
    // The recipe of the GEMM that reads the tensor: router_recipe() of a router, wide_recipe() where `wide` names it or its
    // block, or where `scope` leaves it out. The products inside attention have one scale per tensor, as in Transformer Engine:
    // recipes with rows or blocks cast them to E4M3 and E5M2 with current scales.
    Recipe recipe_of(const Recipe& recipe, TensorId id) const;
    // Throws usage_error: the recipe names a layer or a GEMM that the model does not have, or has an option that
    // means nothing in it (scope, act, router), or casts attention with 1x128 blocks, which Transformer Engine refuses.
    void check(const Recipe& recipe, std::string_view where = "--recipe") const;
    // What selects a tensor's random stream: the 1-based number of its GEMM, and its 0-based place in that GEMM.
    int ordinal(TensorId id) const { return tensor(id).gemm + 1; }
    unsigned place(TensorId id) const;

    // Three tensors x, w, dy and the weight of a linear layer w (out, in). Returns the index of x; w and dy follow.
    // `names`: of the tensors and of the parameter.
    struct LinearNames {
        std::string gemm, x, w, dy, parameter;
    };
    TensorId add_linear(const LinearNames& names, GemmRole role, int block, std::size_t out, std::size_t in);
};

}  // namespace fp8lab
