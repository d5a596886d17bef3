#include "labs/experts/model_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/base/units.h"

namespace fp8lab::experts {
namespace {

constexpr std::array kProducts = {"fprop", "dgrad", "wgrad"};

// "32", "5.6", "0".
std::string zeros_text(double pct) { return pct < 9.95 ? screen_number(pct, 2) : fmt::format("{:.0f}", pct); }

}  // namespace

const Pool& find_pool(std::string_view id) {
    const auto hit = std::ranges::find(kPools, id, &Pool::id);
    if (hit == kPools.end()) throw usage_error("pool", "'" + std::string(id) + "' is no pool of experts");
    return *hit;
}

Groups GroupsMaker::operator()(const GroupsSpec& spec) {
    const Pool& pool = find_pool(spec.pool);
    Groups out{.spec = spec};
    if (spec.pool == "own") {
        const RoutingStudy& study = studies_.of(spec.seed);
        out.rows =
            study.rows(study.shape().blocks - 1, static_cast<std::size_t>(std::min(spec.tokens, kOwnTokens)));
    } else {
        out.rows = draw_groups({.experts = pool.experts,
                                .active = pool.active,
                                .tokens = spec.tokens,
                                .skew = spec.skew,
                                .seed = static_cast<std::uint64_t>(spec.seed)});
    }
    return out;
}

Times times_of(const std::string& card) {
    Times out{.of = shipped(), .recording = nullptr, .gemms = nullptr};
    out.recording = out.of->find(card);
    if (out.recording && out.recording->grid && !out.recording->grid->groups.empty())
        out.gemms = std::make_shared<plan::GroupedGemms>(*out.recording->grid);
    return out;
}

std::string rows_title(const Groups& groups, int pad) {
    if (groups.rows.empty()) return {};
    const GroupShape shape = groups.shape(pad);
    const double mean = std::accumulate(groups.rows.begin(), groups.rows.end(), 0.0) /
                        static_cast<double>(groups.rows.size());
    if (pad == 1)
        return fmt::format("{} experts have {} rows each on average, the busiest {} times as many",
                           groups.rows.size(), screen_number(mean, 3),
                           screen_number(shape.largest_over_mean, 2));
    return fmt::format(
        "Padded to {} rows, {} % of the rows are zeros: {} experts have {} rows each on average", pad,
        zeros_text(shape.zeros_pct), groups.rows.size(), screen_number(mean, 3));
}

std::string time_title(const Times& times) {
    if (!times.gemms) return "No grouped GEMMs were recorded here";
    const auto factor = [&](const char* product) {
        return fmt::format("{:.2f}", times.gemms->speedup(kManyGroups, product));
    };
    return fmt::format("{} groups: FP8 makes fprop {} times as fast, wgrad {} times", kManyGroups,
                       factor("fprop"), factor("wgrad"));
}

std::string not_recorded(const Groups& groups) {
    if (groups.rows.empty()) return {};
    const int all = std::accumulate(groups.rows.begin(), groups.rows.end(), 0);
    return fmt::format("{} groups with {} rows in all: not recorded", groups.rows.size(),
                       group_thousands(all));
}

Figure rows_figure(const Groups& groups, int pad) {
    Figure figure{
        .id = "rows", .title = rows_title(groups, pad), .x = {.label = "expert"}, .y = {.label = "rows"}};
    if (groups.rows.empty()) return figure;
    const auto count = groups.rows.size();
    std::vector<double> edges, rows, padded;
    for (std::size_t e = 0; e < count; ++e) {
        edges.push_back(static_cast<double>(e) + 0.5);
        rows.push_back(groups.rows[e]);
        padded.push_back(padded_rows(groups.rows[e], pad));
    }
    edges.push_back(static_cast<double>(count) + 0.5);
    figure.x.range = Range{edges.front(), edges.back()};
    figure.y.range = Range{0, 1.08 * *std::ranges::max_element(padded)};
    figure.bars("padded", data(edges), data(padded),
                {.color = {Role::muted, Tone::fill, 0.35F}, .in_legend = false});
    figure.bars("rows", data(edges), data(rows), {.color = {Role::truth, Tone::fill}, .in_legend = false});
    const GroupShape shape = groups.shape(pad);
    figure.words = {figure.title + ".",
                    fmt::format("From {} to {} rows; {} % of the experts have none.",
                                *std::ranges::min_element(groups.rows),
                                *std::ranges::max_element(groups.rows), zeros_text(shape.empty_pct))};
    return figure;
}

// Three products; in each a pair of bars, BF16 and FP8, for each number of groups.
Figure time_figure(const Times& times) {
    Figure figure{.id = "time",
                  .title = time_title(times),
                  .x = {.label = "groups, of 8,192 rows together"},
                  .y = {.label = "ms"}};
    if (!times.gemms) return figure;
    figure.words = {figure.title + "."};
    const std::vector<int> groups = times.gemms->groups();
    const double wide = static_cast<double>(groups.size()) + 1;  // of a product
    double most = 0;
    std::vector<double> bound_x, bound_y;
    std::vector<std::pair<double, std::string>> products;  // where their names are
    const auto bar = [&](const plan::GroupedTime* time, double from, Role role, const char* name,
                         bool first) {
        if (!time) return;
        constexpr double kBar = 0.34;
        const double ms = time->recorded->median_ms;
        most = std::max({most, ms, time->bound_ms});
        figure.band(first ? name : "", data({from, from + kBar}), data({0, 0}), data({ms, ms}),
                    {.color = {role, Tone::fill}, .in_legend = first});
        bound_x.push_back(from + kBar / 2), bound_y.push_back(time->bound_ms);
    };
    for (std::size_t p = 0; p < kProducts.size(); ++p) {
        std::string points;
        products.emplace_back(static_cast<double>(p) * wide + wide / 2, kProducts[p]);
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const double at = static_cast<double>(p) * wide + static_cast<double>(g) + 1;
            const plan::GroupedTime *bf16 = times.gemms->find(groups[g], kProducts[p], "bf16"),
                                    *fp8 = times.gemms->find(groups[g], kProducts[p], "fp8");
            bar(bf16, at - 0.36, Role::bf16, "BF16", p + g == 0);
            bar(fp8, at + 0.02, Role::e4m3, "FP8", p + g == 0);
            figure.x.names.push_back({.at = at, .words = std::to_string(groups[g])});
            if (!bf16 || !fp8) continue;
            const double factor = times.gemms->speedup(groups[g], kProducts[p]);
            const double top = std::max(bf16->recorded->median_ms, bf16->bound_ms);
            figure.add("",
                       TextMark{.x = at,
                                .y = top,
                                .text = fmt::format("{:.2f}×", factor),
                                .anchor = Anchor::center,
                                .strong = groups[g] == kManyGroups,
                                .dy = groups[g] == kManyGroups ? -14.0F : -10.0F},
                       {.color = {Role::text, Tone::ink}, .in_legend = false});
            points += fmt::format("{}{}: {} and {}, {:.2f} times", points.empty() ? "" : "; ", groups[g],
                                  screen_number(bf16->recorded->median_ms, 3),
                                  screen_number(fp8->recorded->median_ms, 3), factor);
        }
        figure.words.push_back(fmt::format("{}, ms in BF16 and FP8 by groups: {}.", kProducts[p], points));
    }
    figure.scatter("bound", data(std::move(bound_x)), data(std::move(bound_y)),
                   {.color = {Role::text}, .width = 2, .marker = Marker::bar, .marker_size = 9});
    for (const auto& [at, name] : products)
        figure.add("",
                   TextMark{.x = at, .y = 1.3 * most, .text = name, .anchor = Anchor::center, .strong = true},
                   {.color = {Role::text, Tone::ink}, .in_legend = false});
    figure.x.range = Range{0.3, 3 * wide - 0.3};
    figure.y.range = Range{0, 1.4 * most};
    return figure;
}

}  // namespace fp8lab::experts
