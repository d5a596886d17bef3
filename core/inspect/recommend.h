// Recommends a recipe for a tensor: the one with the fewest bits that meets the demands.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/inspect/scan.h"

namespace fp8lab {

struct Demands {
    double min_sqnr_db = 25, max_underflow_pct = 1;
    double min_row_db = -std::numeric_limits<double>::infinity();  // off
    double max_bits = 16;
    bool operator==(const Demands&) const = default;
};

bool meets(const CastOutcome& outcome, const Demands& demands);
// What it misses, "19.7 dB", "37.5 % become 0", joined by ", "; empty: nothing.
std::string missed(const CastOutcome& outcome, const Demands& demands);

struct Recommendation {
    std::optional<std::size_t> recipe;  // of the list; none meets the demands, or all values are 0
    std::optional<std::size_t>
        nearest;  // where none does: the one of those that may be recommended that misses least
    std::vector<std::string> reasons;  // sentences
};
// The recipe with the fewest bits; of those within 0.3 bits of it, the one with the fewest scales (one, per row, 128,
// 32, 16), then the fewest bits. Nothing is recommended for a tensor of zeros: every recipe is exact, or where values
// are excluded and all others are 0 none can be judged. What is excluded is the last sentence.
Recommendation recommend(const ScanRow& row, std::span<const ScanRecipe> recipes, const Demands& demands);

// Whether a tensor loses more than the demand; for rows whose scan is done.
bool loses(const ScanRow& row, std::size_t recipe, const Demands& demands);
bool meets(const ScanRow& row, std::size_t recipe, const Demands& demands);

}  // namespace fp8lab
