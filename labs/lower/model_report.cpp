// The numbers of L11.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "labs/lower/model.h"

namespace fp8lab::lower {

using table::known, table::MetricRow;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void add_output(std::vector<MetricRow>& out, const std::string& prefix, const OutputRow& row) {
    out.push_back(known(prefix + "bits", row.bits, "bit"));
    out.push_back(known(prefix + "divergence", row.score.divergence));
    out.push_back(known(prefix + "accuracy_pct", row.score.accuracy_pct, "%"));
    out.push_back(known(prefix + "changed", row.score.changed));
}

void add_layer(std::vector<MetricRow>& out, std::size_t layer, const LayerRow* row) {
    for (const auto& [name, member, unit] : {std::tuple{"share_pct", &LayerRow::share_pct, "%"},
                                             {"sensitivity", &LayerRow::sensitivity, ""},
                                             {"underflow_pct_w", &LayerRow::underflow_pct_w, "%"},
                                             {"underflow_pct_a", &LayerRow::underflow_pct_a, "%"},
                                             {"sqnr_db_w", &LayerRow::sqnr_db_w, "dB"},
                                             {"sqnr_db_a", &LayerRow::sqnr_db_a, "dB"},
                                             {"saturated_pct_a", &LayerRow::saturated_pct_a, "%"},
                                             {"rel_l2_w", &LayerRow::rel_l2_w, ""}})
        out.push_back(known(fmt::format("{}_{}", name, layer + 1), row ? row->*member : kNone, unit));
}

// The own mix among those with about its bits.
void add_neighbours(std::vector<MetricRow>& out, const OutputRow& own, const Cloud* cloud) {
    const Neighbours near =
        cloud ? neighbours_of(cloud->all.points, own.bits, own.score.divergence) : Neighbours{};
    const auto add = [&](const char* name, auto value) {
        out.push_back(known(name, near.count > 0 ? static_cast<double>(value()) : kNone));
    };
    add("best_within", [&] { return cloud->all.points[near.best].divergence; });
    add("median_within", [&] { return near.median; });
    add("worst_within", [&] { return cloud->all.points[near.worst].divergence; });
    out.push_back(known("mixes_within", cloud ? static_cast<double>(near.count) : kNone));
    add("rank", [&] { return near.rank; });
}

// Of an importance at a share that the sweep has, in percent; NaN: there is no sweep.
double in_sweep(const TokensSweep& sweep, Importance id, double share_pct) {
    const auto at = std::ranges::find(kShares, share_pct) - kShares.begin();
    return sweep.lines.empty() ? kNone : sweep.line(id).values[static_cast<std::size_t>(at)];
}

std::vector<MetricRow> token_rows_of(const Tokens& t, const TokensSweep& sweep) {
    std::vector<MetricRow> out = {known("high_share_pct", t.share_pct, "%"),
                                  known("token_divergence", t.divergence),
                                  known("random_divergence", t.random),
                                  known("token_ratio", t.ratio()),
                                  known("activation_bits", t.activation_bits, "bit"),
                                  known("weight_bits", t.weight_bits, "bit"),
                                  known("all_low", in_sweep(sweep, Importance::random, 0)),
                                  known("all_high", in_sweep(sweep, Importance::random, 100)),
                                  known("best_layers", t.sweep ? t.best_layers() : kNone)};
    for (const ImportanceInfo& info : importances())
        for (const double share_pct : {25.0, 50.0, 75.0})
            out.push_back(known(fmt::format("{}.divergence_{}", info.name, share_pct),
                                in_sweep(sweep, info.id, share_pct)));
    return out;
}

}  // namespace

std::vector<MetricRow> Lower::common_metrics() const {
    std::vector<MetricRow> out;
    const Outcome& o = *outcome;
    add_output(out, "", o.own);
    out.push_back(known("kb", o.own.kb, "KB"));
    out.push_back(known("mean_abs", o.own.score.mean_abs));
    out.push_back(known("max_abs", o.own.score.max_abs));
    out.push_back(known("relative_pct", o.own.score.relative_pct, "%"));
    out.push_back(known("accuracy_fp32_pct", o.accuracy_fp32_pct, "%"));
    for (std::size_t l = 0; l < kLayerFields; ++l)
        add_layer(out, l, l < o.layers.size() ? &o.layers[l] : nullptr);
    for (const OutputRow& row : o.uniforms) add_output(out, std::string(row.format->id) + ".", row);
    add_neighbours(out, o.own, cloud());
    return out;
}

std::vector<MetricRow> Lower::cascade_metrics() const {
    std::vector<MetricRow> out;
    for (const auto& [name, member, unit] : {std::tuple{"cascade_pct", &Cascade::accuracy_pct, "%"},
                                             {"repeated_pct", &Cascade::repeated_pct, "%"},
                                             {"cost", &Cascade::cost, ""},
                                             {"accuracy_low_pct", &Cascade::accuracy_low_pct, "%"},
                                             {"accuracy_high_pct", &Cascade::accuracy_high_pct, "%"},
                                             {"cascade_divergence", &Cascade::divergence, ""}})
        out.push_back({name, unit, [this, at = member] { return cascade->with(params.tau).*at; }});
    return out;
}

std::vector<MetricRow> Lower::kv_metrics() const {
    const double bytes = kv_bytes(params.kv, params.kv.cache);
    const KvErrors errors = kv->value_or(KvErrors{});
    const double own = params.kv.cache == "bf16"  ? 0
                       : params.kv.cache == "fp8" ? errors[0].both_pct
                                                  : errors[1].both_pct;
    std::vector<MetricRow> out = {known("bytes_per_token", bytes, "B"),
                                  known("tokens", kv_tokens(params.kv.bytes(), bytes)),
                                  known("kv_error_pct", own, "%")};
    for (std::size_t i = 0; i < kKvFormats.size(); ++i)
        for (const auto& [name, member] : {std::pair{"kv_error_pct", &KvError::both_pct},
                                           {"k_error_pct", &KvError::k_pct},
                                           {"v_error_pct", &KvError::v_pct}})
            out.push_back(known(fmt::format("{}.{}", kKvFormats.at(i), name), errors.at(i).*member, "%"));
    return out;
}

std::vector<MetricRow> Lower::token_metrics() const {
    const Tokens& t = *tokens;
    if (!t.sweep) return token_rows_of({}, {});
    return token_rows_of(t, *t.sweep);
}

}  // namespace fp8lab::lower
