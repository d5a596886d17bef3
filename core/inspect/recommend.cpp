#include "core/inspect/recommend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"

namespace fp8lab {
namespace {

constexpr double kSameSize = 0.3;  // bits: formats of one size differ by their scales only

int scales_rank(const Recipe& recipe) { return static_cast<int>(recipe.granularity); }

std::string size_text(const ScanRecipe& recipe, const CastOutcome& outcome) {
    return fmt::format("{} ({:.2f} bits)", recipe.label, outcome.bits);
}

// How far from the demands, for the nearest of those that miss: the largest shortfall, each in its own unit.
double shortfall(const CastOutcome& o, const Demands& d) {
    const auto below = [](double value, double least) {
        return std::isnan(value) ? 100 : std::max(0.0, least - value);
    };
    return std::max({below(o.sqnr_db, d.min_sqnr_db), below(o.worst_row_db, d.min_row_db),
                     std::max(0.0, o.underflow_pct - d.max_underflow_pct),
                     std::max(0.0, o.bits - d.max_bits)});
}

// The largest SQNR among the recipes with elements of as many bits, where that one loses too much.
std::string best_that_loses(const ScanRow& row, std::span<const ScanRecipe> recipes, const Demands& demands) {
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        const CastOutcome& o = row.outcomes[r];
        const int size = width_bits(*recipes[r].recipe.fwd);
        if (recipes[r].compared_only || !(o.sqnr_db >= demands.min_sqnr_db) ||
            o.underflow_pct <= demands.max_underflow_pct)
            continue;
        bool best = true;
        int others = 0;
        for (std::size_t i = 0; i < recipes.size(); ++i) {
            if (i == r || recipes[i].compared_only || width_bits(*recipes[i].recipe.fwd) != size) continue;
            ++others;
            best = best && row.outcomes[i].sqnr_db <= o.sqnr_db;
        }
        if (best && others > 0)
            return fmt::format("{} has the largest SQNR of the {}-bit recipes, {} dB, and turns {} % into 0.",
                               recipes[r].label, size, format_number(o.sqnr_db, 3),
                               format_number(o.underflow_pct, 3));
    }
    return "";
}

}  // namespace

bool meets(const CastOutcome& o, const Demands& d) {
    return o.sqnr_db >= d.min_sqnr_db && o.underflow_pct <= d.max_underflow_pct && o.bits <= d.max_bits &&
           (std::isinf(d.min_row_db) || o.worst_row_db >= d.min_row_db);
}

std::string missed(const CastOutcome& o, const Demands& d) {
    std::vector<std::string> out;
    if (!(o.sqnr_db >= d.min_sqnr_db)) out.push_back(format_number(o.sqnr_db, 3) + " dB");
    if (o.underflow_pct > d.max_underflow_pct)
        out.push_back(format_number(o.underflow_pct, 3) + " % become 0");
    if (!std::isinf(d.min_row_db) && !(o.worst_row_db >= d.min_row_db))
        out.push_back("a row of " + format_number(o.worst_row_db, 3) + " dB");
    if (o.bits > d.max_bits) out.push_back(fmt::format("{:.2f} bits", o.bits));
    return fmt::format("{}", fmt::join(out, ", "));
}

Recommendation recommend(const ScanRow& row, std::span<const ScanRecipe> recipes, const Demands& demands) {
    Recommendation out;
    if (row.outcomes.empty()) return out;
    std::string excluded = row.summary.excluded.sentence(row.summary.n);
    if (!excluded.empty()) excluded += '.';
    if (row.summary.amax == 0) {
        out.reasons = {excluded.empty() ? "All values are 0: every recipe is exact."
                                        : excluded + " No other value is left, so no recipe can be judged."};
        return out;
    }
    const auto say_excluded = [&] {
        if (!excluded.empty()) out.reasons.push_back(excluded);
    };
    const auto bits_of = [&](std::size_t r) { return row.outcomes[r].bits; };
    std::vector<std::size_t> allowed, good;
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        if (recipes[r].compared_only) continue;
        allowed.push_back(r);
        if (meets(row.outcomes[r], demands)) good.push_back(r);
    }
    if (good.empty()) {
        for (const std::size_t r : allowed)
            if (!out.nearest ||
                shortfall(row.outcomes[r], demands) < shortfall(row.outcomes[*out.nearest], demands))
                out.nearest = r;
        if (out.nearest)
            out.reasons.push_back(fmt::format("No recipe meets the demands. {} comes nearest: {}.",
                                              recipes[*out.nearest].label,
                                              missed(row.outcomes[*out.nearest], demands)));
        say_excluded();
        return out;
    }
    const double fewest = bits_of(*std::ranges::min_element(good, {}, bits_of));
    std::erase_if(good, [&](std::size_t r) { return bits_of(r) > fewest + kSameSize; });
    out.recipe = *std::ranges::min_element(good, {}, [&](std::size_t r) {
        return std::pair{scales_rank(recipes[r].recipe), bits_of(r)};
    });
    // The next cheaper one: of fewer bits, and not only by its scales.
    std::optional<std::size_t> cheaper;
    for (const std::size_t r : allowed)
        if (!meets(row.outcomes[r], demands) && bits_of(r) < bits_of(*out.recipe) &&
            (!cheaper || bits_of(r) > bits_of(*cheaper)))
            cheaper = r;
    if (cheaper)
        out.reasons.push_back(fmt::format("The next smaller one, {}, misses the demands: {}.",
                                          size_text(recipes[*cheaper], row.outcomes[*cheaper]),
                                          missed(row.outcomes[*cheaper], demands)));
    if (std::string sentence = best_that_loses(row, recipes, demands); !sentence.empty())
        out.reasons.push_back(std::move(sentence));
    say_excluded();
    return out;
}

bool loses(const ScanRow& row, std::size_t recipe, const Demands& demands) {
    return !row.outcomes.empty() && row.outcomes[recipe].underflow_pct > demands.max_underflow_pct;
}

bool meets(const ScanRow& row, std::size_t recipe, const Demands& demands) {
    const bool zeros = row.summary.amax == 0 && row.summary.excluded.count() == 0;
    return !row.outcomes.empty() && (zeros || meets(row.outcomes[recipe], demands));
}

}  // namespace fp8lab
