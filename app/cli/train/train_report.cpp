#include "app/cli/train/train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/verb.h"
#include "core/base/units.h"
#include "core/nn/model.h"
#include "core/nn/tokens/zipf.h"
#include "core/scaling/quantizer.h"

namespace fp8lab::cli {

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::string cell(double value) { return std::isnan(value) ? "" : shortest(value); }
std::string cell(float value) { return std::isnan(value) ? "" : shortest(value); }

nlohmann::json number_or_null(double value) {
    if (std::isfinite(value)) return value;
    return nullptr;
}

template <class Value>
double tail_mean(const std::vector<StepRecord>& records, Value value) {
    const std::size_t n = std::min<std::size_t>(records.size(), kTailSteps);
    double sum = 0;
    for (std::size_t i = records.size() - n; i < records.size(); ++i) sum += value(records[i]);
    return n ? sum / static_cast<double>(n) : kNothing;
}

double median_ms(const std::vector<StepRecord>& records) {
    std::vector<double> times;
    for (const StepRecord& record : records) times.push_back(record.step_ms);
    if (times.empty()) return kNothing;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
}

// Mean over the steps in which it is known: a GPU counts in some of the steps only. NaN: in none.
template <class Value>
double mean_of(const std::vector<StepRecord>& records, Value value_of) {
    double sum = 0, counted = 0;
    for (const StepRecord& record : records) {
        const auto value = static_cast<double>(value_of(record));
        if (std::isnan(value)) continue;
        sum += value;
        ++counted;
    }
    return counted > 0 ? sum / counted : kNothing;
}
double mean_of(const std::vector<StepRecord>& records, std::size_t tensor, float TensorRecord::*part) {
    return mean_of(records, [=](const StepRecord& record) { return record.tensors[tensor].*part; });
}

void find_worst_underflow(const std::vector<StepRecord>& records, const ModelPlan& plan,
                          ArmSummary& summary) {
    summary.worst_underflow_pct = summary.lost_l1_pct = summary.lost_energy_pct = kNothing;
    if (records.empty()) return;
    for (std::size_t t = 0; t < records.front().tensors.size(); ++t) {
        const double mean = mean_of(records, t, &TensorRecord::underflow_pct);
        if (std::isnan(mean) || !records.back().tensors[t].applies || mean <= summary.worst_underflow_pct)
            continue;
        summary.worst_underflow_pct = mean;
        summary.worst_underflow = plan.tensors[t].name;
        summary.lost_l1_pct = mean_of(records, t, &TensorRecord::lost_l1_pct);
        summary.lost_energy_pct = mean_of(records, t, &TensorRecord::lost_energy_pct);
    }
}

// The columns of a CSV that only some runs have.
struct MoreColumns {
    bool instruments = false, kurtosis = false, micro_batches = false, loss_scale = false, moments = false,
         ranks = false;
    std::vector<std::size_t>
        second_casts;  // tensors of which an arm casts each GEMM's operand in its own way
};

MoreColumns more_columns(const TrainSpec& spec, const ModelPlan& plan) {
    MoreColumns out{.kurtosis = plan.gated, .second_casts = {}};
    out.instruments = !find_model(spec.model).tokens;
    out.micro_batches = spec.accumulate.micro_batches > 1;
    out.loss_scale = std::ranges::any_of(spec.arms, [](const Recipe& r) { return r.loss_scale > 0; });
    out.ranks = spec.ranks.count > 1;
    out.moments = std::ranges::any_of(spec.arms, has_narrow_moments);
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const TensorClass tensor = plan.tensors[i].tensor;
        if (std::ranges::any_of(spec.arms, [&](const Recipe& recipe) {
                const Recipe here = plan.recipe_of(recipe, {static_cast<std::uint16_t>(i)});
                return cast_plan(here, tensor, gemm_of(tensor, Along::cols)) !=
                       cast_plan(here, tensor, gemm_of(tensor, Along::rows));
            }))
            out.second_casts.push_back(i);
    }
    return out;
}

// In the order of instrument_columns().
void append_instruments(std::string& out, const StepRecord& record, const ModelPlan& plan) {
    for (const TensorRecord& t : record.tensors) out += "," + (t.applies ? cell(t.sqnr_db) : "");
    for (std::size_t i = 0; i < plan.tensors.size(); ++i)
        if (plan.tensors[i].tensor == TensorClass::w)
            out += "," + cell(record.tensors[i].moved_pct) + "," + cell(record.tensors[i].product_error_pct);
}

std::string instrument_columns(const ModelPlan& plan) {
    std::string out;
    for (const OperandSpec& tensor : plan.tensors) out += ",sqnr_db_" + tensor.name;
    for (const OperandSpec& tensor : plan.tensors)
        if (tensor.tensor == TensorClass::w)
            out += fmt::format(",moved_pct_{0},product_error_pct_{0}", tensor.name);
    return out;
}

void append_row(std::string& out, const StepRecord& record, const std::string& recipe, const ModelPlan& plan,
                const MoreColumns& more) {
    out += fmt::format("{},{},{},{},{}", record.step, recipe, shortest(record.loss), cell(record.accuracy),
                       shortest(record.step_ms));
    for (const TensorRecord& t : record.tensors)
        out += t.applies ? fmt::format(",{},{},{},{}", cell(t.amax), cell(t.scale), cell(t.underflow_pct),
                                       cell(t.overflow_pct))
                         : ",,,,";
    for (const TensorRecord& t : record.tensors)
        out += t.applies ? fmt::format(",{},{}", cell(t.lost_l1_pct), cell(t.lost_energy_pct)) : ",,";
    if (more.instruments) append_instruments(out, record, plan);
    for (const TensorRecord& t : record.tensors)
        if (more.kurtosis) out += "," + (t.applies ? cell(t.kurtosis) : "");
    for (const std::size_t i : more.second_casts) out += "," + cell(record.tensors[i].second_sqnr_db);
    if (more.micro_batches) {
        out += "," + cell(record.accumulate_error_pct);
        for (const TensorRecord& t : record.tensors) out += "," + (t.applies ? cell(t.saturated_casts) : "");
    }
    if (more.loss_scale)
        out +=
            record.loss_scale > 0 ? fmt::format(",{},{}", shortest(record.loss_scale), record.skipped) : ",,";
    if (more.moments) out += "," + cell(record.v_zero_pct) + "," + cell(record.large_updates_ppm);
    if (more.ranks) out += "," + cell(record.rank_spread) + "," + cell(record.sum_error);
    out += '\n';
}

// A line end in the text is shown as a sign: the line is one line. Tokens that are no characters write no text.
std::string held_out_line(const ArmSummary& arm, std::size_t width) {
    std::string text = arm.evaluation->prompt + "|" + arm.evaluation->continuation;
    for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos;) text.replace(at, 1, " / ");
    const Evaluation& now = *arm.evaluation;
    const std::string earlier =
        now.text_step == now.step ? "" : fmt::format(" (text after {} steps)", now.text_step);
    return fmt::format("{:<{}}  held-out loss {}{}\n", arm.recipe, width, format_number(now.loss),
                       now.prompt.empty() ? "" : earlier + ": " + text);
}

// "bf16  12 ms a step (GEMM 8.16, casts 1.8, optimiser 1.56, gaps 0.48), 4.2 GB"
std::string cost_line(const ArmSummary& arm, std::size_t width) {
    std::string parts;
    for (const auto& [name, ms] : arm.cost->parts)
        parts += fmt::format("{}{} {}", parts.empty() ? " (" : ", ", name, format_number(ms));
    if (!parts.empty()) parts += ")";
    return fmt::format("{:<{}}  {} ms a step{}, {:.2f} GB\n", arm.recipe, width,
                       format_number(arm.cost->step_ms), parts, arm.cost->memory_bytes / 1e9);
}

// What the losses of task zipf are to be compared with.
struct KnownLosses {
    double entropy, entropy_rate;
};
std::optional<KnownLosses> known_losses(const TrainSpec& spec) {
    if (spec.task != TaskKind::zipf) return std::nullopt;
    const ZipfLanguage language(spec.vocabulary);
    return KnownLosses{language.entropy(), language.entropy_rate()};
}

// What each rank has gathered; without sharding only whether its weights are finite.
nlohmann::json ranks_json(const std::vector<RankState>& ranks) {
    nlohmann::json out = nlohmann::json::array();
    for (const RankState& rank : ranks) {
        nlohmann::json entry = {{"finite", rank.finite}};
        if (rank.bytes_crc32) entry["bytes_crc32"] = fmt::format("{:08x}", *rank.bytes_crc32);
        if (rank.values_crc32) entry["values_crc32"] = fmt::format("{:08x}", *rank.values_crc32);
        for (const RankWeight& weight : rank.weights) {
            entry["amax"].push_back(number_or_null(static_cast<double>(weight.amax)));
            entry["scale"].push_back(number_or_null(static_cast<double>(weight.scale)));
            entry["off_pct"].push_back(number_or_null(weight.off_pct));
        }
        out.push_back(std::move(entry));
    }
    return out;
}

std::string in_brackets(const std::string& reason) { return reason.empty() ? "" : " (" + reason + ")"; }

}  // namespace

TrainReport::TrainReport(const TrainSpec& spec, DeviceInfo device)
    : spec_(spec), device_(std::move(device)), arms_(spec.arms.size()) {}

void TrainReport::add(Snapshot snapshot) {
    steps_done_ = snapshot.step;
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        auto& records = snapshot.arms[i].records;
        std::ranges::move(records, std::back_inserter(arms_[i].records));
        arms_[i].stopped = snapshot.arms[i].stopped;
        arms_[i].provenance = snapshot.arms[i].provenance;
        arms_[i].emulated_because = snapshot.arms[i].emulated_because;
        if (snapshot.arms[i].cost) arms_[i].cost = snapshot.arms[i].cost;
        for (StepRecord& record : arms_[i].records) record.ranks.clear();  // no column has them
        arms_[i].ranks = std::move(snapshot.arms[i].ranks);
        if (snapshot.arms[i].evaluation) arms_[i].evaluation = snapshot.arms[i].evaluation;
    }
}

bool TrainReport::all_as_the_device() const {
    return std::ranges::all_of(arms_,
                               [&](const ArmRun& arm) { return arm.provenance == device_.provenance; });
}

std::vector<ArmSummary> TrainReport::summaries() const {
    std::vector<ArmSummary> all;
    const ModelPlan plan = model_plan(spec_);
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        const auto& records = arms_[i].records;
        ArmSummary summary;
        summary.recipe = spec_.arms[i].name;
        summary.steps = static_cast<int>(records.size());
        summary.first_loss = records.empty() ? kNothing : records.front().loss;
        summary.tail_loss = tail_mean(records, [](const StepRecord& r) { return r.loss; });
        summary.tail_accuracy = tail_mean(records, [](const StepRecord& r) { return r.accuracy; });
        summary.cost = arms_[i].cost;
        summary.evaluation = arms_[i].evaluation;
        summary.provenance = arms_[i].provenance;
        summary.emulated_because = arms_[i].emulated_because;
        summary.median_step_ms = summary.cost ? summary.cost->step_ms : median_ms(records);
        summary.stopped = arms_[i].stopped;
        summary.ranks = arms_[i].ranks;
        summary.gap_pct = i == 0 ? 0 : 100 * (summary.tail_loss / all.front().tail_loss - 1);
        summary.v_zero_pct = mean_of(records, [](const StepRecord& r) { return r.v_zero_pct; });
        summary.large_updates_ppm = mean_of(records, [](const StepRecord& r) { return r.large_updates_ppm; });
        find_worst_underflow(records, plan, summary);
        all.push_back(std::move(summary));
    }
    return all;
}

std::string TrainReport::csv() const {
    std::string out = fmt::format("# fp8lab {} train {}\n# provenance {}, device {}\n", FP8LAB_VERSION,
                                  command_line(spec_), to_string(device_.provenance), device_.name);
    for (std::size_t i = 0; i < arms_.size() && !all_as_the_device(); ++i)
        out += fmt::format("# {}: {}{}\n", spec_.arms[i].name, to_string(arms_[i].provenance),
                           in_brackets(arms_[i].emulated_because));
    out += "step,recipe,loss,accuracy,step_ms";
    const ModelPlan plan = model_plan(spec_);
    const MoreColumns more = more_columns(spec_, plan);
    for (const OperandSpec& tensor : plan.tensors)
        out += fmt::format(",amax_{0},scale_{0},underflow_pct_{0},overflow_pct_{0}", tensor.name);
    for (const OperandSpec& tensor : plan.tensors)  // behind the columns of older versions
        out += fmt::format(",lost_l1_pct_{0},lost_energy_pct_{0}", tensor.name);
    if (more.instruments) out += instrument_columns(plan);
    for (const OperandSpec& tensor : plan.tensors)
        if (more.kurtosis) out += ",kurtosis_" + tensor.name;
    for (const std::size_t i : more.second_casts)
        out += fmt::format(",sqnr_db_{}_{}", plan.tensors[i].name,
                           to_string(gemm_of(plan.tensors[i].tensor, Along::rows)));
    if (more.micro_batches) out += ",accumulate_error_pct";
    for (const OperandSpec& tensor : plan.tensors)
        if (more.micro_batches) out += ",saturated_casts_" + tensor.name;
    if (more.loss_scale) out += ",loss_scale,skipped";
    if (more.moments) out += ",v_zero_pct,large_updates_ppm";
    if (more.ranks) out += ",rank_spread,sum_error";
    out += '\n';
    // Arms side by side, step by step; a stopped arm has fewer rows. Every arm starts at the same step.
    std::size_t longest = 0;
    for (const ArmRun& arm : arms_) longest = std::max(longest, arm.records.size());
    for (std::size_t row = 0; row < longest; ++row)
        for (std::size_t i = 0; i < arms_.size(); ++i)
            if (row < arms_[i].records.size())
                append_row(out, arms_[i].records[row], spec_.arms[i].name, plan, more);
    return out;
}

nlohmann::json TrainReport::json() const {
    nlohmann::json out = json_header(device_, spec_.seed);
    out["command_line"] = command_line(spec_);
    out["steps_done"] = steps_done_;
    out["tail_steps"] = kTailSteps;
    if (const auto known = known_losses(spec_))
        out["language"] = {{"vocabulary", spec_.vocabulary},
                           {"entropy", known->entropy},
                           {"entropy_rate", known->entropy_rate}};
    out["arms"] = nlohmann::json::array();
    for (const ArmSummary& arm : summaries()) {
        nlohmann::json entry = {{"recipe", arm.recipe},
                                {"steps", arm.steps},
                                {"first_loss", number_or_null(arm.first_loss)},
                                {"tail_loss", number_or_null(arm.tail_loss)},
                                {"gap_pct", number_or_null(arm.gap_pct)},
                                {"tail_accuracy", number_or_null(arm.tail_accuracy)},
                                {"median_step_ms", number_or_null(arm.median_step_ms)},
                                {"provenance", to_string(arm.provenance)},
                                {"worst_underflow", nullptr},
                                {"first_nonfinite", nullptr}};
        if (!arm.worst_underflow.empty())
            entry["worst_underflow"] = {{"tensor", arm.worst_underflow},
                                        {"mean_pct", arm.worst_underflow_pct},
                                        {"lost_l1_pct", number_or_null(arm.lost_l1_pct)},
                                        {"lost_energy_pct", number_or_null(arm.lost_energy_pct)}};
        if (!std::isnan(arm.v_zero_pct)) {
            entry["v_zero_pct"] = arm.v_zero_pct;
            entry["large_updates_ppm"] = arm.large_updates_ppm;
        }
        if (!arm.emulated_because.empty()) entry["emulated_because"] = arm.emulated_because;
        if (arm.evaluation) {
            entry["held_out"] = {{"step", arm.evaluation->step},
                                 {"loss", number_or_null(arm.evaluation->loss)},
                                 {"accuracy", number_or_null(arm.evaluation->accuracy)}};
            if (!arm.evaluation->prompt.empty()) {
                entry["held_out"]["prompt"] = arm.evaluation->prompt;
                entry["held_out"]["continuation"] = arm.evaluation->continuation;
                entry["held_out"]["text_step"] = arm.evaluation->text_step;
            }
        }
        if (arm.cost) {
            entry["iqr_step_ms"] = arm.cost->step_q3_ms - arm.cost->step_q1_ms;
            entry["flop"] = arm.cost->flop;
            entry["memory_bytes"] = arm.cost->memory_bytes;
            entry["timed_steps"] = arm.cost->steps;
            for (const auto& [part, ms] : arm.cost->parts) entry["parts_ms"][part] = ms;
        }
        if (arm.stopped)
            entry["first_nonfinite"] = {{"step", arm.stopped->step}, {"tensor", arm.stopped->tensor}};
        if (arm.stopped && arm.stopped->rank) entry["first_nonfinite"]["rank"] = *arm.stopped->rank;
        if (!arm.ranks.empty()) entry["ranks"] = ranks_json(arm.ranks);
        out["arms"].push_back(std::move(entry));
    }
    return out;
}

std::string TrainReport::table() const {
    const auto all = summaries();
    std::size_t width = 6;
    for (const ArmSummary& arm : all) width = std::max(width, arm.recipe.size());
    std::string out =
        fmt::format("{:<{}}  {:>10}  {:>9}  {:>8}  {:>16}  {:>9}  {:>11}  {:>8}\n", "recipe", width,
                    "tail loss", "gap", "accuracy", "worst underflow", "lost L1", "lost energy", "ms/step");
    const auto percent = [](double value) {
        return std::isnan(value) ? std::string("-") : fmt::format("{:.2f} %", value);
    };
    for (const ArmSummary& arm : all) {
        const std::string underflow =
            arm.worst_underflow.empty()
                ? "-"
                : fmt::format("{} {:.2f} %", arm.worst_underflow, arm.worst_underflow_pct);
        out += fmt::format("{:<{}}  {:>10}  {:>9}  {:>8}  {:>16}  {:>9}  {:>11}  {:>8}", arm.recipe, width,
                           format_number(arm.tail_loss), percent(arm.gap_pct),
                           percent(100 * arm.tail_accuracy), underflow, percent(arm.lost_l1_pct),
                           percent(arm.lost_energy_pct), format_number(arm.median_step_ms));
        if (!all_as_the_device())
            out += fmt::format("  {}{}", to_string(arm.provenance), in_brackets(arm.emulated_because));
        if (arm.stopped) out += "  " + to_string(*arm.stopped);
        out += '\n';
    }
    for (const ArmSummary& arm : all)
        if (arm.cost) out += cost_line(arm, width);
    for (const ArmSummary& arm : all)
        if (arm.evaluation) out += held_out_line(arm, width);
    if (const auto known = known_losses(spec_))
        out += fmt::format("entropy of the tokens {:.3f}, entropy rate {:.3f}\n", known->entropy,
                           known->entropy_rate);
    return out + fmt::format("{} steps; tail loss: mean of the last {}; gap: against {}\n", steps_done_,
                             kTailSteps, all.front().recipe);
}

std::string TrainReport::progress() const {
    std::string out = fmt::format("step {} of {}:", steps_done_, spec_.steps);
    for (std::size_t i = 0; i < arms_.size(); ++i)
        if (!arms_[i].records.empty())
            out += fmt::format("{} {} {}", i ? "," : "", spec_.arms[i].name,
                               format_number(arms_[i].records.back().loss));
    return out;
}

}  // namespace fp8lab::cli
