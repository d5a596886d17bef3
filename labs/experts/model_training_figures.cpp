// The figures of the part "training" of L18.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/experts/model_training.h"

namespace fp8lab::experts {
namespace {

constexpr std::size_t kMeanSteps = 25;
constexpr std::size_t kFirstSteps = 20;  // in which scales are still far off

std::vector<double> steps_of(std::size_t count) {
    std::vector<double> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<double>(i));
    return out;
}

// Of the steps up to each one.
std::vector<double> means(const std::vector<double>& values) {
    std::vector<double> out;
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        sum += values[i];
        if (i >= kMeanSteps) sum -= values[i - kMeanSteps];
        out.push_back(sum / static_cast<double>(std::min(i + 1, kMeanSteps)));
    }
    return out;
}

Style look_of(const std::string& recipe, bool shown) {
    const Recipe parsed = parse_recipe(recipe);
    return {.color = {parsed.role},
            .width = shown ? 3.0F : 2.0F,
            .dash = recipe == "bf16"      ? Dash::long_dash
                    : recipe == "delayed" ? Dash::solid
                                          : Dash::dot,
            .in_legend = false};
}

void add_starved(Figure& figure, const Training& training) {
    const auto [from, to] = training.spec.mixture.starved();
    if (to > from)
        figure.xspan("", from, to, {.color = {Role::muted, Tone::band, 0.14F}, .in_legend = false});
}

AxisSpec step_axis(const Training& training) {
    return {.label = "step", .range = Range{0, static_cast<double>(training.spec.mixture.steps)}};
}

std::string db_text(double db) { return fmt::format("{:.1f}", db); }

}  // namespace

std::string recipe_label(const std::string& recipe) {
    if (recipe == "bf16") return "BF16";
    if (recipe == "delayed") return "FP8, delayed";
    if (recipe == "current") return "FP8, current";
    return std::string(parse_recipe(recipe).short_name);
}

std::string loss_title(const Training& training) {
    if (training.arms.empty()) return {};
    for (const ArmRun& arm : training.arms)
        if (!arm.stopped.empty()) return fmt::format("{} stopped: {}", recipe_label(arm.recipe), arm.stopped);
    const ArmRun* run = training.shown();
    const double gap = run ? training.gap_pct(*run) : std::numeric_limits<double>::quiet_NaN();
    if (!std::isfinite(gap))
        return fmt::format("{} after {} of {} steps", recipe_label(training.arms.back().recipe),
                           training.arms.back().steps(), kMostSteps);
    return fmt::format("{} ends {:.1f} % {} BF16", recipe_label(run->recipe), std::fabs(gap),
                       gap < 0 ? "below" : "above");
}

std::string return_title(const Training& training) {
    const ArmRun* run = training.shown();
    const auto [from, to] = training.spec.mixture.starved();
    if (!run) return {};
    if (to == from) {
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t i = kFirstSteps; i < run->dy_db.size(); ++i) least = std::fmin(least, run->dy_db[i]);
        return std::isfinite(least)
                   ? fmt::format("Expert 1, always with tokens: its worst cast of dy has {} dB",
                                 db_text(least))
                   : "Expert 1: dy is not cast yet";
    }
    if (!std::isfinite(run->return_db))
        return fmt::format("Expert 1 gets no token in steps {} to {}", from, to);
    return fmt::format("Back after {} steps, expert 1 casts dy at {} dB", to - from, db_text(run->return_db));
}

Figure loss_figure(const Training& training) {
    Figure figure{.id = "loss",
                  .title = loss_title(training),
                  .x = step_axis(training),
                  .y = {.label = "loss", .scale = Scale::log10}};
    if (!figure.title.empty()) figure.words = {figure.title + "."};
    add_starved(figure, training);
    for (std::size_t i = training.arms.size(); i-- > 0;) {
        const ArmRun& arm = training.arms[i];
        if (arm.loss.empty()) continue;
        Style thin = look_of(arm.recipe, false);
        thin.width = 1, thin.color.opacity = 0.2F, thin.dash = Dash::solid;
        figure.line("", data(steps_of(arm.loss.size())), data(arm.loss), thin);
    }
    for (std::size_t i = training.arms.size(); i-- > 0;) {  // BF16 last: its dashes are on top
        const ArmRun& arm = training.arms[i];
        if (arm.loss.empty()) continue;
        const std::vector<double> mean = means(arm.loss);
        figure.line(recipe_label(arm.recipe), data(steps_of(mean.size())), data(mean),
                    look_of(arm.recipe, &arm == training.shown()));
        figure.words.push_back(fmt::format("{}: loss {} after {} steps.", recipe_label(arm.recipe),
                                           screen_number(mean.back(), 3), mean.size()));
    }
    return figure;
}

Figure expert_rows_figure(const Training& training) {
    Figure figure{.id = "expert_rows",
                  .title = training.shown() ? "Tokens of expert 1" : "",
                  .x = step_axis(training),
                  .y = {.label = "tokens"}};
    add_starved(figure, training);
    const ArmRun* run = training.shown();
    if (!run) return figure;
    figure.words = {figure.title + " in each step, mean of the blocks."};
    double most = 1;
    for (const double rows : run->rows) most = std::max(most, rows);
    figure.y.range = Range{0, 1.1 * most};
    figure.line("tokens", data(steps_of(run->rows.size())), data(run->rows),
                {.color = {Role::text}, .width = 1.5F, .in_legend = false});
    return figure;
}

Figure dy_figure(const Training& training) {
    Figure figure{.id = "dy_sqnr",
                  .title = return_title(training),
                  .x = step_axis(training),
                  .y = {.label = "SQNR of dy, dB"}};
    add_starved(figure, training);
    if (!figure.title.empty()) figure.words = {figure.title + "."};
    double low = 20, high = 30;
    for (std::size_t i = training.arms.size(); i-- > 0;) {
        const ArmRun& arm = training.arms[i];
        if (arm.recipe == "bf16") continue;
        for (const double db : arm.dy_db)
            if (std::isfinite(db)) low = std::min(low, db), high = std::max(high, db);
        figure.line(recipe_label(arm.recipe), data(steps_of(arm.dy_db.size())), data(arm.dy_db),
                    look_of(arm.recipe, false));
        if (!std::isfinite(arm.return_db)) continue;
        figure.words.push_back(fmt::format("{}: the first cast after the return {} dB, {} % underflow.",
                                           recipe_label(arm.recipe), db_text(arm.return_db),
                                           screen_number(arm.return_underflow_pct, 2)));
    }
    figure.y.range = Range{low - 2, high + 2};
    return figure;
}

}  // namespace fp8lab::experts
