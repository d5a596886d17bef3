#include "labs/set_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/files/progress_line.h"
#include "core/threads/ask.h"

namespace fp8lab {
namespace {

std::map<std::string, std::string> texts_of(Lab& lab) {
    std::map<std::string, std::string> texts;
    for (const Field& field : lab.fields()) texts[field.info.name] = field_text(field);
    return texts;
}

double step_of(const Lab& lab) {
    const auto metrics = lab.metrics();
    const auto step = std::ranges::find(metrics, "step", &Metric::name);
    return step == metrics.end() ? 0 : step->value;
}

}  // namespace

void set_fields(Lab& lab, std::span<const std::string> assignments) {
    for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
    const auto asked = texts_of(lab);
    lab.update();
    const auto taken = texts_of(lab);
    for (const std::string& assignment : assignments) {
        const std::string name = assignment.substr(0, assignment.find('='));
        if (asked.at(name) != taken.at(name))
            throw usage_error(name,
                              fmt::format("{} is not possible with the other settings; the lab would use {}",
                                          asked.at(name), taken.at(name)));
    }
}

void advance_told(Lab& lab, int steps, std::string_view doing) {
    ProgressLine progress;
    const double end = step_of(lab) + steps;
    const AskBetween ask([&] {
        if (progress.due()) progress.at(fmt::format("{}: step {:.0f} of {:.0f}", doing, step_of(lab), end));
    });
    lab.advance(steps);
}

void require_steps(const Lab& lab) {
    if (!lab.live()) throw usage_error("--steps", fmt::format("lab {} does not train", lab.info().id));
}

}  // namespace fp8lab
