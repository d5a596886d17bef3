// Which tensors of an original the tensors of a model were made of, by name and shape.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensors/tensor_store.h"

namespace fp8lab {

// The name without what formats and exporters add: "model." and "language_model." at its beginning, and what Layout::codes
// adds to "weight" at its end. Tensors with one bare name are the same parameter.
std::string bare_name(std::string_view name);

// Rows of a tensor of the original.
struct RowsOf {
    const StoredTensor* tensor = nullptr;
    std::size_t first = 0, count = 0;
};

struct Counterpart {
    // Which rows of the original the rows of the tensor are, in their order; empty: `why`.
    std::vector<RowsOf> rows = {};
    // Tensors of the original that have its name, are parts of it, or hold it, whatever their shapes are.
    std::vector<const StoredTensor*> named = {};
    std::string why = {};      // "not in the original", "its shape is (256, 512), in the original (256, 256)"
    bool other_order = false;  // `why`: the original holds the same values in an order that is not compared
};

// Finds the counterparts of a model's tensors in its original. Both stores must outlive it.
class Counterparts {
  public:
    Counterparts(const TensorStore& model, const TensorStore& original);

    // qkv_proj and gate_up_proj are the rows of q_proj, k_proj, v_proj and of gate_proj, up_proj, on either side, also in
    // stacks of experts; a stack "experts.down_proj" of shape (E, N, K) is the tensors "experts.0.down_proj.weight", ...,
    // on either side, with or without ".weight".
    Counterpart find(const StoredTensor& tensor) const;
    std::vector<RowsOf> of(const StoredTensor& tensor) const { return find(tensor).rows; }

    using Names = std::map<std::string, const StoredTensor*, std::less<>>;  // by bare name
    const Names& of_original() const { return original_; }                  // all but scales and asides

  private:
    Names model_, original_;
};

}  // namespace fp8lab
