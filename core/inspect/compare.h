// The same model at two times, tensor by tensor.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/inspect/scan.h"

namespace fp8lab {

// Of several tensors together: of a kind, its largest amax and its smallest value above 0.
struct ScanRange {
    float amax = 0, least = 0;
    void add(const TensorSummary& summary);
};

struct KindChange {
    std::string kind;
    TensorUse use = TensorUse::w;
    ScanRange before, after;
    double amax_log2() const;  // log2(after / before); NaN where one of them is 0
};

struct Comparison {
    std::vector<KindChange> kinds;                      // in both files, by name
    std::vector<std::string> added, missing, reshaped;  // names of tensors
    int grown() const;                                  // kinds whose amax grew by more than a binade
    int same() const { return static_cast<int>(kinds.size()); }
};

// A tensor that has another shape in the second file counts as reshaped only. Of the first pass of both scans.
Comparison compare(const TensorStore& before, std::span<const ScanRow> rows_before, const TensorStore& after,
                   std::span<const ScanRow> rows_after);

}  // namespace fp8lab
