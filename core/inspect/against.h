// A quantised model against the original that it was made of, tensor by tensor: how far the values are from those of the
// original.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/inspect/counterparts.h"
#include "core/inspect/scan.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {

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
    std::vector<std::string> unmatched = {};                // judged tensors that have no counterpart
    std::vector<std::string> unmatched_there = {};          // tensors of the original that none is called as
    // "2 tensors of the model have no counterpart in the original, by name and shape: a, b", and the other way round;
    // empty: each has one. Not printable().
    std::vector<std::string> notes() const;
};

// One tensor of a model against the rows of the original that are its counterpart; `parts`: Counterparts::of(), not empty.
AgainstOriginal against_original(const TensorStore& model, const StoredTensor& tensor,
                                 const TensorStore& original, const std::vector<RowsOf>& parts);

// Of all tensors that the scan has numbers of, or will have. `between` is called before each; what it throws ends this.
// Throws as TensorStore::read_rows().
Against against_original(const TensorStore& model, const std::vector<ScanRow>& rows,
                         std::shared_ptr<const TensorStore> original,
                         const std::function<void(const AgainstProgress&)>& between = {});

}  // namespace fp8lab
