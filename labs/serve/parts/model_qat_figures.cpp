// The figure of the part "qat" of L17.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/parts/model_qat.h"

namespace fp8lab::serve {
namespace {

// "1.6 times closer"; of what is left of the divergence.
std::string against_nearest(double divergence, double nearest) {
    const bool closer = divergence <= nearest;
    const double ratio = closer ? nearest / divergence : divergence / nearest;
    return fmt::format("{} times {}", screen_number(ratio, 2), closer ? "closer" : "further");
}

}  // namespace

std::string train_back_title(const Qat& qat, bool with_teacher) {
    const std::vector<double> curve = qat.of(with_teacher).median();
    if (curve.empty()) return {};
    return fmt::format("Training on {} ends {} than to nearest, GPTQ without training {}",
                       with_teacher ? "a teacher" : "labels", against_nearest(curve.back(), qat.nearest),
                       against_nearest(qat.gptq, qat.nearest));
}

Figure train_back_figure(const Qat& qat, bool with_teacher) {
    Figure figure{.id = "train_back",
                  .title = train_back_title(qat, with_teacher),
                  .x = {.label = "steps", .range = Range{0, static_cast<double>(qat.spec.steps)}},
                  .y = {.label = "divergence from FP32, nats", .scale = Scale::log10}};
    if (qat.steps.empty() || qat.labels.seeds.empty()) return figure;
    figure.words = {figure.title + ".",
                    fmt::format("To nearest {} nats, GPTQ {}.", screen_number(qat.nearest, 3),
                                screen_number(qat.gptq, 3))};
    double low = std::min(qat.nearest, qat.gptq), high = std::max(qat.nearest, qat.gptq);
    const Role role = find_low_format(qat.spec.scheme, "scheme").role;
    const auto level = [&](const char* name, double value, Dash dash) {
        figure.line(name, data({0, static_cast<double>(qat.spec.steps)}), data({value, value}),
                    {.color = {Role::axis}, .width = 1.5F, .dash = dash});
    };
    level("to nearest", qat.nearest, Dash::dash);
    level("GPTQ", qat.gptq, Dash::long_dash);
    const auto add = [&](const QatCurve& curve, const char* name, bool chosen) {
        if (curve.seeds.empty()) return;
        std::vector<double> least = curve.seeds.front(), most = least;
        for (const auto& seed : curve.seeds)
            for (std::size_t i = 0; i < seed.size(); ++i)
                least[i] = std::min(least[i], seed[i]), most[i] = std::max(most[i], seed[i]);
        low = std::min(low, *std::ranges::min_element(least));
        high = std::max(high, *std::ranges::max_element(most));
        const std::vector<double> median = curve.median();
        figure.words.push_back(
            fmt::format("Trained on {}: {} nats after {} steps, the median of {} trainings ({} to {}).", name,
                        screen_number(median.back(), 3), qat.spec.steps, curve.seeds.size(),
                        screen_number(least.back(), 3), screen_number(most.back(), 3)));
        if (chosen)
            figure.band("", data(qat.steps), data(least), data(most),
                        {.color = {role, Tone::tint}, .in_legend = false});
        figure.line(name, data(qat.steps), data(median),
                    {.color = {role},
                     .width = chosen ? 3.0F : 2.0F,
                     .dash = std::string_view(name) == "teacher" ? Dash::dot : Dash::solid});
    };
    add(qat.of(!with_teacher), with_teacher ? "labels" : "teacher", false);
    add(qat.of(with_teacher), with_teacher ? "teacher" : "labels", true);
    figure.y.range = Range{low * 0.8, high * 1.25};
    return figure;
}

}  // namespace fp8lab::serve
