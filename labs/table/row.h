// A row of a lab's table of fields: the field, the experiment that it belongs to, and why it has no effect. The rows are
// made anew from the parameters each time, so that what depends on them is a plain value.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/fields.h"

namespace fp8lab::table {

struct Row {
    Field field;
    std::string_view of = {};  // the experiments, "mix ranges"; empty: every one
    // Why it has no effect with the other parameters as they are, as a sentence; empty: it has one. Its control is drawn
    // without effect, with the sentence; that of the second tier is left out.
    std::string why_not = {};
    std::string note = {};  // a sentence under the control
    bool shown = true;      // in Explore; false: it means nothing with the other parameters as they are
};

// Groups of rows, one after the other.
inline std::vector<Row> join(std::initializer_list<std::vector<Row>> groups) {
    std::vector<Row> out;
    for (const std::vector<Row>& group : groups) out.insert(out.end(), group.begin(), group.end());
    return out;
}

// Whether a Row::of or Part::of has the experiment.
inline bool has_experiment(std::string_view of, std::string_view experiment) {
    const auto words = fmt::format(" {} ", of);
    return of.empty() || words.find(fmt::format(" {} ", experiment)) != words.npos;
}

// A number of the result. It is asked for only while its experiment is shown and has a result; otherwise it is NaN, or
// the words "not computed".
struct MetricRow {
    std::string name, unit = {};
    std::function<double()> value = {};
    std::function<std::string()> text = {};  // set instead of `value` where the metric is a word
};
// Of a result that is always there.
inline MetricRow known(std::string name, double value, std::string unit = {}) {
    return {std::move(name), std::move(unit), [value] { return value; }};
}
inline MetricRow known_word(std::string name, std::string text) {
    return {.name = std::move(name), .text = [text = std::move(text)] { return text; }};
}

}  // namespace fp8lab::table
