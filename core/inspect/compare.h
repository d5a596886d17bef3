// The same model at two times, tensor by tensor.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/inspect/scan.h"

namespace fp8lab {

// The values of several tensors together, as of a kind: its largest amax and its smallest value above 0.
struct ScanRange {
    float amax = 0, least = 0;
    void add(const TensorSummary& summary);
};

struct KindChange {
    std::string kind;
    TensorUse use = TensorUse::w;
    ScanRange before, after;
    double amax_log2() const;  // log2(after / before); NaN where one of them is 0
    double least_log2() const;
};

struct Comparison {
    std::vector<KindChange> kinds;                      // in both files, by name
    std::vector<std::string> added, missing, reshaped;  // names of tensors
    int grown() const;                                  // kinds whose amax grew by more than a binade
    int same() const { return static_cast<int>(kinds.size()); }
};

// Compares the results of the first pass of both scans; `scanned.before` is not null. A tensor that has another shape
// in the two files counts as reshaped only.
Comparison compare(const Scanned& scanned);

// "same", "new" or "reshaped", and in the first case the tensor's row in the file before.
struct Before {
    std::string_view change;
    const ScanRow* row = nullptr;
};
Before before_of(const Scanned& scanned, const ScanRow& row);

}  // namespace fp8lab
