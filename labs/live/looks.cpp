#include "labs/live/looks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/units.h"

namespace fp8lab::live {

const FormatInfo* cast_format(const Recipe& recipe, const ModelPlan& plan, TensorId id) {
    const FormatInfo* format = cast_plan(plan.recipe_of(recipe, id), plan.tensor(id).tensor).format;
    return format && format->name != "fp32" ? format : nullptr;
}

Role tensor_role(const Recipe& recipe, const ModelPlan& plan, TensorId id) {
    const FormatInfo* format = cast_format(recipe, plan, id);
    return format ? format->role : Role::truth;
}

std::vector<ArmLook> arm_looks(const std::vector<Recipe>& arms) {
    // The reference is dashed and on top of the others (look.md 6); the second carries the message.
    constexpr std::array<Dash, 3> kDashes = {Dash::dash, Dash::solid, Dash::dot};
    constexpr std::array<float, 3> kWidths = {2, 3, 2};
    std::vector<ArmLook> looks;
    for (std::size_t i = 0; i < arms.size(); ++i) {
        looks.push_back({std::string(arms[i].short_name), arms[i].role, kDashes.at(i), kWidths.at(i)});
    }
    for (std::size_t i = 0; i < arms.size(); ++i) {
        const auto same = [&](const Recipe& other) { return other.short_name == arms[i].short_name; };
        if (std::ranges::count_if(arms, same) > 1) looks[i].name += std::string(" ") + "ABC"[i];
    }
    return looks;
}

double gap_pct(const History& history, std::size_t arm) {
    const auto& arms = history.arms();
    return arm < arms.size() && arms[arm].gap_pct.size() > 0 ? arms[arm].gap_pct.last()
                                                             : std::numeric_limits<double>::quiet_NaN();
}

std::string loss_text(double loss) {
    return loss >= 1e-3 && loss < 100 ? fmt::format("{:#.3g}", loss) : format_number(loss, 3, true);
}

std::string percent_text(double percent) {
    const double size = std::abs(percent);
    if (!std::isfinite(percent)) return format_number(percent, 3, true);
    return fmt::format("{:.{}f}", size, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string signed_percent(double percent) {
    if (!std::isfinite(percent)) return percent_text(percent);
    if (std::abs(percent) < 0.005) return "0.00 %";  // no sign of what rounds to 0
    return (percent < 0 ? "\u2212" : "+") + percent_text(percent) + " %";
}

}  // namespace fp8lab::live
