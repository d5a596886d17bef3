// What labs say while they compute, and that each control that is enabled acts on what it looks as if it acted on.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/figure/csv.h"
#include "labs/four/model.h"
#include "labs/lower/model.h"
#include "labs/memory/model.h"
#include "labs/speed/model.h"
#include "labs/wide/model.h"

using namespace fp8lab;

namespace {

// The numbers of a figure: all of its series, without title and names.
std::string numbers_of(Figure figure) {
    figure.title.clear();
    figure.subtitle.clear();
    figure.words.clear();
    figure.parameters.clear();
    return to_csv(figure);
}

std::vector<std::string> experiments_of(Lab& lab) {
    for (const Field& field : lab.fields())
        if (field.info.name == "experiment") {
            std::vector<std::string> out;
            for (const Choice& choice : field.choices) out.push_back("experiment=" + choice.id);
            return out;
        }
    return {""};
}

}  // namespace

TEST_CASE("no lab gives a figure its title before the figure has its numbers") {
    std::size_t waiting = 0;
    for (const LabEntry& entry : lab_registry()) {
        const auto first = entry.make();
        if (first->live()) continue;
        first->update();
        std::set<std::string>
            shown;  // of the settings at the start: they stay on the stage, faded, until there are others
        for (const Figure& figure : first->figures()) shown.insert(numbers_of(figure));
        for (const std::string& experiment : experiments_of(*first)) {
            CAPTURE(entry.id);
            CAPTURE(experiment);
            const auto lab = entry.make();
            if (!experiment.empty()) set_field(lab->fields(), experiment);
            const std::vector<Figure> before = lab->figures();  // nothing is computed for the experiment yet
            lab->update();
            const std::vector<Figure> after = lab->figures();
            REQUIRE(before.size() == after.size());
            for (std::size_t i = 0; i < before.size(); ++i) {
                const std::string numbers = numbers_of(before[i]);
                const bool known = numbers == numbers_of(after[i]) || shown.contains(numbers);
                CAPTURE(before[i].id);
                CAPTURE(before[i].title);
                waiting += known ? 0 : 1;
                if (!known) CHECK(before[i].title.empty());
                for (const std::string& words : before[i].words)
                    if (!known) CHECK(words != ".");
            }
        }
    }
    CHECK(waiting > 5);  // L11, L12 and L14 compute in a job
}

namespace {

// Values that a field can take besides the present one.
std::vector<std::string> other_values(const Field& field) {
    std::vector<std::string> out;
    for (const Choice& choice : field.choices) out.push_back(choice.id);
    if (std::holds_alternative<bool*>(field.value)) out = {"on", "off"};
    if (std::holds_alternative<int*>(field.value) || std::holds_alternative<double*>(field.value)) {
        const double middle =
            field.logarithmic ? std::sqrt(field.min * field.max) : (field.min + field.max) / 2;
        for (const double value : {field.min, std::round(middle), field.max})
            out.push_back(fmt::format("{}", value));
    }
    std::erase(out, field_text(field));
    return out;
}

using Assignments = std::vector<std::string>;
using Numbers = std::map<std::string, std::string>;  // by "metric gpu_gb", "figure bars"

// Nothing: the settings are refused.
template <class L>
std::optional<Numbers> numbers_with(const Assignments& settings) {
    Numbers out;
    try {
        L lab;
        for (const std::string& setting : settings) set_field(lab.fields(), setting);
        lab.update();
        for (const Metric& metric : lab.metrics())
            out["metric " + metric.name] = fmt::format("{} {}", metric.value, metric.text);
        for (const Figure& figure : lab.figures()) out["figure " + figure.id] = numbers_of(figure);
    } catch (const Error&) {
        return std::nullopt;
    }
    return out;
}

// Whether another value of the field changes the number; of the empty name any number.
template <class L>
bool acts(const Assignments& settings, const Numbers& base, const Field& field, const std::string& number) {
    for (const std::string& value : other_values(field)) {
        Assignments changed = settings;
        changed.push_back(field.info.name + "=" + value);
        const auto now = numbers_with<L>(changed);
        if (!now) continue;
        for (const auto& [name, text] : *now)
            if ((number.empty() || name == number) && (!base.contains(name) || base.at(name) != text))
                return true;
    }
    return false;
}

template <class L>
void check_all_act(const Assignments& settings,
                   const std::function<bool(const L&, const std::string&)>& enabled) {
    CAPTURE(fmt::format("{}", fmt::join(settings, " ")));
    const auto base = numbers_with<L>(settings);
    REQUIRE(base);
    L lab;
    for (const std::string& setting : settings) set_field(lab.fields(), setting);
    lab.update();
    for (const Field& field : lab.fields()) {
        const FieldInfo& info = field.info;
        if (info.looks || info.hidden || info.name == "file" || !enabled(lab, info.name)) continue;
        CAPTURE(info.name);
        CHECK(acts<L>(settings, *base, field, ""));
    }
}

// Of one number: the fields that it has to follow.
template <class L>
void check_follows(const Assignments& settings, const std::string& number, const Assignments& fields) {
    CAPTURE(number);
    const auto base = numbers_with<L>(settings);
    REQUIRE(base);
    REQUIRE(base->contains(number));
    L lab;
    for (const std::string& setting : settings) set_field(lab.fields(), setting);
    for (const std::string& name : fields) {
        CAPTURE(name);
        const std::vector<Field> all = lab.fields();
        const Field* const field = find_field(all, name);
        REQUIRE(field);
        CHECK(acts<L>(settings, *base, *field, number));
    }
}

template <class L>
bool belongs_and_acts(const L& lab, const std::string& field) {
    return lab.applies(field);
}

}  // namespace

TEST_CASE("L11: every control that is enabled changes a number of its experiment") {
    for (const Assignments& settings : {Assignments{"experiment=mix"},
                                        {"experiment=mix", "act_scale=calibrated", "lower=weights"},
                                        {"experiment=cascade"},
                                        {"experiment=kv", "cache=fp8"},
                                        {"experiment=tokens", "all_layers=on"},
                                        {"experiment=tokens", "all_layers=on", "token_by=layers"}})
        check_all_act<lower::LowerLab>(settings, belongs_and_acts<lower::LowerLab>);
}

TEST_CASE("L11: every figure follows the controls that look as if they acted on it") {
    using Lower = lower::LowerLab;
    const Assignments mix = {"experiment=mix", "uniform=nvfp4", "contrast=4", "act_scale=calibrated"};
    check_follows<Lower>(
        mix, "metric sensitivity_2",
        {"lower", "probe", "act_scale", "percentile", "margin", "outlier_ratio", "smoothing", "contrast"});
    const Assignments ranges = {"experiment=ranges", "uniform=e4m3", "contrast=4", "act_scale=calibrated"};
    check_follows<Lower>(ranges, "figure outliers",
                         {"lower", "act_scale", "percentile", "contrast", "smoothing"});
    check_follows<Lower>(ranges, "figure contrast",
                         {"lower", "percentile", "margin", "outlier_ratio", "smoothing"});
}

TEST_CASE("L12: every control that is enabled changes a number") {
    const auto enabled = [](const four::FourLab& lab, const std::string& field) {
        return lab.why_not(field).empty();
    };
    for (const Assignments& settings :
         {Assignments{"rounding=stochastic"}, {"format=mxfp4"}, {"signs=drawn"}})
        check_all_act<four::FourLab>(settings, enabled);
}

TEST_CASE("L14: every control that is enabled changes a number of its experiment") {
    for (const char* fix : {"none", "smooth", "current", "clamp10", "gelu"})
        check_all_act<wide::WideLab>({"experiment=swiglu", std::string("fix=") + fix},
                                     belongs_and_acts<wide::WideLab>);
    check_all_act<wide::WideLab>({"experiment=attention"}, belongs_and_acts<wide::WideLab>);
    for (const char* format : {"bf16", "e4m3", "fp32"})
        for (const char* signal : {"forget", "noise"})
            check_all_act<wide::WideLab>(
                {"experiment=optimiser", std::string("signal=") + signal, std::string("v_format=") + format},
                belongs_and_acts<wide::WideLab>);
}

TEST_CASE(
    "L10: every control that is enabled changes a number, and the plans are computed with what is set") {
    const auto enabled = [](const memory::MemoryLab& lab, const std::string& field) {
        return lab.why_not(field).empty();
    };
    for (const Assignments& settings : {Assignments{"gpus=8", "zero=1", "offload=master"},
                                        {"model=own", "gpus=8", "zero=1", "offload=master"},
                                        {"model=mlp"},
                                        {"plan=inference-fp8"}})
        check_all_act<memory::MemoryLab>(settings, enabled);
    for (const char* figure : {"figure bars", "figure plans"})
        check_follows<memory::MemoryLab>(
            {"gpus=8", "zero=1"}, figure,
            {"model", "batch", "seq", "checkpointing", "gpus", "zero", "attention"});
    check_follows<memory::MemoryLab>({"gpus=8", "zero=1"}, "figure tokens",
                                     {"model", "plan", "compare", "checkpointing", "gpus", "zero"});
}

TEST_CASE("L9: every control changes a number of the recording, or its help says when it does not") {
    const std::map<std::string, std::string> says = {{"pad", "Sizes that are multiples stay as they are."},
                                                     {"repeats", "A recording has its own number."}};
    speed::SpeedLab lab;
    for (const Field& field : lab.fields())
        if (const auto words = says.find(field.info.name); words != says.end())
            CHECK(field.info.help.find(words->second) != std::string::npos);
    const auto enabled = [&](const speed::SpeedLab&, const std::string& field) {
        return !says.contains(field);
    };
    check_all_act<speed::SpeedLab>({}, enabled);
}
