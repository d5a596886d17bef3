// The figure of the part "kv", and its sentences.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/model.h"

namespace fp8lab::serve {
namespace {

std::string factor_text(double factor) {
    return factor >= 1 ? "× " + format_number(factor) : "÷ " + format_number(1 / factor);
}

}  // namespace

std::string kv_title(const Kv& kv) {
    const KvRow *one = kv.row("one"), *calibrated = kv.row("tensor");
    if (!one || !calibrated) return "";
    const double ratio = one->cost.divergence / calibrated->cost.divergence;
    const std::string k =
        kv.spec.k_factor == 1 ? "With K as it is" : "With K " + factor_text(kv.spec.k_factor);
    if (one->cost.saturated_pct_k > 0)
        return fmt::format(
            "{}, {} % of it saturates with scale 1, which costs {} times what a scale per tensor does", k,
            screen_number(one->cost.saturated_pct_k, 2), times_text(ratio));
    return fmt::format(
        "{}, nothing saturates: scale 1 costs {} times what a calibrated scale per tensor does", k,
        times_text(ratio));
}

Role role_of(const CacheScheme& scheme) {
    return scheme.scales == CacheScales::one ? Role::e4m3 : scheme.format->role;
}

std::string caches_title(const Kv& kv) {
    const KvRow* own = kv.own();
    if (!own) return "";
    const double k = own->cost.k_divergence, v = own->cost.v_divergence;
    const std::string name(own->scheme->label);
    return k >= v ? fmt::format("{}: K costs {} times as much as V", name, times_text(k / v))
                  : fmt::format("{}: V costs {} times as much as K", name, times_text(v / k));
}

Figure kv_figure(const Kv& kv) {
    Figure figure{.id = "kv_scale",
                  .title = kv_title(kv),
                  .x = {.label = "K ×", .scale = Scale::log2, .range = Range{0x1p-8 / 1.2, 0x1p8 * 1.2}},
                  .y = {.label = "divergence from FP32, nats", .scale = Scale::log10}};
    if (kv.factors.empty()) return figure;
    double least = kv.one.front(), most = least;
    for (const std::vector<double>* line : {&kv.one, &kv.calibrated})
        for (const double value : *line) least = std::min(least, value), most = std::max(most, value);
    if (const KvRow* own = kv.own())
        least = std::min(least, own->cost.divergence), most = std::max(most, own->cost.divergence);
    figure.y.range = Range{least / 2, most * 3};
    // From where on K saturates.
    if (const double from = kv.first_saturated(); from > 0)
        figure.xspan("K saturates with scale 1", from / std::sqrt(2.0), 0x1p8 * 1.2, {.color = {Role::sat}});
    figure.vline("", kv.spec.k_factor, kHairline);
    figure.line("E4M3, scale 1", data(kv.factors), data(kv.one),
                {.color = {Role::e4m3}, .width = 3, .marker = Marker::disc, .marker_size = 3});
    figure.line("E4M3, calibrated per tensor", data(kv.factors), data(kv.calibrated),
                {.color = {Role::text}, .dash = Dash::dash});
    if (const KvRow* own = kv.own())
        figure.scatter("##own", data({kv.spec.k_factor}), data({own->cost.divergence}),
                       {.color = {role_of(*own->scheme)},
                        .marker = Marker::diamond,
                        .marker_size = 6,
                        .in_legend = false});
    return figure;
}

}  // namespace fp8lab::serve
