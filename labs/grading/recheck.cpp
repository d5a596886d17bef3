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
#include "labs/grading/rewordings.h"

namespace fp8lab {
namespace {

// Another machine's matrix products in FP32 add in another order: of all values of labs that do not train, that changes
// divergences of L11 most, by 1.5e-3 between OpenBLAS's kernels for SSE3 and for AVX-512 (2026-11-28).
constexpr double kSame = 5e-3;
// A retrained loss: another CPU's matrix products round differently, and 2,000 steps carry that along.
constexpr double kSameLoss = 0.02;

bool same(double a, double b, double tolerance) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

std::string words(const Metric& metric) {
    return metric.text.empty() ? shortest(metric.value) : "'" + metric.text + "'";
}

// The most differences of one kind: forged evidence can claim millions of values.
constexpr std::size_t kMostDiffering = 20;

// Compares only the claimed values: a later version of the lab may have more. Trained ones (LabInfo::trained) only have to
// be values of the lab.
void compare_values(const std::vector<Metric>& claimed, const std::vector<Metric>& found, bool trained,
                    std::vector<std::string>& problems) {
    std::size_t differing = 0;
    for (const Metric& claim : claimed) {
        const auto metric =
            std::ranges::find_if(found, [&](const Metric& m) { return m.name == claim.name; });
        const bool known = metric != found.end();
        if (known && (trained || (claim.text == metric->text && same(claim.value, metric->value, kSame))))
            continue;
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

bool same_condition(const Condition& claimed, const Condition& found, bool trained) {
    if (claimed.met != found.met) return false;
    const bool values = trained || std::ranges::equal(claimed.values, found.values, same_value);
    if (claimed.text == found.text) return values;
    return std::ranges::any_of(rewordings(), [&](const Reworded& words) {
        return words.was == claimed.text && words.now == found.text && (!words.same_values || values);
    });
}

// Each claimed condition is one of the judge's, in the same order. A later version may ask for more; that has to be
// met like all others.
bool stands_in(const std::vector<Condition>& claimed, const std::vector<Condition>& found, bool trained) {
    auto at = found.begin();
    for (const Condition& claim : claimed) {
        at = std::find_if(at, found.end(), [&](const Condition& condition) {
            return same_condition(claim, condition, trained);
        });
        if (at == found.end()) return false;
        ++at;
    }
    return !claimed.empty();
}

void compare_conditions(const Evidence& evidence, const Verdict& verdict, bool trained,
                        std::vector<std::string>& problems) {
    for (const Condition& condition : verdict.conditions)
        if (!condition.met) problems.push_back(fmt::format("not met: {}", condition.text));
    if (!stands_in(evidence.conditions, verdict.conditions, trained))
        problems.emplace_back("its table of conditions is not the one that the judge gives");
}

void compare_measured(const Evidence& evidence, const Verdict& verdict, bool trained,
                      std::vector<std::string>& problems) {
    const auto same_value = [trained](double a, double b) { return trained || same(a, b, kSame); };
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

// Seconds of one processor for the events of one exercise. Most honest attempts take a second; in L17 each engine of a
// rollout takes three.
constexpr double kMostSeconds = 300;

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
    bool live, trained;
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

// One caller computes, and others that ask meanwhile wait for it.
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
                Repeated{lab->live(), lab->info().trained, std::string(to_string(lab->provenance())),
                         std::move(trail)}));
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
    const bool trained = found->trained;
    out.how = found->live ? "judged from its series" : trained ? "repeated, trained here" : "repeated";
    out.verdict = judge_exercise(exercise, found->trail, &evidence.prediction);
    compare_start(evidence, *entry_of(evidence).lab->make(), found->trail.start, out.problems);
    compare_values(evidence.values, found->trail.now().metrics, trained, out.problems);
    compare_conditions(evidence, out.verdict, trained, out.problems);
    compare_measured(evidence, out.verdict, trained, out.problems);
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
