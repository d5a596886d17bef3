// One matrix against the original that it was made of: is it as good as our own cast in its layout, and if not, which one
// fault explains it.
//
// T = 1.5 x (relative L2 of our own cast of the original onto the same scales) + 0.004. A relative L2 of T or less is fine.
// Otherwise the readings of hypotheses.h are tried on a sample of rows, and the best ones on all rows; then other tensors
// of the file; then a least-squares factor per scale (factors.h); then tiles. What nothing explains is "none of these":
// other weights, a fine-tuned copy, two faults at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/inspect/against.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {

struct Fault {
    std::string_view id, words;
};
// Every fault that a diagnosis can name, "none of these" last.
std::span<const Fault> faults();

struct Diagnosis {
    std::string_view fault = {};  // the id, of faults(); empty: it is fine
    std::string words = "fine";   // "global scale is the reciprocal", "local: 1 of 16 scales"
    double rel_l2 = 0;  // |values - original| / |original|; Inf: a value is not finite, or the original is 0
    // The same with this one fault mended; NaN where there is nothing to mend.
    double mended = std::numeric_limits<double>::quiet_NaN();
    double limit = 0;  // T; 0.004 of values that are the original's
    bool is_fault() const { return !fault.empty(); }
    std::string sentence()
        const;  // "global scale is the reciprocal; relative L2 0.092 then", "fine; relative L2 0.0262"
};

// "1 value is NaN or Inf", "2 values of the original are NaN or Inf".
std::string not_finite_words(std::int64_t count, std::string_view of_what = "");

struct Question {
    const TensorStore& model;
    const StoredTensor& tensor;  // of the model
    const TensorStore& original;
    std::vector<RowsOf> rows;  // of the original, not empty
    std::size_t head_dim = 0;  // rows of a head, of config.json; 0: not known
    struct Other {
        std::string_view name;
        std::vector<RowsOf> rows;
    };
    // Other tensors of the model with the same shape; asked for where nothing else explains the values.
    std::function<std::vector<Other>()> others = {};
};

// In parallel; one result for any number of threads. Throws as TensorStore::read_rows(), and what AskBetween throws.
Diagnosis diagnose(const Question& question);

}  // namespace fp8lab
