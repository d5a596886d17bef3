#include "labs/experts/model_hop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "labs/experts/model_casts.h"

namespace fp8lab::experts {
namespace {

const std::array<Hop, 6>& usual_hops() {
    static const std::array<Hop, 6> kUsual = {{{"bf16", "block128:pow2=0", "bf16"},
                                               {"bf16", "current:fwd=e5m2", "bf16"},
                                               {"bf16", "bf16", "block128:pow2=0"},
                                               {"mxfp8", "bf16", "bf16"},
                                               {"mxfp8", "mxfp8", "bf16"},
                                               {"mxfp8", "block128:pow2=0", "bf16"}}};
    return kUsual;
}

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

std::string points_text(double pct) { return fmt::format("{:.2f}", pct); }
constexpr double kNothing = 0.005;  // a difference that the table does not show

}  // namespace

double HopRow::mean_pct() const { return mean_of(error_pct); }

const HopRow* Hops::chosen() const {
    const auto hit = std::ranges::find(rows, spec.hop, &HopRow::hop);
    return hit == rows.end() ? nullptr : &*hit;
}

double Hops::added_pct() const {
    const HopRow* row = chosen();
    return row ? row->mean_pct() - mean_of(gemm_pct) : std::numeric_limits<double>::quiet_NaN();
}

Hops HopMaker::operator()(const HopSpec& spec) {
    if (seed_ != spec.seed) known_.clear();
    seed_ = spec.seed;
    const auto error = [&](const Hop& hop) -> const HopRow& {
        const auto hit = std::ranges::find(known_, hop, &HopRow::hop);
        if (hit != known_.end()) return *hit;
        return known_.emplace_back(
            hop, studies_.of(spec.seed).hop_error_pct(parse_recipe(hop.gemm), parse_recipe(hop.send),
                                                      parse_recipe(hop.back)));
    };
    Hops out{.spec = spec};
    for (const Hop& hop : usual_hops()) out.rows.push_back(error(hop));
    if (!out.chosen()) out.rows.push_back(error(spec.hop));
    out.gemm_pct = error({spec.hop.gemm, "bf16", "bf16"}).error_pct;
    return out;
}

std::string hop_words(const Hop& hop) {
    return fmt::format("{} GEMMs, sent in {}, back in {}", label_of(hop.gemm), label_of(hop.send),
                       label_of(hop.back));
}

std::string hop_title(const Hops& hops) {
    if (!hops.chosen()) return {};
    const Hop& hop = hops.spec.hop;
    const double added = hops.added_pct();
    if (hop.send == "bf16" && hop.back == "bf16")
        return hop.gemm == "bf16"
                   ? "BF16 everywhere is the reference"
                   : fmt::format("{} GEMMs alone: the hop is in BF16 and adds nothing", label_of(hop.gemm));
    const std::string way =
        hop.back == "bf16"   ? label_of(hop.send) + " on the way out"
        : hop.send == "bf16" ? label_of(hop.back) + " on the way back"
                             : fmt::format("Out in {}, back in {}", label_of(hop.send), label_of(hop.back));
    if (std::fabs(added) < kNothing && hop.back == "bf16")
        return fmt::format("{} costs nothing: the GEMM would cast the same way", way);
    return fmt::format("{} adds {} points to the error of the {} GEMMs", way, points_text(added),
                       label_of(hop.gemm));
}

Figure hop_figure(const Hops& hops, bool named) {
    const auto count = static_cast<double>(hops.rows.size());
    Figure figure{.id = "hop",
                  .title = hop_title(hops),
                  .x = {.label = "error of the layer’s output, % (relative L2)"},
                  .y = {.range = Range{0, std::max(count, 1.0)}, .visible = false}};
    if (hops.rows.empty()) return figure;
    figure.words = {figure.title + "."};
    double most = 1;
    std::vector<double> first, second, places;
    for (std::size_t i = 0; i < hops.rows.size(); ++i) {
        const HopRow& row = hops.rows[i];
        const double middle = count - 0.5 - static_cast<double>(i);
        places.push_back(middle);
        first.push_back(row.error_pct.front()), second.push_back(row.error_pct.back());
        most = std::max({most, first.back(), second.back()});
        const Color color{row.hop.send == "bf16" && row.hop.back == "bf16" ? role_of(row.hop.gemm)
                          : row.hop.back == "bf16"                         ? role_of(row.hop.send)
                                                                           : role_of(row.hop.back)};
        figure.line("", data({0, std::max(first.back(), second.back())}), data({middle, middle}),
                    {.color = {Role::line}, .width = 1, .in_legend = false});
        figure.scatter("", data({first.back()}), data({middle}),
                       {.color = {color.role, Tone::line},
                        .marker = Marker::ring,
                        .marker_size = 5,
                        .in_legend = false});
        figure.scatter("", data({second.back()}), data({middle}),
                       {.color = {color.role, Tone::fill},
                        .marker = Marker::disc,
                        .marker_size = 5,
                        .in_legend = false});
        if (named)
            figure.add("",
                       TextMark{.x = std::max(first.back(), second.back()),
                                .y = middle,
                                .text = hop_words(row.hop),
                                .strong = row.hop == hops.spec.hop,
                                .dx = 10},
                       {.color = {Role::text, Tone::ink}, .in_legend = false});
        figure.words.push_back(fmt::format("{}: {} % in block 1, {} % in block {}.", hop_words(row.hop),
                                           points_text(row.error_pct.front()),
                                           points_text(row.error_pct.back()), row.error_pct.size()));
    }
    figure.x.range = Range{0, (named ? 2.2 : 1.08) * most};
    return figure;
}

}  // namespace fp8lab::experts
