#include "labs/grading/recheck.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/inspect/scan.h"
#include "core/scaling/recipe.h"
#include "core/tensors/tensor.h"
#include "labs/course/exercise_run.h"

namespace fp8lab {
namespace {

// Another machine's exp and log may differ in the last place, and a mean of many in the last few.
constexpr double kSame = 1e-9;
// A retrained loss: another CPU's matrix products round differently, and 2,000 steps carry that along.
constexpr double kSameLoss = 0.02;

bool same(double a, double b, double tolerance) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

std::string words(const Metric& metric) {
    return metric.text.empty() ? shortest(metric.value) : "'" + metric.text + "'";
}

// Of one kind: forged evidence can claim millions of values.
constexpr std::size_t kMostDiffering = 20;

// Of what is claimed: a later version of the lab may say more.
void compare_values(const std::vector<Metric>& claimed, const std::vector<Metric>& found,
                    std::vector<std::string>& problems) {
    std::size_t differing = 0;
    for (const Metric& claim : claimed) {
        const auto metric =
            std::ranges::find_if(found, [&](const Metric& m) { return m.name == claim.name; });
        const bool known = metric != found.end();
        if (known && claim.text == metric->text && same(claim.value, metric->value, kSame)) continue;
        if (++differing > kMostDiffering) {
            problems.emplace_back("more values differ");
            return;
        }
        problems.push_back(known ? fmt::format("{} is {}, not {}", claim.name, words(*metric), words(claim))
                                 : fmt::format("{} is no value of this lab", claim.name));
    }
}

void compare_start(const Evidence& evidence, Lab& lab, const State& start,
                   std::vector<std::string>& problems) {
    std::size_t differing = 0;
    const std::vector<Field> fields = lab.fields();
    // A later version may show the lab otherwise at first, or let it train at another speed.
    const auto looks = [&](const std::string& name) {
        return std::ranges::any_of(
            fields, [&](const Field& field) { return field.info.looks && field.info.name == name; });
    };
    for (const auto& [name, value] : evidence.start) {
        if (start.field(name) == value || looks(name)) continue;
        if (++differing > kMostDiffering) {
            problems.emplace_back("more fields differ at its start");
            return;
        }
        problems.push_back(fmt::format("it does not start where the exercise does: {} is '{}' there", name,
                                       start.field(name)));
    }
}

// A condition's words in version 0.1.0 before they were put plainly, and today's. Files with the earlier ones
// stand as they did.
struct Reworded {
    std::string_view was, now;
    bool same_values = true;  // false: the judge shows other values beside it today
};
constexpr Reworded kReworded[] = {
    {"nothing changed but the special values", "moved only the control that is needed"},
    {"over three marks or more", "the interval has three marks or more"},
    {"no mark of the notebook\u2019s", "not on the notebook\u2019s grid"},
    {"E4M3, within 0.3 points", "E4M3, within 0.3 percentage points"},
    {"E5M2, within 0.6 points", "E5M2, within 0.6 percentage points"},
    {"all three named rightly", "all three names are right"},
    {"while they carried no names", "the plot showed no names"},
    {"E4M3 cut off the top", "E4M3: a value saturated"},
    {"E4M3 lost the bottom", "E4M3: a value became 0"},
    {"now all seven values survive", "now none saturates and none becomes 0"},
    {"at the least underflow a margin can reach",
     "its underflow is within 0.1 percentage points of the least that a margin gives", false},
    {"E4M3’s other elements lose 3 to 6 dB",
     "E4M3, a Gaussian, scale from the current amax, margin 0: the other elements lose 3 to 6 dB", false},
    {"INT8’s lose 20 dB, by an outlier of 64 or less",
     "INT8, the same: they lose 20 dB or more, outlier 64 or less"},
    {"the notebook’s order looked at: none saturates",
     "B, the notebook’s order, was shown: no step saturates"},
    {"the real order: no step saturates", "A, Transformer Engine’s order: no step saturates"},
    {"with a margin of at most 2", "the margin is 2 or less"},
    {"both reduce as most recent", "both use the reducer most recent"},
    {"at most 3 % become 0 in the 16 after", "at most 3 % become 0 in the 16 steps after"},
    {"EMA saturates more than twice as much",
     "A saturates more than twice as much as B, and B more than 0 %"},
    {"MX by OCP's floor is drawn", "MX with OCP's floor rule is chosen"},
    {"it keeps 0.5 dB less than one scale", "its SQNR is at least 0.5 dB below one scale’s"},
    {"their mean is the number, within 3 standard errors",
     "the draws differ, and their mean is the number, within 3 standard errors"},
    {"a power of two", "the interval is a power of two"},
    {"0.1 % lost at most", "the sum is at most 0.1 % off"},
    {"half as often would lose more", "twice the interval is more than 0.1 % off"},
    {"30 % or more of a gradient lost", "30 % or more of a gradient’s elements became 0"},
    {"no master, nearest: loss 3\u00d7 BF16 or more",
     "2,000 steps without master weights, nearest: loss 3× BF16’s or more"},
    {"no master, dice: within 20 %",
     "2,000 steps without master weights, stochastic: at most 20 % above BF16"},
    {"nothing else between the two runs", "no other setting differs between the two runs"},
    {"recipe delayed on this layer: right within 2 %", "delayed scaling on this layer: right within 2 %"},
    {"now it ends at", "your own format ends at 448 now"},
    {"E5M2’s mean error over E4M3’s", "E5M2’s mean error is 1.8 to 2.3 times E4M3’s"},
    {"Gaussian: margin 2^9 or more within 0.5 dB of the best",
     "E4M3, a Gaussian without outliers, scale not manual: margin 2^9 or more, within 0.5 dB of the best"},
    {"then a log-normal tensor, sigma 3", "then E4M3, a log-normal tensor, sigma 3 or more"},
    {"its underflow is the least that a margin gives",
     "its underflow is within 0.1 percentage points of the least that a margin gives"},
    {"E4M3: the other elements lose 3 to 6 dB",
     "E4M3, a Gaussian, scale from the current amax, margin 0: the other elements lose 3 to 6 dB"},
    {"INT8: they lose 20 dB or more, outlier 64 or less",
     "INT8, the same: they lose 20 dB or more, outlier 64 or less"},
    {"and is finite", "and is finite and above 0"},
    {"no output is NaN", "no output is NaN or infinite"},
    {"×1.5 ran without saturation",
     "×1.5 ran without saturation, scenario, reducer and order as at the start"},
    {"×3 ran without saturation", "×3 ran without saturation, scenario, reducer and order as at the start"},
    {"the spike: ×64, log-normal, sigma 2",
     "the spike: ×64 or more, log-normal, sigma 2 or more, Transformer Engine’s order"},
    {"same format and margin", "same format and margin, both in Transformer Engine’s order"},
    {"one saturates more than twice as much",
     "A saturates more than twice as much as B, and B more than 0 %"},
    {"only the history differs, by 8 or more",
     "format, margin, interval and order are the same, the history differs by 8 or more"},
    {"a Gaussian, all rows alike", "a Gaussian, all rows and columns alike"},
    {"rows that differ", "rows that differ by 4 binades or more"},
    {"scales", "two scales or more"},
    {"largest difference of the copies", "largest difference of the copies: 0"},
    {"the mean of the draws is the number, within 3 standard errors",
     "the draws differ, and their mean is the number, within 3 standard errors"},
    {"the mean of the draws is the number",
     "the draws differ, and their mean is the number, within 3 standard errors"},
    {"results that are no E4M3 values", "results that are no E4M3 values: 0 %"},
    {"A in BF16, B in FP8", "A in BF16, B in FP8 in all layers, no other options"},
    {"2,000 steps", "2,000 steps, unchanged on the way"},
    {"no master weights, nearest: loss 3\u00d7 BF16’s or more",
     "2,000 steps without master weights, nearest: loss 3× BF16’s or more"},
    {"no master weights, stochastic: within 20 % of BF16",
     "2,000 steps without master weights, stochastic: at most 20 % above BF16"},
    {"the loss within 5 % of BF16", "the loss at most 5 % above BF16"},
    {"your waste is right", "your waste, right within 0.02 percentage points"},
    {"your speed-up of the step", "your speed-up of the step, within 2 %"},
    {"your best possible speed-up", "your best possible speed-up, within 2 %"},
    {"FP8 products, FP32 updates: 10 GB or more above BF16 mixed",
     "FP8 products, FP32 updates, activations counted: 10 GB or more above BF16 mixed"},
    {"the weights are on the GPU, in FP8 with their transpose",
     "the weights are on the GPU, FP8 weights with their transpose"},
    {"the offloaded plan at 25 GB/s", "the offloaded plan: 14 GB on one GPU in E4M3, PCIe 25 GB/s"},
    {"Transformer Engine’s default against BF16 mixed",
     "Transformer Engine’s default with FP8 activations, against BF16 mixed"},
    {"digits, no outliers", "digits, no outliers, contrast 1, no smoothing"},
    {"outliers ×64 or more, no smoothing: below 90 %",
     "digits, weights and activations, dynamic scales, contrast 1, outliers ×64 or more, no smoothing: below "
     "90 %"},
    {"digits, weights and activations, dynamic scales",
     "digits, weights and activations, dynamic scales, no outliers, contrast 1, no smoothing"},
    {"E4M3 everywhere, calibrated scales, contrast 4",
     "digits, all weights and activations in E4M3, calibrated scales, contrast 4, no outliers, no smoothing"},
    {"96.5 % right answers", "96.5 % right answers or more"},
    {"MXFP4, then MXFP8", "digits, a cascade of MXFP4, then MXFP8, no outliers, contrast 1, no smoothing"},
    {"97.3 % right answers", "97.3 % right answers or more"},
    {"NVFP4, rotated: at least 2 dB below its SQNR as it is",
     "NVFP4, rotated, to nearest: at least 2 dB below its SQNR as it is"},
    {"MXFP4 on this tensor, rotated: at least 2 dB above",
     "MXFP4 on this tensor, rotated, to nearest: at least 2 dB above"},
    {"text; A in BF16, B in scaled FP8", "text; A in BF16, B in scaled FP8, no linear kept in BF16"},
    {"the first loss of arm B, measured",
     "text: the first loss of arm B, measured, as an untrained head gives it within 1 %"},
    {"a channel aligned after 300 steps", "a channel aligned after 250 to 350 steps"},
    {"arm B is NVFP4 as Transformer Engine has it", "A in BF16, B in NVFP4 as Transformer Engine has it"},
    {"131 072 keys, sigma 3, no sink, E4M3", "131 072 keys, sigma 3, no sink, E4M3, the same seed"},
    {"25 dB and 1 %, as they were", "all demands and the casts as they were: 25 dB, 1 %"},
};

// Version 0.1.0 had names beside some conditions that only the code has: "bf16, delayed", "current, 21 %",
// "normal", "amax". `found` has the names of menus.
bool same_value(const std::string& claimed, const std::string& found) {
    if (claimed == found) return true;
    const auto comma = claimed.find(", ");
    const std::string name = claimed.substr(0, comma), label = recipe_label(name);
    if (comma != claimed.npos) {
        const std::string rest = claimed.substr(comma + 2);
        return found == label + "; " + recipe_label(rest) || found == label + ", " + rest;
    }
    const auto named = [&](const auto& thing) { return thing.id == name && thing.label == found; };
    return std::ranges::any_of(tensor_kinds(), named) || std::ranges::any_of(scan_recipes(), named) ||
           (name == "amax" && found == "amax scale") || (name == "one" && found == "scale 1");
}

bool same_condition(const Condition& claimed, const Condition& found) {
    if (claimed.met != found.met) return false;
    const bool values = std::ranges::equal(claimed.values, found.values, same_value);
    if (claimed.text == found.text) return values;
    return std::ranges::any_of(kReworded, [&](const Reworded& words) {
        return words.was == claimed.text && words.now == found.text && (!words.same_values || values);
    });
}

// Each claimed condition is one of the judge's, in the same order. A later version may ask for more; that has to be
// met like all others.
bool stands_in(const std::vector<Condition>& claimed, const std::vector<Condition>& found) {
    auto at = found.begin();
    for (const Condition& claim : claimed) {
        at = std::find_if(at, found.end(),
                          [&](const Condition& condition) { return same_condition(claim, condition); });
        if (at == found.end()) return false;
        ++at;
    }
    return !claimed.empty();
}

void compare_conditions(const Evidence& evidence, const Verdict& verdict,
                        std::vector<std::string>& problems) {
    for (const Condition& condition : verdict.conditions)
        if (!condition.met) problems.push_back(fmt::format("not met: {}", condition.text));
    if (!stands_in(evidence.conditions, verdict.conditions))
        problems.emplace_back("its table of conditions is not the one that the judge gives");
}

void compare_measured(const Evidence& evidence, const Verdict& verdict, std::vector<std::string>& problems) {
    const auto same_value = [](double a, double b) { return same(a, b, kSame); };
    if (!std::ranges::equal(evidence.measured, verdict.measured, same_value))
        problems.emplace_back("what it holds the prediction against is not what is measured");
}

// What the evidence says of its origin. A training may come from another machine, with another device's word.
void compare_origin(const Evidence& evidence, bool live, std::string_view provenance, const State& now,
                    std::vector<std::string>& problems) {
    if (evidence.seed != now.text("seed"))
        problems.push_back(fmt::format("seed is '{}', not '{}'", now.text("seed"), evidence.seed));
    if (!live && evidence.provenance != provenance)
        problems.push_back(fmt::format("its values are {}, not {}", provenance, evidence.provenance));
}

// Of one processor, for the events of one exercise. Honest attempts take a second, the slowest lab and
// hundreds of events 20.
constexpr double kMostSeconds = 60;

double thread_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Between asking(const std::function<bool()>& stop) {
    if (!stop) return {};
    return [&stop] {
        if (stop()) throw Error(ErrorKind::failed, "", "was not judged: the grading was ended");
    };
}

// The same, and ends what takes too long.
Between limited(const std::function<bool()>& stop) {
    return [ask = asking(stop), until = thread_seconds() + kMostSeconds] {
        if (ask) ask();
        if (thread_seconds() > until)
            throw Error(ErrorKind::failed, "",
                        fmt::format("is not judged: repeating its events takes more than {:.0f} s; begin the "
                                    "exercise again",
                                    kMostSeconds));
    };
}

// Every record of the evidence against a training of the same fields, here and now.
void retrain(const Evidence& evidence, const Exercise& exercise, const Trail& trail, const Between& between,
             Recheck& out) {
    std::vector<Evidence::EventGroup> again = evidence.groups;
    for (std::size_t i = 0; i < again.size(); ++i) {
        if (again[i].record.empty()) continue;
        if (i > 0 && evidence.groups[i].record == evidence.groups[i - 1].record) {
            again[i].record = again[i - 1].record;
            continue;
        }
        const auto lab = find_lab(evidence.lab).make();
        for (const auto& [name, value] : trail.steps[i].after.fields)
            set_field(lab->fields(), name + "=" + value);
        const Event run = acts("run");
        carry_out(*lab, {&run, 1}, between);
        again[i].record = lab->record();
        const State state = observe(*lab);
        for (const Metric& metric : state.metrics)
            if (const double was = trail.steps[i].after.number(metric.name);
                metric.name.starts_with("loss_") && !same(metric.value, was, kSameLoss))
                out.problems.push_back(fmt::format("retrained, {} is {}, not {}", metric.name,
                                                   format_number(metric.value), format_number(was)));
    }
    const auto lab = find_lab(evidence.lab).make();
    const Verdict verdict = judge_exercise(exercise, replay(*lab, exercise, again), &evidence.prediction);
    for (const Condition& condition : verdict.conditions)
        if (!condition.met) out.problems.push_back(fmt::format("retrained, not met: {}", condition.text));
    out.how = "retrained";
}

// Event groups in full, with their lengths: two different ones never have the same key.
std::string key_of(const Evidence& evidence) {
    std::string key = evidence.exercise + '\n';
    const auto add = [&key](std::string_view part) {
        key += fmt::format("{}:", part.size());
        key += part;
    };
    for (const Evidence::EventGroup& group : evidence.groups) {
        key += fmt::format("{}.", group.events.size());
        for (const Event& event : group.events) {
            key += static_cast<char>('0' + static_cast<int>(event.kind));
            add(event.name);
            add(event.value);
        }
        add(group.record);
    }
    return key;
}

}  // namespace

struct Rechecker::Repeated {
    bool live;
    std::string provenance;
    Trail trail;
};

const ExerciseEntry& Rechecker::entry_of(const Evidence& evidence) const {
    const auto entry = std::ranges::find_if(
        all_, [&](const ExerciseEntry& e) { return e.exercise->id == evidence.exercise; });
    if (entry == all_.end())
        throw Error(ErrorKind::failed, "", fmt::format("there is no exercise '{}'", evidence.exercise));
    if (entry->lab->id != evidence.lab)
        throw Error(ErrorKind::failed, "",
                    fmt::format("{} is no exercise of lab '{}'", evidence.exercise, evidence.lab));
    return *entry;
}

// One computes, whoever asks meanwhile waits for it.
std::shared_ptr<const Rechecker::Repeated> Rechecker::repeated(const Evidence& evidence,
                                                               const std::function<bool()>& stop) {
    // The text of the event groups is there twice, in the key and in the trail: a training's series is 0.5 MB per
    // group. The states after them have 4 to 15 KB each.
    constexpr std::size_t kMostBytes = std::size_t{256} << 20, kStateBytes = std::size_t{16} << 10;
    std::string key = key_of(evidence);
    const std::size_t bytes = 2 * key.size() + kStateBytes * (evidence.groups.size() + 1);
    std::promise<std::shared_ptr<const Repeated>> promise;
    std::unique_lock lock{mutex_};
    if (kept_bytes_ + bytes > kMostBytes && !kept_.contains(key)) {  // who waits has the future
        kept_.clear();
        kept_bytes_ = 0;
    }
    const auto [at, is_new] = kept_.try_emplace(std::move(key));
    if (is_new) {
        at->second = promise.get_future().share();
        kept_bytes_ += bytes;
    }
    const auto future = at->second;
    lock.unlock();
    if (is_new) {
        try {
            const ExerciseEntry& entry = entry_of(evidence);
            const auto lab = entry.lab->make();
            Trail trail = replay(*lab, *entry.exercise, evidence.groups, limited(stop));
            promise.set_value(std::make_shared<const Repeated>(
                Repeated{lab->live(), std::string(to_string(lab->provenance())), std::move(trail)}));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    }
    return future.get();
}

void Rechecker::judge_again(const Evidence& evidence, bool rerun, const std::function<bool()>& stop,
                            Recheck& out) {
    const Exercise& exercise = *entry_of(evidence).exercise;
    const auto found = repeated(evidence, stop);
    out.how = found->live ? "judged from its series" : "repeated";
    out.verdict = judge_exercise(exercise, found->trail, &evidence.prediction);
    compare_start(evidence, *entry_of(evidence).lab->make(), found->trail.start, out.problems);
    compare_values(evidence.values, found->trail.now().metrics, out.problems);
    compare_conditions(evidence, out.verdict, out.problems);
    compare_measured(evidence, out.verdict, out.problems);
    compare_origin(evidence, found->live, found->provenance, found->trail.now(), out.problems);
    if (rerun && found->live) retrain(evidence, exercise, found->trail, asking(stop), out);
}

Recheck Rechecker::operator()(const Evidence& evidence, bool rerun, const std::function<bool()>& stop) {
    Recheck out;
    try {
        judge_again(evidence, rerun, stop, out);
    } catch (const Error& error) {
        out.problems.emplace_back(error.where().empty() ? error.why() : error.what());
    } catch (const std::bad_alloc&) {  // says nothing about the evidence
        throw;
    } catch (const std::exception& error) {  // a field, value, action or record that the lab does not take
        out.problems.emplace_back(error.what());
    }
    return out;
}

Recheck recheck(const Evidence& evidence, bool rerun) { return Rechecker()(evidence, rerun); }

}  // namespace fp8lab
