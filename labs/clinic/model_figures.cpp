#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/clinic/model.h"
#include "labs/live/curves.h"
#include "labs/live/histogram.h"
#include "labs/live/looks.h"

namespace fp8lab::clinic {

namespace {

using live::loss_text, live::TensorTrack;

constexpr int kLongPlateau = 100;  // steps; a shorter one is no sentence

Role role_of(TensorClass tensor) { return tensor == TensorClass::dy ? Role::e5m2 : Role::e4m3; }

const TensorTrack* track_of(const RunPtr& run, TensorId tensor) {
    return run ? &run->arm().tensors.at(tensor.index) : nullptr;
}

Figure strip(const char* id, const RunPtr& run, TensorId tensor) {
    Figure figure{.id = id};
    figure.x = live::step_axis(kSteps);
    if (run) figure.title = fmt::format("{} of {}", id, run->plan.tensor(tensor).name);
    return figure;
}

// Stretches of a series within which a value is less than 8 times the one before.
struct Stretch {
    std::size_t from, to;
};
std::vector<Stretch> stretches(std::span<const double> values) {
    constexpr double kJump = 8;
    std::vector<Stretch> out;
    for (std::size_t s = 0; s < values.size(); ++s) {
        const double ratio = s > 0 ? values[s] / values[s - 1] : 1;
        if (out.empty() || !(ratio < kJump && ratio > 1 / kJump))
            out.push_back({s, s});
        else
            out.back().to = s;
    }
    return out;
}

// The longest stretch of steps in which half of the tensor or more becomes 0; from > to: none of ten steps.
Stretch lost_stretch(std::span<const double> pct) {
    constexpr double kHalf = 50;
    constexpr std::size_t kFew = 10;
    const Stretch none{1, 0};
    const auto length = [](const Stretch& s) { return s.from > s.to ? 0 : s.to - s.from + 1; };
    Stretch longest = none, now = none;
    for (std::size_t s = 0; s < pct.size(); ++s) {
        if (!(pct[s] >= kHalf)) {
            now = none;
            continue;
        }
        now = {length(now) > 0 ? now.from : s, s};
        if (length(now) > length(longest)) longest = now;
    }
    return length(longest) < kFew ? none : longest;
}

// "100 % of x1 becomes 0, steps 657 to 1 680", in the filled stretch; the mean of the run where there is none.
void add_underflow_words(Figure& figure, const TensorTrack& track) {
    constexpr double kMiddle = 50, kFull = 90;
    constexpr std::size_t kWide = 800;  // steps that the words need
    const std::span<const double> pct = track.underflow_pct.values();
    const std::string& name = track.spec.name;
    TextMark mark{kSteps / 2.0, kMiddle, {}, Anchor::center, true};
    mark.boxed = true;
    const Stretch lost = lost_stretch(pct);
    if (lost.from > lost.to) {
        mark.text = fmt::format("{} % of {} becomes 0 in the mean",
                                format_number(track.underflow_mean_pct(), 2, true), name);
    } else {
        double sum = 0;
        for (std::size_t s = lost.from; s <= lost.to; ++s) sum += pct[s];
        const double mean = sum / static_cast<double>(lost.to - lost.from + 1);
        mark.text = fmt::format("{:.0f} % of {} becomes 0, steps {} to {}", mean, name,
                                group_thousands(static_cast<std::int64_t>(lost.from)),
                                group_thousands(static_cast<std::int64_t>(lost.to)));
        if (mean >= kFull && lost.to - lost.from >= kWide) {
            mark.x = static_cast<double>(lost.from + lost.to) / 2;
            mark.ground = Color{Role::under, Tone::fill};
            mark.boxed = false;
        }
    }
    figure.add("", mark, {.color = {Role::text}});
}

// What the cast did to the tensor; empty: little.
std::string cast_words(const TensorView& view) {
    constexpr double kAll = 99.95, kSome = 1;
    const auto lost = static_cast<double>(view.after.zeros - view.before.zeros);
    const double pct = view.before.n > 0 ? 100 * lost / static_cast<double>(view.before.n) : 0;
    return view.before.nonfinite > 0  ? ": not finite"
           : view.after.nonfinite > 0 ? ": cast not finite"
           : pct >= kAll              ? ": all is lost"
           : pct >= kSome             ? ": " + format_number(pct, 3, true) + " % is lost"
                                      : "";
}

}  // namespace

std::string loss_title(const Opened& opened) {
    if (!opened.patient || !opened.reference) return {};
    const Run &patient = *opened.patient, &twin = *opened.twin;
    if (const auto& stopped = patient.arm().stopped)
        return fmt::format("The run ends in step {} of {}", stopped->step, group_thousands(kSteps));
    const Plateau plateau = plateau_of(patient, twin);
    if (plateau.steps >= kLongPlateau)
        return fmt::format("The patient’s loss is above {} times its twin’s from step {} to {}", kPlateau,
                           group_thousands(plateau.from), group_thousands(plateau.from + plateau.steps - 1));
    if (const double times = twin.tail() / opened.reference->tail(); times > kSickTwin)
        return fmt::format("Patient and twin both end {:.1f} × the BF16 reference", times);
    const double gap = gap_pct(patient, twin);
    return fmt::format("The patient ends {} % {} its twin", live::percent_text(std::abs(gap)),
                       gap < 0 ? "below" : "above");
}

Figure loss_figure(const Opened& opened, const Cure& cure, int look) {
    Figure figure{.id = "loss", .title = loss_title(opened), .subtitle = "thin: each batch"};
    figure.x = live::step_axis(kSteps);
    figure.y = {.label = "loss", .scale = Scale::log10};
    if (!opened.patient) return figure;
    const auto line = [&](const std::string& name, const Run& run, const Style& style, bool raw) {
        constexpr float kRaw = 0.22F;
        const live::ArmTrack& arm = run.arm();
        if (raw)
            figure.line(name + ", each batch##raw", arm.step.data(), arm.loss.data(),
                        {.color = {style.color.role, Tone::line, kRaw}, .width = 1, .in_legend = false});
        Style mean = style;
        if (run.ended()) mean.marker = Marker::disc;  // a step or two are no line
        mean.in_legend = false;
        mean.end_label = fmt::format("{} {}", name, run.ended() ? "ended" : loss_text(run.tail()));
        figure.line(name, arm.step.data(), arm.mean.data(), mean);
    };
    line("patient", *opened.patient, {.color = {Role::e4m3}, .width = 3}, true);
    if (opened.twin)
        line("twin", *opened.twin, {.color = {Role::bf16}, .width = 2, .dash = Dash::dash}, false);
    if (cure.is_known())
        line("rerun", *cure.treated, {.color = {Role::text}, .width = 2, .dash = Dash::dot}, false);
    figure.vline("", look);
    return figure;
}

Figure scale_figure(const RunPtr& run, TensorId tensor, int look) {
    Figure figure = strip("scale", run, tensor);
    figure.y = {.label = "scale", .scale = Scale::log10, .visible = false};
    const TensorTrack* track = track_of(run, tensor);
    if (!track) return figure;
    const Color color{role_of(track->spec.tensor)};
    figure.line("scale", track->scale.data(), track->scale.data(),
                {.color = color, .step = true, .in_legend = false});
    std::get<LineSeries>(figure.series.back().shape).x = track->step.data();
    const std::span<const double> scale = track->scale.values();
    double lo = INFINITY, hi = 0;
    for (const double s : scale)
        if (std::isfinite(s) && s > 0) lo = std::min(lo, s), hi = std::max(hi, s);
    constexpr double kRoom = 3;
    if (hi > 0) figure.y.range = Range{lo / kRoom, hi * kRoom};
    constexpr std::size_t kWide = 150;  // steps that a number needs
    for (const Stretch& one : stretches(scale)) {
        if (one.to - one.from < kWide) continue;
        const std::size_t middle = (one.from + one.to) / 2;
        const bool low = scale[middle] * kRoom < hi;
        figure.add("",
                   TextMark{static_cast<double>(middle), scale[middle], format_number(scale[middle], 3, true),
                            Anchor::center, false, 0, low ? -10.0F : 12.0F},
                   {.color = {color.role, Tone::ink}});
    }
    figure.vline("", look);
    return figure;
}

Figure underflow_figure(const RunPtr& run, TensorId tensor, int look) {
    Figure figure = strip("underflow", run, tensor);
    figure.y = {.label = "underflow %", .range = Range{0, 100}, .visible = false};
    const TensorTrack* track = track_of(run, tensor);
    if (!track) return figure;
    const std::size_t steps = track->underflow_pct.size();
    figure.band("underflow", track->underflow_step.data(), data(std::vector<double>(steps, 0.0)),
                track->underflow_pct.data(), {.color = {Role::under, Tone::fill}, .in_legend = false});
    if (track->measured > 0) add_underflow_words(figure, *track);
    figure.vline("", look);
    return figure;
}

Figure histogram_figure(const RunPtr& run, TensorId tensor, int look) {
    Figure figure{.id = "histogram"};
    figure.x = {.label = "|x|", .scale = Scale::log2, .range = Range{0x1p-40, 0x1p8}};
    figure.y = {.label = "% of elements", .range = Range{0, 20}, .visible = false};
    if (!run) return figure;
    const OperandSpec& spec = run->plan.tensor(tensor);
    figure.x.label = fmt::format("|{}|", spec.name);
    const TensorView* view = run->view(tensor, look);
    if (!view) {
        figure.title = spec.name + " was not reached";
        return figure;
    }
    figure.title = fmt::format("{}, {} {}{}", spec.name, view->step == look ? "step" : "nearest record: step",
                               group_thousands(view->step), cast_words(*view));
    live::add_view(figure, *view, role_of(spec.tensor), false);
    return figure;
}

// A run with a spike in its history and its twin, seed 1, as they were recorded: means of 50 steps. The home card is drawn before
// anything is trained.
Figure Clinic::thumbnail() const {
    constexpr std::array<double, 19> kStep = {0,   25,  50,  100,  200,  300,  400,  500,  600, 656,
                                              670, 700, 720, 1200, 1680, 1710, 1730, 1800, 1999};
    constexpr std::array<double, 19> kPatient = {1.99,   1.54,   1.01,   0.197,  0.123, 0.101, 0.0895,
                                                 0.0802, 0.0759, 0.0704, 0.261,  0.677, 0.765, 0.754,
                                                 0.762,  0.35,   0.0726, 0.0689, 0.0673};
    constexpr std::array<double, 19> kTwin = {1.99,   1.53,   1.01,   0.197,  0.123,  0.0997, 0.0882,
                                              0.0786, 0.0747, 0.0694, 0.0696, 0.0688, 0.0666, 0.0538,
                                              0.0472, 0.048,  0.048,  0.0471, 0.0462};
    Figure figure{.id = "thumbnail"};
    figure.y.scale = Scale::log10;
    const auto series = [](const auto& values) {
        return data(std::vector<double>(values.begin(), values.end()));
    };
    figure.line("patient", series(kStep), series(kPatient), {.color = {Role::e4m3}, .width = 3});
    figure.line("BF16 twin", series(kStep), series(kTwin), {.color = {Role::bf16}, .dash = Dash::dash});
    return figure;
}

}  // namespace fp8lab::clinic
