// The experiments of L11 besides the mix: what the ranges of the inputs do to a format, the cascade of two formats, and
// the KV cache.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/inference/cascade.h"
#include "core/inference/kv_cache.h"
#include "labs/lower/model_network.h"

namespace fp8lab::lower {

// ---- ranges
// The sweep of outliers is at the contrast and with the scales that are set, that of the contrast with the outliers and
// the smoothing that are set; its dashed lines have calibrated scales also where those of the own mix are dynamic.
struct RangesSpec {
    SetupSpec setup = {};
    bool both = true;
    ScalesSpec scales = {};
    std::string dotted() const { return setup.smoothing == "off" ? "0.5" : setup.smoothing; }  // smoothing
    bool operator==(const RangesSpec&) const = default;
};
// One line of a sweep: accuracy in percent; of a network that does not classify the divergence.
struct SweepLine {
    const LowFormat* format = nullptr;
    bool second = false;  // smoothed, calibrated
    std::vector<double> values = {};
};
struct Ranges {
    RangesSpec spec = {};
    bool classifies = true;
    bool known() const { return !contrast.empty(); }  // false before the first result
    std::vector<double> ratios = {};                  // 1 to 1024
    std::vector<SweepLine> outliers = {};
    std::vector<double> contrasts = {};  // 1/8 to 8
    std::vector<SweepLine> contrast = {};
    std::vector<double> saturated_pct = {};  // of x1, in E4M3 with calibrated scales
};
// Keeps a sweep of `before` where it is the same.
Ranges ranges_of(const RangesSpec& spec, Ranges before = {});

// ---- cascade
struct CascadeSpec {
    SetupSpec setup = {};
    std::string low = "mxfp4", high = "mxfp8";
    bool operator==(const CascadeSpec&) const = default;
};
struct CascadeSweep {
    CascadeSpec spec = {};
    std::shared_ptr<const Setup> setup = {};
    CascadeRun run = {};
    std::vector<double> taus = {};  // 0 to 1
    std::vector<Cascade> at = {};   // for each of them; empty: the network does not classify
    Cascade with(double tau) const { return cascade_of(setup->reference, run, tau); }
};
CascadeSweep cascade_sweep(const CascadeSpec& spec, std::shared_ptr<const Setup>& setup);

// ---- kv
struct KvPreset {
    std::string_view id, label;
    KvShape shape;
};
inline constexpr std::array kKvPresets = {KvPreset{"8b", "32 layers, 8 KV heads of 128", {32, 8, 128}},
                                          KvPreset{"70b", "80 layers, 8 KV heads of 128", {80, 8, 128}},
                                          KvPreset{"small", "36 layers, 8 KV heads of 64", {36, 8, 64}}};
struct KvSpec {
    std::string model = "8b", cache = "bf16";  // "bf16", "fp8", "nvfp4", "pressure"
    double gigabytes = 16;                     // 10^9 bytes
    double bytes() const { return gigabytes * 1e9; }
    const KvShape& shape() const;
};
// The bytes of the cache; for "pressure" those when every token is in NVFP4.
double kv_bytes(const KvSpec& spec, std::string_view cache);
inline constexpr std::array kKvFormats = {"e4m3", "nvfp4", "mxfp4"};
using KvErrors = std::array<KvError, kKvFormats.size()>;
KvErrors kv_errors(const KvCase& kv);

// ---- model_ranges_figures.cpp
std::string outliers_title(const Ranges& ranges, double ratio, double sqnr_db);
std::string cascade_title(const CascadeSweep& sweep, double tau);
std::string kv_title(const KvSpec& spec);
Figure outliers_figure(const Ranges& ranges, double ratio, double sqnr_db);
Figure contrast_figure(const Ranges& ranges, double contrast);
Figure saturated_figure(const Ranges& ranges);
Figure cascade_figure(const CascadeSweep& sweep, double tau);
Figure cost_figure(const CascadeSweep& sweep, double tau);
Figure margins_figure(const CascadeSweep& sweep, double tau);
Figure kv_memory_figure(const KvSpec& spec);
Figure kv_error_figure(const std::optional<KvErrors>& errors, const KvCase& kv);  // none: not known yet

}  // namespace fp8lab::lower
