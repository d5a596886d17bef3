#include "core/nn/ranks/rank_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/named.h"
#include "core/base/read_number.h"
#include "core/base/units.h"
#include "core/nn/model.h"
#include "core/nn/streams.h"
#include "core/nn/train_spec.h"
#include "core/ranks/sums.h"
#include "core/scaling/side_cast.h"

namespace fp8lab {
namespace {

constexpr std::array kShards = {Named{Shard::none, "none"}, Named{Shard::zero1, "zero1"}};
constexpr std::array kGathers = {Named{Gather::bf16, "bf16"}, Named{Gather::e4m3, "e4m3"}};
constexpr std::array kWeightScales = {Named{WeightScale::reduced, "reduced"},
                                      Named{WeightScale::shard, "shard"}, Named{WeightScale::own, "own"}};
constexpr std::array kRankAmaxes = {Named{RankAmax::reduced, "reduced"}, Named{RankAmax::local, "local"}};

// Empty: left as it is.
template <class Rows, class Enum>
void set_named(const Rows& names, std::string_view option, const std::string& text, Enum& value) {
    if (!text.empty()) value = parse_named(names, option.substr(2), text, option);
}

template <class T>
std::optional<T> number(std::string_view text) {
    T value{};
    return read_number(text, value) ? std::optional(value) : std::nullopt;
}

// "2:x1e6:1000", "2:nan:1000"
BadRank parse_bad(const std::string& text) {
    const auto wrong = [&] {
        return usage_error("--bad", fmt::format("'{}' is not RANK:nan:STEP or RANK:xFACTOR:STEP", text));
    };
    const std::size_t first = text.find(':'), last = text.rfind(':');
    if (first == last || first == text.npos) throw wrong();
    const std::string_view all = text, kind = all.substr(first + 1, last - first - 1);
    const auto rank = number<int>(all.substr(0, first)), step = number<int>(all.substr(last + 1));
    std::optional<double> factor;
    if (kind == "nan") factor = std::numeric_limits<double>::quiet_NaN();
    if (kind.starts_with('x')) factor = number<double>(kind.substr(1));
    if (!rank || !step || !factor || (kind != "nan" && !std::isfinite(static_cast<float>(*factor))))
        throw wrong();
    return {*rank, *factor, *step};
}

bool has_delayed_activations(const Recipe& recipe) {
    for (const TensorClass tensor : {TensorClass::x, TensorClass::dy})
        for (const Along along : {Along::cols, Along::rows})
            if (side_cast(recipe, tensor, along).delayed) return true;
    return false;
}

[[noreturn]] void without_effect(std::string_view option, std::string_view value, std::string_view why) {
    throw usage_error(std::string(option), fmt::format("{} has no effect {}", value, why));
}

void check_bad(const TrainSpec& spec) {
    if (!spec.ranks.bad) return;
    const BadRank& bad = *spec.ranks.bad;
    if (bad.rank < 0 || bad.rank >= spec.ranks.count)
        throw usage_error("--bad", fmt::format("rank {} is not in 0..{}", bad.rank, spec.ranks.count - 1));
    if (bad.step < 0 || bad.step >= spec.steps)
        throw usage_error("--bad", fmt::format("step {} is not in 0..{}", bad.step, spec.steps - 1));
}

// Some weight of some arm is sent in E4M3.
bool sends_e4m3(const TrainSpec& spec) {
    const ModelPlan plan = model_plan(spec);
    for (const Recipe& arm : spec.arms)
        for (const ParameterSpec& p : plan.parameters)
            if (plan.only_gemms_read(p) &&
                sent_format(spec.ranks, plan.recipe_of(arm, *p.operand)).name == "e4m3")
                return true;
    return false;
}

void check_gather(const TrainSpec& spec, const TrainOptions& options) {
    const Ranks& ranks = spec.ranks;
    const bool e4m3 = ranks.gather == Gather::e4m3;
    if (!ranks.sharded() && !options.gather.empty())
        without_effect("--gather", options.gather, "without --shard zero1");
    if (!e4m3 && !options.weight_scale.empty())
        without_effect("--wscale", options.weight_scale, "without --gather e4m3");
    if (!ranks.sharded()) return;
    for (const Recipe& arm : spec.arms)
        if (arm.act == SwigluForm::smooth)
            throw usage_error("--shard",
                              fmt::format("zero1 sends weights as they are kept; recipe {} multiplies "
                                          "those of down before their cast",
                                          arm.name));
    if (!e4m3) return;
    if (!sends_e4m3(spec))
        without_effect("--gather", "e4m3", "without an arm whose weights have one E4M3 scale per tensor");
    if (spec.accumulate.weights != WeightCache::once)
        throw usage_error("--weight-cache", fmt::format("{}: with --gather e4m3 owners cast once a step",
                                                        to_string(spec.accumulate.weights)));
}

}  // namespace

const FormatInfo& sent_format(const Ranks& ranks, const Recipe& here) {
    const CastPlan plan = side_cast(here, TensorClass::w, Along::cols).plan;
    if (plan.format->name == "fp32") return *plan.format;
    const bool codes = ranks.gather == Gather::e4m3 && plan.format->name == "e4m3" &&
                       plan.granularity == Granularity::tensor && plan.scaled && plan.amax_percentile == 0 &&
                       here.master != MasterWeights::none && !is_split(here, TensorClass::w);
    return find_format(codes ? "e4m3" : "bf16");
}

void set_ranks(TrainSpec& spec, const TrainOptions& options) {
    Ranks& ranks = spec.ranks;
    if (options.devices.size() > 1) {
        if (options.ranks) throw usage_error("--ranks", "--devices has a rank for each GPU");
        spec.devices = options.devices;
        ranks.process = options.process;
    }
    ranks.count = spec.devices.empty() ? options.ranks.value_or(1) : static_cast<int>(spec.devices.size());
    if (const auto& s = options.timeout_s) {
        if (!(*s > 0 && *s <= 86400)) throw usage_error("--timeout", "is not in 0..86400 seconds");
        if (spec.devices.empty()) without_effect("--timeout", shortest(*s), "without several --devices");
        ranks.timeout = std::chrono::milliseconds(std::llround(*s * 1000));
    }
    if (ranks.count < 1 || ranks.count > kMostRanks)
        throw usage_error(spec.devices.empty() ? "--ranks" : "--devices",
                          fmt::format("{} is not in 1..{}", ranks.count, kMostRanks));
    set_named(kShards, "--shard", options.shard, ranks.shard);
    set_named(kGathers, "--gather", options.gather, ranks.gather);
    if (!options.sum.empty()) ranks.sum = find_rank_sum(options.sum, "--sum").id;
    set_named(kWeightScales, "--wscale", options.weight_scale, ranks.weight_scale);
    set_named(kRankAmaxes, "--act-amax", options.act_amax, ranks.amax);
    if (!options.bad.empty()) ranks.bad = parse_bad(options.bad);
}

void check_ranks(const TrainSpec& spec, const TrainOptions& options) {
    const Ranks& ranks = spec.ranks;
    if (ranks.count == 1) {
        const std::array<std::pair<std::string_view, const std::string*>, 6> given = {
            {{"--shard", &options.shard},
             {"--gather", &options.gather},
             {"--sum", &options.sum},
             {"--wscale", &options.weight_scale},
             {"--act-amax", &options.act_amax},
             {"--bad", &options.bad}}};
        for (const auto& [option, text] : given)
            if (!text->empty()) without_effect(option, *text, "with one rank");
        return;
    }
    const int parts = ranks.count * spec.accumulate.micro_batches;
    const std::string micro = spec.accumulate.micro_batches == 1
                                  ? ""
                                  : fmt::format(" of {} micro-batches each", spec.accumulate.micro_batches);
    if (parts > kMostMicroBatches)
        throw usage_error("--ranks", fmt::format("{} ranks{}; the most micro-batches of a step are {}",
                                                 ranks.count, micro, kMostMicroBatches));
    if (spec.batch % parts != 0)
        throw usage_error(
            "--ranks", fmt::format("{} ranks{} do not divide a batch of {}", ranks.count, micro, spec.batch));
    check_gather(spec, options);
    if (!options.act_amax.empty() && std::ranges::none_of(spec.arms, has_delayed_activations))
        without_effect("--act-amax", options.act_amax, "without an arm of delayed scaling");
    check_bad(spec);
}

std::string ranks_text(const Ranks& ranks, const std::vector<int>& devices) {
    const Ranks usual;
    if (ranks.count == 1) return {};
    std::string text = devices.empty() ? fmt::format(" --ranks {}", ranks.count)
                                       : fmt::format(" --devices {}", fmt::join(devices, ","));
    const auto add = [&](std::string_view option, std::string_view value, bool is_usual) {
        if (!is_usual) text += fmt::format(" {} {}", option, value);
    };
    add("--shard", to_string(ranks.shard), ranks.shard == usual.shard);
    add("--gather", to_string(ranks.gather), ranks.gather == usual.gather);
    add("--sum", ranks.sum, ranks.sum == usual.sum);
    add("--wscale", to_string(ranks.weight_scale), ranks.weight_scale == usual.weight_scale);
    add("--act-amax", to_string(ranks.amax), ranks.amax == usual.amax);
    if (const auto& bad = ranks.bad)
        text += fmt::format(" --bad {}:{}:{}", bad->rank,
                            std::isnan(bad->factor) ? "nan" : "x" + shortest(bad->factor), bad->step);
    return text;
}

std::string_view to_string(Shard value) { return name_in(kShards, value); }
std::string_view to_string(Gather value) { return name_in(kGathers, value); }
std::string_view to_string(WeightScale value) { return name_in(kWeightScales, value); }
std::string_view to_string(RankAmax value) { return name_in(kRankAmaxes, value); }

}  // namespace fp8lab
