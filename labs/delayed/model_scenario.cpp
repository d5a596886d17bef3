#include "labs/delayed/model_scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/scaling/quantizer.h"
#include "core/tensors/file.h"
#include "core/threads/parallel.h"

namespace fp8lab::delayed {

namespace {

constexpr int kFreshSteps = 40, kGrowthSteps = 24, kPoisonSteps = 12;
// Elements of all steps together: what is drawn, and what is cast, while a slider moves.
constexpr int kMostDrawn = 1 << 21, kMostCast = 1 << 24;

struct Kind {
    std::string_view id, label;
    bool growth = false, jump = false, jump_at = false;
    bool fresh = false;              // a fresh draw every step
    std::string_view recorded = {};  // asset with the amaxes
};
constexpr std::array kKinds = {
    Kind{"trace", "Spike at step 3"},
    Kind{.id = "ramp", .label = "Ramp of the FP8 notebook", .recorded = "series/notebook_ramp.txt"},
    Kind{.id = "growth", .label = "Growth", .growth = true},
    Kind{.id = "spike", .label = "Spike", .jump = true, .jump_at = true, .fresh = true},
    Kind{.id = "shift", .label = "Regime shift", .jump = true, .jump_at = true, .fresh = true},
    Kind{.id = "vanishing", .label = "Vanishing", .growth = true, .fresh = true},
    Kind{.id = "poison", .label = "Poisoned step", .jump = true, .jump_at = true},
    Kind{.id = "cold", .label = "Cold start", .jump = true},
    Kind{.id = "x1", .label = "Recorded in L8: input x1", .recorded = "series/l8_x1.txt"},
    Kind{.id = "w1", .label = "Recorded in L8: weight w1", .recorded = "series/l8_w1.txt"},
    Kind{.id = "dy1", .label = "Recorded in L8: gradient dy1", .recorded = "series/l8_dy1.txt"},
    Kind{.id = "file", .label = "Amaxes of your own"},
    Kind{.id = "rows", .label = "Rows of your own tensor", .fresh = true},
};

const Kind& find_kind(std::string_view id) {
    const auto it =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& kind) { return kind.id == id; });
    if (it == kKinds.end())
        throw unknown_name("scenario", "scenario", id, kKinds, [](const Kind& kind) { return kind.id; });
    return *it;
}

std::vector<float> read_series(const std::filesystem::path& path) {
    if (path.empty())
        throw usage_error("series", "no file is named; the scenario 'file' reads one amax per line");
    std::vector<float> out = parse_amax(read_text(path), path.string());
    if (out.empty()) throw input_error(path.string(), "holds no amax");
    return out;
}

// The amaxes of the worked example of numerics.md 3.2: a jump that is too fast, one that is not, a spike, and after
// it.
std::vector<float> worked_example() { return {2, 4, 3, 100, 2, 2, 2, 2, 2}; }

// What each step multiplies its draw by.
std::vector<float> levels_of(const ScenarioSpec& spec, const Kind& kind) {
    if (spec.kind == "trace") return worked_example();
    if (spec.kind == "file") return read_series(spec.series);
    if (!kind.recorded.empty()) return read_series(asset(kind.recorded));
    const double jump = spec.jump;
    const auto generate = [](int steps, auto level) {
        std::vector<float> out;
        for (int t = 0; t < steps; ++t) out.push_back(static_cast<float>(level(t)));
        return out;
    };
    const int at = spec.jump_at;
    if (spec.kind == "growth") return generate(kGrowthSteps, [&](int t) { return std::pow(spec.growth, t); });
    if (spec.kind == "vanishing")
        return generate(kFreshSteps, [&](int t) { return std::pow(spec.growth, -t); });
    if (spec.kind == "spike")
        return generate(std::max(kFreshSteps, at + 20), [&](int t) { return t == at ? jump : 1.0; });
    if (spec.kind == "shift")
        return generate(std::max(kFreshSteps, at + 20), [&](int t) { return t >= at ? jump : 1.0; });
    if (spec.kind == "cold") return generate(kPoisonSteps, [&](int) { return jump; });
    constexpr double kBefore = 2;  // numerics.md 6, row 15
    return generate(std::max(kPoisonSteps, at + 10), [&](int t) {
        return t < at ? kBefore : t == at ? std::numeric_limits<double>::infinity() : kBefore * jump;
    });
}

// Every k-th element, and the largest one, of a tensor with more than `most`.
void thin(std::vector<float>& values, std::size_t most) {
    if (values.size() <= most) return;
    const auto larger = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    const float largest = *std::max_element(values.begin(), values.end(), larger);
    const std::size_t stride = (values.size() + most - 1) / most;
    std::vector<float> kept = {largest};
    for (std::size_t i = stride; i < values.size(); i += stride) kept.push_back(values[i]);
    values = std::move(kept);
}

// One row per step; of a large tensor the first rows.
Tensor rows_of(const ScenarioSpec& spec) {
    if (spec.tensor.file.empty())
        throw usage_error("file",
                          "no file is named; the scenario 'rows' takes the rows of a tensor as steps");
    // As it is in its file: what an amax that is not finite does to the history is what this lab shows.
    Tensor out = read_tensor(spec.tensor.file);
    if (out.values.empty()) throw input_error(spec.tensor.file, "has no row");
    out.rows = std::min(out.rows, std::max<std::size_t>(kMostCast / out.cols, 1));
    out.values.resize(out.rows * out.cols);
    return out;
}

}  // namespace

std::vector<Choice> scenario_choices() {
    std::vector<Choice> out;
    for (const Kind& kind : kKinds) out.push_back({std::string(kind.id), std::string(kind.label)});
    return out;
}

bool uses_growth(std::string_view kind) { return find_kind(kind).growth; }
bool uses_jump(std::string_view kind) { return find_kind(kind).jump; }
bool uses_jump_at(std::string_view kind) { return find_kind(kind).jump_at; }

Tensors::Tensors(const ScenarioSpec& spec) {
    const Kind& kind = find_kind(spec.kind);
    if (spec.kind == "rows") {
        Tensor own = rows_of(spec);
        levels_.assign(own.rows, 1);
        if (own.excluded.count() > 0) note_ = ", " + own.excluded.words() + " as in the file";
        draws_ = std::move(own.values);
        per_step_ = own.cols, fresh_ = true;
        for (std::size_t t = 0; t < own.rows; ++t)
            amaxes_.push_back(amax(std::span(draws_).subspan(t * per_step_, per_step_)));
        return;
    }
    levels_ = levels_of(spec, kind);
    TensorSpec draw = spec.tensor;
    const int count = static_cast<int>(levels_.size());
    const int cols = std::min(draw.cols, kMostDrawn / count);
    if (kind.fresh) draw.cols = cols * count;
    Tensor drawn = make_tensor(draw);
    note_ = drawn.excluded.note();
    draws_ = std::move(drawn.values);
    // A tensor that is not drawn at random, the user's own say, is the same in every step.
    fresh_ = kind.fresh && draws_.size() == static_cast<std::size_t>(draw.cols);
    per_step_ = fresh_ ? static_cast<std::size_t>(cols) : draws_.size();
    amaxes_ = levels_;
    if (fresh_) {
        for (std::size_t t = 0; t < steps(); ++t)
            amaxes_[t] = amax(std::span(draws_).subspan(t * per_step_, per_step_)) * levels_[t];
        return;
    }
    thin(draws_, static_cast<std::size_t>(std::max(kMostCast / count, 4096)));
    per_step_ = draws_.size();
    // Scaled to an amax of 1: the largest element exactly, so that a step's amax is exactly what was asked
    // for.
    const float size = amax(draws_);
    for (float& x : draws_) x = size > 0 && std::isfinite(size) ? x / size : 0;
    const auto at = std::max_element(draws_.begin(), draws_.end(),
                                     [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    largest_ = static_cast<std::size_t>(at - draws_.begin());
}

std::vector<float> Tensors::at(std::size_t step) const {
    const auto first = draws_.begin() + static_cast<std::ptrdiff_t>(fresh_ ? step * per_step_ : 0);
    std::vector<float> out(first, first + static_cast<std::ptrdiff_t>(per_step_));
    const float level = levels_[step];
    if (std::isfinite(level)) {
        for (float& x : out) x *= level;
        return out;
    }
    // A poisoned step is the one before it with one element that is not finite.
    const float before = step > 0 && std::isfinite(levels_[step - 1]) ? levels_[step - 1] : 1;
    for (float& x : out) x *= before;
    out[largest_] = level;
    return out;
}

CastStats Tensors::cast(std::size_t step, const FormatInfo& format, float scale) const {
    const std::vector<float> x = at(step);
    std::vector<float> q(x.size());
    CastPlan plan;
    plan.format = &format;
    plan.scaled = true;
    return quantize(plan, x, q, {.rows = 1, .cols = x.size(), .tensor_scale = scale}).stats;
}

std::vector<CastStats> Tensors::cast(const FormatInfo& format, const std::vector<MachineStep>& steps) const {
    std::map<std::tuple<float, float, std::size_t>, std::size_t> first;  // level, scale, draw -> step
    std::vector<std::size_t> same(steps.size()), distinct;
    for (std::size_t t = 0; t < steps.size(); ++t) {
        const bool own = fresh_ || !std::isfinite(levels_[t]);
        const auto [it, is_new] =
            first.try_emplace({own ? 0 : levels_[t], steps[t].scale_used, own ? t + 1 : 0}, t);
        same[t] = it->second;
        if (is_new) distinct.push_back(t);
    }
    std::vector<CastStats> out(steps.size());
    parallel_for(distinct.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            out[distinct[i]] = cast(distinct[i], format, steps[distinct[i]].scale_used);
    });
    for (std::size_t t = 0; t < steps.size(); ++t) out[t] = out[same[t]];
    return out;
}

}  // namespace fp8lab::delayed
