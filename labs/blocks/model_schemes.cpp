#include "labs/blocks/model_schemes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/scaling/recipe_lists.h"
#include "core/threads/parallel.h"

namespace fp8lab::blocks {

namespace {

constexpr std::size_t kGrain = 16384;  // elements that are worth a thread

// The sums of one row: signal and noise of the copy along columns, and where the two copies differ.
struct RowSums {
    double signal = 0, noise = 0, max_difference = 0;
    std::size_t differ = 0;
};
RowSums sums_of(std::span<const float> x, std::span<const float> q, std::span<const float> other) {
    RowSums out;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double value = static_cast<double>(x[i]), e = value - static_cast<double>(q[i]);
        out.signal += value * value;
        out.noise += e * e;
        const double difference = std::fabs(static_cast<double>(q[i]) - static_cast<double>(other[i]));
        out.differ += difference > 0;
        out.max_difference = std::max(out.max_difference, difference);
    }
    return out;
}

}  // namespace

std::span<const Family> families() {
    static const std::vector<Family> kAll = [] {
        std::vector<Family> out;
        for (const ListedRecipe& listed : listed_recipes(RecipeList::block_scales))
            out.push_back({std::string(listed.id), std::string(listed.label), std::string(listed.short_label),
                           listed.recipe,
                           cast_plan(listed.recipe, listed.weight ? TensorClass::w : TensorClass::x)});
        return out;
    }();
    return kAll;
}

const Family& find_family(std::string_view id) { return *std::ranges::find(families(), id, &Family::id); }

std::vector<Scheme> schemes(const FormatInfo& element, bool pow2) {
    constexpr std::array kRules = {std::pair{"up", MxRule::up}, std::pair{"floor", MxRule::floor},
                                   std::pair{"even", MxRule::even}};
    std::vector<Scheme> out;
    for (const Family& family : families()) {
        CastPlan plan = family.plan;
        if (family.takes_element()) plan.format = &element;
        if (family.has_fp32_scales()) plan.pow2 = pow2;
        if (!family.has_mx_rule()) {
            out.push_back({family.id, family.short_label, family.id, "", plan});
            continue;
        }
        for (const auto& [name, rule] : kRules) {
            plan.mx_rule = rule;
            out.push_back({family.id + "-" + name, family.short_label + ", " + name, family.id, name, plan});
        }
    }
    return out;
}

Copy quantized_copy(const CastPlan& plan, const Tensor& tensor, Along along) {
    Copy out;
    out.grid = block_grid(plan, tensor.rows, tensor.cols, along);
    out.values.resize(tensor.values.size());
    QuantizeResult result =
        quantize(plan, tensor.values, out.values, {.rows = tensor.rows, .cols = tensor.cols, .along = along});
    out.stats = result.stats;
    out.scales = result.scales.empty() ? std::vector{result.scale} : std::move(result.scales);
    return out;
}

Score score(const CastPlan& plan, const Tensor& tensor, const Copy& by_cols, const Copy& by_rows) {
    Score out;
    out.scales = static_cast<double>(by_cols.grid.count());
    out.bits_per_element = bits_per_element(plan, tensor.rows, tensor.cols);
    out.sqnr_db = by_cols.stats.sqnr_db();
    out.underflow_pct = by_cols.stats.underflow_pct();
    out.overflow_pct = by_cols.stats.overflow_pct();
    out.lost_l1_pct = by_cols.stats.lost_l1_pct();
    out.lost_energy_pct = by_cols.stats.lost_energy_pct();
    std::vector<RowSums> rows(tensor.rows);
    parallel_for(tensor.rows, 1 + kGrain / std::max<std::size_t>(tensor.cols, 1),
                 [&](std::size_t begin, std::size_t end) {
                     const auto row = [&](const std::vector<float>& values, std::size_t r) {
                         return std::span(values).subspan(r * tensor.cols, tensor.cols);
                     };
                     for (std::size_t r = begin; r < end; ++r)
                         rows[r] =
                             sums_of(row(tensor.values, r), row(by_cols.values, r), row(by_rows.values, r));
                 });
    std::size_t differ = 0;
    out.worst_row_db = std::numeric_limits<double>::infinity();
    for (const RowSums& row : rows) {
        if (row.signal > 0)
            out.worst_row_db = std::min(out.worst_row_db, 10 * std::log10(row.signal / row.noise));
        differ += row.differ;
        out.max_difference = std::max(out.max_difference, row.max_difference);
    }
    out.differ_pct = 100.0 * static_cast<double>(differ) / static_cast<double>(by_cols.values.size());
    return out;
}

}  // namespace fp8lab::blocks
