#include "core/lesson/trail.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double parse(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    double value = 0;
    return read_number(text, value) ? value : kNone;
}

const Metric* find_metric(const State& state, std::string_view name) {
    const auto found = std::find_if(state.metrics.begin(), state.metrics.end(),
                                    [&](const Metric& metric) { return metric.name == name; });
    return found == state.metrics.end() ? nullptr : &*found;
}

}  // namespace

Event sets(std::string field, std::string value) {
    return {Event::Kind::set, std::move(field), std::move(value)};
}
Event acts(std::string action) { return {Event::Kind::act, std::move(action), {}}; }
Event types(std::string name, std::string value) {
    return {Event::Kind::answer, std::move(name), std::move(value)};
}

Event parse_event(std::string_view text) {
    if (text.starts_with('!') && text.size() > 1) return acts(std::string(text.substr(1)));
    const bool answer = text.starts_with('?');
    const std::string_view name =
        answer ? text.substr(1, text.find('=') - 1) : text.substr(0, text.find('='));
    if (name.empty() || text.find('=') == text.npos || name.starts_with('!'))
        throw input_error("", "'" + quote_from(std::string(text)) +
                                  "' is no event; valid: FIELD=VALUE, !ACTION, ?ANSWER=VALUE");
    std::string value(text.substr(text.find('=') + 1));
    return answer ? types(std::string(name), std::move(value)) : sets(std::string(name), std::move(value));
}

double parse_answer(std::string_view text) {
    while (text.ends_with(' ')) text.remove_suffix(1);
    if (text.ends_with('%')) return parse_answer(text.substr(0, text.size() - 1)) / 100;
    for (const char sign : {'/', '^'}) {
        const auto at = text.find(sign);
        if (at == std::string_view::npos) continue;
        const double left = parse(text.substr(0, at)), right = parse(text.substr(at + 1));
        return sign == '/' ? left / right : std::pow(left, right);
    }
    return parse(text);
}

std::string State::field(std::string_view name) const {
    const auto found =
        std::find_if(fields.begin(), fields.end(), [&](const auto& entry) { return entry.first == name; });
    return found == fields.end() ? "" : found->second;
}

std::string State::text(std::string_view name) const {
    const Metric* metric = find_metric(*this, name);
    return metric ? metric->text : field(name);
}

double State::number(std::string_view name) const {
    const Metric* metric = find_metric(*this, name);
    if (metric) return metric->text.empty() ? metric->value : kNone;
    return parse(field(name));
}

bool Trail::visited(const std::function<bool(const State&)>& condition) const {
    return condition(start) ||
           std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return condition(step.after); });
}

bool Trail::did(std::string_view action) const {
    for (const Step& step : steps)
        for (const Event& event : step.events)
            if (event.kind == Event::Kind::act && event.name == action) return true;
    return false;
}

std::string Trail::answered(std::string_view name) const {
    std::string last;
    for (const Step& step : steps)
        for (const Event& event : step.events)
            if (event.kind == Event::Kind::answer && event.name == name) last = event.value;
    return last;
}

double Trail::answered_number(std::string_view name) const { return parse_answer(answered(name)); }

}  // namespace fp8lab
