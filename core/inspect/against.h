// A quantised model against the original that it was made of, tensor by tensor: how far the values are from those of the
// original.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/inspect/scan.h"
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

// Finds the counterparts of a model's tensors in its original, by name and shape. Both stores must outlive it.
class Counterparts {
  public:
    Counterparts(const TensorStore& model, const TensorStore& original);

    // Which rows of the original the rows of this tensor of the model are, in their order; empty: it has none of that
    // name and shape. qkv_proj and gate_up_proj are the rows of q_proj, k_proj, v_proj and of gate_proj, up_proj, on
    // either side.
    std::vector<RowsOf> of(const StoredTensor& tensor) const;

    using Names = std::map<std::string, const StoredTensor*, std::less<>>;  // by bare name
    const Names& of_original() const { return original_; }                  // all but scales and asides

  private:
    Names model_, original_;
};

// As ErrorMetrics: dB of signal over error, the relative L2 error, the cosine. Values that are not finite count as 0. The
// worst row is the one with the lowest SQNR of those that are not all 0 in the original.
struct AgainstOriginal {
    double sqnr_db = 0, rel_l2 = 0, cosine = 0;
    std::size_t worst_row = 0;
    double worst_row_db = 0;
};

struct AgainstProgress {
    std::size_t done = 0, all = 0;  // tensors
};

struct Against {
    std::shared_ptr<const TensorStore> original;
    std::vector<std::optional<AgainstOriginal>> rows = {};  // as Scan::rows(); none: not compared
    std::vector<std::string> unmatched = {};                // judged tensors that the original does not have
    std::vector<std::string> unmatched_there = {};  // tensors of the original that have no part in this
    // counterpart_notes() of both lists.
    std::vector<std::string> notes() const;
};
// "2 tensors are not in orig.safetensors, by name and shape: a, b", and the other way round; empty: each has its
// counterpart. Not printable().
std::vector<std::string> counterpart_notes(const std::vector<std::string>& unmatched,
                                           const std::vector<std::string>& unmatched_there,
                                           const TensorStore& original);

// One tensor of a model against the rows of the original that are its counterpart; `parts`: Counterparts::of(), not empty.
AgainstOriginal against_original(const TensorStore& model, const StoredTensor& tensor,
                                 const TensorStore& original, const std::vector<RowsOf>& parts);

// Of all tensors that the scan has numbers of, or will have. `between` is called before each; what it throws ends this.
// Throws as TensorStore::read_rows().
Against against_original(const TensorStore& model, const std::vector<ScanRow>& rows,
                         std::shared_ptr<const TensorStore> original,
                         const std::function<void(const AgainstProgress&)>& between = {});

}  // namespace fp8lab
