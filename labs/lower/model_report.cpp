// The numbers of L11.
#include <fmt/format.h>

#include <limits>

#include "labs/lower/model.h"

namespace fp8lab::lower {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void add_output(std::vector<Metric>& out, const std::string& prefix, const OutputRow& row) {
    out.push_back({prefix + "bits", row.bits, "bit"});
    out.push_back({prefix + "divergence", row.score.divergence});
    out.push_back({prefix + "accuracy_pct", row.score.accuracy_pct, "%"});
    out.push_back({prefix + "changed", static_cast<double>(row.score.changed)});
}

void add_cascade(std::vector<Metric>& out, const CascadeSweep& sweep, double tau, bool shown) {
    const bool known = shown && !sweep.at.empty();
    const Cascade now = known ? sweep.with(tau) : Cascade{};
    const auto add = [&](const char* name, double value, const char* unit) {
        out.push_back({name, known ? value : kNone, unit});
    };
    add("cascade_pct", now.accuracy_pct, "%");
    add("repeated_pct", now.repeated_pct, "%");
    add("cost", now.cost, "");
    add("accuracy_low_pct", now.accuracy_low_pct, "%");
    add("accuracy_high_pct", now.accuracy_high_pct, "%");
    add("cascade_divergence", now.divergence, "");
}

void add_kv(std::vector<Metric>& out, const KvSpec& spec, const std::optional<KvErrors>& known, bool shown) {
    constexpr double kGB = 1e9;
    const double bytes = kv_bytes(spec, spec.cache);
    out.push_back({"bytes_per_token", shown ? bytes : kNone, "B"});
    out.push_back({"tokens", shown ? kv_tokens(spec.gigabytes * kGB, bytes) : kNone});
    const KvErrors errors = known.value_or(KvErrors{});
    const double own = spec.cache == "bf16"  ? 0
                       : spec.cache == "fp8" ? errors[0].both_pct
                                             : errors[1].both_pct;
    shown = shown && known;
    out.push_back({"kv_error_pct", shown ? own : kNone, "%"});
    for (std::size_t i = 0; i < kKvFormats.size(); ++i) {
        const std::string prefix = std::string(kKvFormats.at(i)) + ".";
        out.push_back({prefix + "kv_error_pct", shown ? errors.at(i).both_pct : kNone, "%"});
        out.push_back({prefix + "k_error_pct", shown ? errors.at(i).k_pct : kNone, "%"});
        out.push_back({prefix + "v_error_pct", shown ? errors.at(i).v_pct : kNone, "%"});
    }
}

}  // namespace

std::vector<Metric> LowerLab::metrics() const {
    std::vector<Metric> out;
    const Outcome& o = outcome_;
    add_output(out, "", o.own);
    out.push_back({"kb", o.own.kb, "KB"});
    out.push_back({"mean_abs", o.own.score.mean_abs});
    out.push_back({"max_abs", o.own.score.max_abs});
    out.push_back({"relative_pct", o.own.score.relative_pct, "%"});
    out.push_back({"accuracy_fp32_pct", o.accuracy_fp32_pct, "%"});
    for (std::size_t l = 0; l < kLayerFields; ++l) {
        const LayerRow* row = l < o.layers.size() ? &o.layers[l] : nullptr;
        const auto add = [&](const char* name, double LayerRow::*member, const char* unit) {
            out.push_back({fmt::format("{}_{}", name, l + 1), row ? row->*member : kNone, unit});
        };
        add("share_pct", &LayerRow::share_pct, "%");
        add("sensitivity", &LayerRow::sensitivity, "");
        add("underflow_pct_w", &LayerRow::underflow_pct_w, "%");
        add("underflow_pct_a", &LayerRow::underflow_pct_a, "%");
        add("sqnr_db_w", &LayerRow::sqnr_db_w, "dB");
        add("sqnr_db_a", &LayerRow::sqnr_db_a, "dB");
        add("saturated_pct_a", &LayerRow::saturated_pct_a, "%");
        add("rel_l2_w", &LayerRow::rel_l2_w, "");
    }
    for (const OutputRow& row : o.uniforms) add_output(out, std::string(row.format->id) + ".", row);
    const Cloud* all = cloud();
    const Neighbours near =
        all ? neighbours_of(all->all.points, o.own.bits, o.own.score.divergence) : Neighbours{};
    const auto at = [&](std::size_t i) { return near.count > 0 ? all->all.points[i].divergence : kNone; };
    out.push_back({"best_within", at(near.best)});
    out.push_back({"median_within", near.count > 0 ? near.median : kNone});
    out.push_back({"worst_within", at(near.worst)});
    out.push_back({"mixes_within", all ? static_cast<double>(near.count) : kNone});
    out.push_back({"rank", near.count > 0 ? static_cast<double>(near.rank) : kNone});
    add_cascade(out, cascade_, params_.tau, shows("cascade"));
    add_kv(out, params_.kv, kv_, shows("kv"));
    return out;
}

}  // namespace fp8lab::lower
