// The figures of L15.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "core/ranks/sums.h"
#include "labs/gpus/model.h"

namespace fp8lab::gpus {
namespace {

struct CurveLook {
    std::string_view sum;
    Role role;
    float width;
    Dash dash;
};
// FP32 is too near 0 for this axis; the BF16 tree stays below the ring.
constexpr std::array kCurves = {
    CurveLook{"e5m2", Role::e5m2, 2, Dash::solid}, CurveLook{"e4m3", Role::e4m3, 3, Dash::solid},
    CurveLook{"bf16", Role::bf16, 2, Dash::long_dash}, CurveLook{"bf16-tree", Role::bf16, 1.5F, Dash::dot},
    CurveLook{"e4m3-wire", Role::e4m3, 2, Dash::dot}};

std::vector<double> powers(int most) {
    std::vector<double> out;
    for (int n = 1; n <= most; n *= 2) out.push_back(n);
    return out;
}

}  // namespace

std::vector<MeasuredPoint> measured_points(const Params& params, const Recorded& recorded) {
    std::vector<MeasuredPoint> out;
    for (const RecordedDdp& ddp : recorded.ddp) {
        const bool same = ddp.median_ms && ddp.layers == "4096-16384-4096" &&
                          ddp.rows == params.rows_per_gpu() && ddp.recipe == "delayed" &&
                          ddp.sum == params.sum && ddp.shard == params.shard &&
                          (ddp.gather == params.gather || !params.sharded());
        if (same) out.push_back({ddp.gpu, ddp.gpus, *ddp.median_ms, 100 * ddp.one_gpu_ms / *ddp.median_ms});
    }
    return out;
}

std::vector<Piece> pieces_of(const StepTimes& step, const StepSpec& spec) {
    std::vector<Piece> out = {{0, step.forward, false, "forward", 0},
                              {step.forward, step.forward + step.backward, false, "backward", 0}};
    double now = step.forward + step.backward;
    const double gradient = kLayer * spec.sum_bytes, weight = kLayer * spec.gather_bytes;
    const auto travel = [&](double from, double time, const char* what, double bytes) {
        out.push_back({from, from + time, true, what, bytes});
        return from + time;
    };
    if (spec.gpus > 1) {
        // Of layer 2: what is not hidden follows the backward pass.
        const double hidden = 2 * step.gradients - step.gradients_shown;
        now = travel(now - hidden, step.gradients, "gradients of layer 2", gradient);
        now = travel(now, step.gradients, "gradients of layer 1", gradient);
    }
    out.push_back({now, now + step.optimiser, false, "AdamW", 0});
    now += step.optimiser;
    if (spec.gpus < 2 || !spec.sharded) return out;
    now = travel(now, step.weights, "weights of layer 1", weight);
    const double late = step.weights_shown - step.weights, hidden = step.weights - late;
    if (hidden > 0) travel(0, hidden, "weights of layer 2, of the step before", weight);
    if (late > 0) travel(now, late, "weights of layer 2", weight);
    return out;
}

Figure step_figure(const Params& params, const Times& times) {
    Figure figure{.id = "step",
                  .title = step_title(params, times),
                  .x = {.label = "ms"},
                  .y = {.range = Range{0, 4.4}, .visible = false}};
    if (!times.source.known()) return figure;
    StepSpec bf16 = params.step_spec();
    bf16.gather_bytes = 2;
    const auto add = [&](const StepTimes& step, const StepSpec& spec, const char* arm, Role role, double y) {
        for (const Piece& piece : pieces_of(step, spec)) {
            const bool weights = piece.what.starts_with("weights");
            const Role fill = piece.what == "AdamW" ? Role::text
                              : !piece.network || weights
                                  ? (weights && spec.gather_bytes == 2 ? Role::bf16 : role)
                                  : Role::bf16;
            const double low = piece.network ? y - 0.5 : y, high = piece.network ? y - 0.1 : y + 0.7;
            figure.band(fmt::format("{}, {}", arm, piece.what), data({piece.from, piece.to}),
                        data({low, low}), data({high, high}),
                        {.color = {fill, Tone::fill}, .in_legend = false});
            if (piece.to > piece.from)
                figure.words.push_back(
                    fmt::format("{}, {}: {:.2f} to {:.2f} ms.", arm, piece.what, piece.from, piece.to));
        }
        figure.words.push_back(fmt::format("{}: the step takes {:.2f} ms, simulated.", arm, step.total()));
    };
    figure.words = {figure.title + "."};
    add(times.bf16, bf16, "BF16", Role::bf16, 3);
    add(times.fp8, params.step_spec(), "FP8", Role::e4m3, 1);
    const double longest = std::max(times.bf16.total(), times.fp8.total());
    figure.x.range = Range{0, longest * 1.04};
    figure.words.push_back(fmt::format("Parts of one {}’s step ({}), NCCL’s times through PyTorch ({}).",
                                       times.source.gpu, times.source.date, times.source.comm_date));
    return figure;
}

Figure sum_figure(const Params& params, const Sums& sums) {
    Figure figure{.id = "sum",
                  .title = sum_title(sums),
                  .x = {.label = "GPUs", .scale = Scale::log2, .range = Range{1, kSumRanks}},
                  .y = {.label = "error of the sum %", .scale = Scale::log10, .range = Range{0.1, 100}}};
    if (sums.curves.empty()) return figure;
    if (params.world() <= kSumRanks) figure.vline("", params.world(), kHairline);
    for (const CurveLook& look : kCurves) {
        const auto curve = std::ranges::find(sums.curves, look.sum, &SumCurve::id);
        if (curve == sums.curves.end()) continue;
        figure.line(sum_label(look.sum), data(powers(kSumRanks)),
                    data({curve->error_pct.begin(), curve->error_pct.end()}),
                    {.color = {look.role}, .width = look.width, .dash = look.dash, .in_legend = false});
    }
    figure.words = {figure.title + "."};
    for (const SumCurve& curve : sums.curves)
        figure.words.push_back(fmt::format(
            "{}: {} % off at 8 GPUs, {} % at 64, {} % at {}, where it keeps {} % of the gradient.",
            sum_label(curve.id), screen_number(curve.error_pct.at(3), 2),
            screen_number(curve.error_pct.at(6), 2), screen_number(curve.error_pct.back(), 2),
            group_thousands(kSumRanks), screen_number(curve.kept_pct.back(), 3)));
    return figure;
}

Figure scaling_figure(const Params& params, const Times& times, const Recorded& recorded) {
    Figure figure{.id = "scaling",
                  .title = scaling_title(params, times, recorded),
                  .x = {.label = "GPUs", .scale = Scale::log2, .range = Range{1, kMostGpus}},
                  .y = {.label = "speed of N GPUs, % of N times one", .range = Range{0, 110}}};
    if (!times.source.known()) return figure;
    figure.vline("", params.world(), kHairline);
    const std::vector<double> x = powers(kMostGpus);
    const auto curve = [&](int rows, double gather_bytes, Style style, const std::string& name) {
        std::vector<double> y;
        StepSpec spec = params.step_spec();
        spec.rows = rows, spec.gather_bytes = gather_bytes;
        for (const double gpus : x) {
            spec.gpus = static_cast<int>(gpus);
            y.push_back(efficiency_pct(times.source.fp8, times.source.links, spec));
        }
        figure.words.push_back(
            fmt::format("{}: {:.0f} % at {} GPUs, simulated.", name, y.back(), group_thousands(kMostGpus)));
        style.in_legend = false;
        figure.line(name, data(x), data(std::move(y)), style);
    };
    figure.words = {figure.title + "."};
    const int rows = params.rows_per_gpu(), eighth = rows / 8;
    const double bytes = params.step_spec().gather_bytes;
    curve(rows, bytes, {.color = {Role::e4m3}, .width = 3}, group_thousands(rows) + " rows");
    curve(eighth, bytes, {.color = {Role::e4m3}, .width = 2}, group_thousands(eighth) + " rows");
    if (bytes != 2 && params.sharded())
        curve(eighth, 2, {.color = {Role::bf16}, .width = 2, .dash = Dash::long_dash}, "BF16 weights");
    std::vector<double> peers_x, peers_y, own_x, own_y;
    const RecordedDdp* first = nullptr;
    for (const RecordedDdp& ddp : recorded.ddp) {
        const auto peer = ddp.peer_ms.find("ddp");
        if (ddp.gpu != times.source.gpu || peer == ddp.peer_ms.end()) continue;
        if (!first) first = &ddp;
        peers_x.push_back(ddp.gpus), peers_y.push_back(100 * first->peer_ms.at("ddp") / peer->second);
    }
    for (const MeasuredPoint& point : measured_points(params, recorded))
        own_x.push_back(point.gpus), own_y.push_back(point.efficiency_pct);
    const auto discs = [&](const char* name, std::vector<double> at, std::vector<double> values, Role role) {
        if (at.empty()) return;
        for (std::size_t i = 0; i < at.size(); ++i)
            figure.words.push_back(
                fmt::format("{}: {:.0f} % at {:.0f} GPUs, recorded.", name, values[i], at[i]));
        figure.scatter(name, data(std::move(at)), data(std::move(values)),
                       {.color = {role}, .marker = Marker::disc, .marker_size = 3.5F, .in_legend = false});
    };
    discs("PyTorch DDP, BF16", std::move(peers_x), std::move(peers_y), Role::text);
    discs("FP8 Lab", std::move(own_x), std::move(own_y), Role::e4m3);
    return figure;
}

Figure ranks_figure(const Params& params, const Outcome& outcome, const Drift& drift) {
    Figure figure{.id = "ranks",
                  .title = ranks_title(params, outcome, drift),
                  .x = {.label = "GPU"},
                  .y = {.label = params.has_bad()   ? "x1 lost %"
                                 : params.sharded() ? "weights read, % from the master weights"
                                                    : "weights, % from those of GPU 0"}};
    std::vector<double> x, y;
    if (!params.sharded() && !params.has_bad())
        for (const DriftCopy& copy : drift.copies) {
            x.push_back(static_cast<double>(x.size())), y.push_back(copy.own_pct);
            figure.words.push_back(
                fmt::format("GPU {}: weights {:08x}, {} % from those of GPU 0; with the same random "
                            "numbers on all {:08x}.",
                            x.back(), copy.own_crc32, pct(copy.own_pct), copy.same_crc32));
        }
    else
        for (const RankRow& row : outcome.rows) {
            x.push_back(row.rank), y.push_back(params.has_bad() ? row.lost_pct : row.off_pct);
            figure.words.push_back(
                params.has_bad() ? fmt::format("GPU {}: {} % of x1 becomes 0, its weights are {}.", row.rank,
                                               pct(row.lost_pct), row.finite ? "finite" : "not finite")
                                 : fmt::format("GPU {}: bytes {:08x}, values {:08x}, {} off {} %.", row.rank,
                                               row.bytes, row.values, kWeight, pct(row.off_pct)));
        }
    figure.words.insert(figure.words.begin(), figure.title + ".");
    if (!x.empty())
        figure.stems("ranks", data(x), data(y), {.color = {Role::sat}, .width = 4, .in_legend = false});
    return figure;
}

Figure paper_figure(const Paper& paper) {
    Figure figure{
        .id = "paper",
        .title = paper.curves.empty() ? "" : "On paper: what the network takes of a step of 7B and 70B",
        .x = {.label = "GPUs", .scale = Scale::log2, .range = Range{8, kMostGpus}},
        .y = {.label = "network, % of the step"}};
    if (paper.curves.empty()) return figure;
    figure.words = {figure.title + "."};
    for (const PaperCurve& curve : paper.curves) {
        std::vector<double> x, y;
        for (const PaperPoint& point : curve.points) x.push_back(point.gpus), y.push_back(point.share_pct());
        const std::string name =
            fmt::format("{}, {}", kPaperModels.at(curve.model).label, curve.fp8 ? "FP8" : "BF16");
        figure.words.push_back(fmt::format("{}: {} % at 8 GPUs, {} % at {}; what breaks: {}.", name,
                                           pct(y.front()), pct(y.back()), group_thousands(kMostGpus),
                                           curve.breaks()));
        figure.line(name, data(std::move(x)), data(std::move(y)),
                    {.color = {curve.fp8 ? Role::e4m3 : Role::bf16},
                     .width = curve.model == 0 ? 2.0F : 3.0F,
                     .dash = curve.fp8 ? Dash::solid : Dash::long_dash,
                     .in_legend = false});
    }
    return figure;
}

}  // namespace fp8lab::gpus
