// One tensor under one recipe, in detail: which elements become 0, by size and by place.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/inspect/scan.h"

namespace fp8lab {

// A row of the tensor's matrix, or a column; an element where there is a single row.
enum class PlaceUnit { row, column, element };

struct CastDetail {
    Binades lost;                // elements that became 0, by the binade they were in
    double lost_l1_pct = 0;      // the share of the absolute sum that underflow removed
    std::int64_t underflow = 0;  // elements that became 0
    // The lines are rows where there are 64 or more rows, or fewer than 64 columns; else they are columns.
    PlaceUnit unit = PlaceUnit::row;
    std::size_t units = 0;
    enum class Place : std::uint8_t {
        kept,
        lost,
        cut,
        zero
    };                                                      // what most of its elements that are not 0 became
    std::vector<Place> places;                              // one per unit; zero: all were 0
    std::vector<std::pair<std::size_t, std::size_t>> runs;  // first and last of consecutive lost units
    std::pair<std::size_t, std::size_t> longest() const;    // of `runs`; only where there is one
    std::vector<Place> cells(
        std::size_t count) const;  // at most `count`, each the most frequent of its units

    std::string title() const;  // "Where: elements 128 to 255, one run"
};

// `row`: summarised. Sampled rows only, as in the scan. Throws as TensorStore::read_rows().
CastDetail cast_detail(const TensorStore& store, const ScanRow& row, const Recipe& recipe);

}  // namespace fp8lab
