#include "labs/clinic/model_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/scaling/recipe_keys.h"

namespace fp8lab::clinic {

namespace {

constexpr std::array<DiseaseInfo, kDiseases> kDiseaseTable = {{
    {Disease::small_gradients, "window", "1",
     "The gradients are cast to E4M3 without a scale. Most of dy2 lies below the window and becomes 0.",
     "unscaled", "bwd", "e4m3"},
    {Disease::nan_overflow, "NaN", "2",
     "The scale is of the step before, so an amax that grows overflows. This cast does not saturate: what "
     "is above the largest value becomes NaN.",
     "delayed", "overflow", "nonsaturate"},
    {Disease::no_master, "updates", "3",
     "The weights are kept in E4M3 alone. An update is far smaller than the gap between two values, so most "
     "weights stay where they are.",
     "delayed", "master", "none"},
    {Disease::long_history, "spike", "4",
     "One row of one batch is a million times too large. The amax history of 1024 steps keeps it, and the "
     "scale of x1 is far too small until it has left.",
     "delayed", "history", "1024", kDefaultRate, "656:1e6:1"},
    {Disease::high_rate, "rate", "5",
     "The learning rate is 1 instead of 0.002. The twin in BF16 has it too, and ends as high: no format is "
     "to blame.",
     "delayed", "", "", 1},
    {Disease::zero_scale, "zero", "6",
     "The last layer begins at 0. Its amax is 0, the scale is a quotient with 0 below and infinite, and 0 "
     "times infinity is NaN.",
     "current", "zero_amax", "inf", kDefaultRate, "", "zero-last"},
    {Disease::few_bits, "bits", "7",
     "x and w are cast to E5M2, which has a mantissa bit less than E4M3: 6 dB of SQNR.", "delayed", "fwd",
     "e5m2"},
    {Disease::narrow_sum, "narrow", "8",
     "The sums of the matrix products keep 3 mantissa bits, so small terms are lost where the sum is large.",
     "delayed", "acc", "3"},
    {Disease::healthy, "nothing", "10",
     "Nothing is wrong: this is delayed scaling, and what is left is what FP8 costs here.", "delayed", "",
     ""},
}};

constexpr std::array<Treatment, 19> kTreatments = {{
    {"none", "No change", ""},
    {"delayed", "Delayed scaling", "DelayedScaling", "delayed"},
    {"current", "Current scaling", "Float8CurrentScaling", "current"},
    {"mxfp8", "MXFP8", "MXFP8BlockScaling", "mxfp8", "", "", 0, "fwd bwd"},
    {"saturate", "Overflow saturates", "overflow", "", "overflow", "saturate"},
    {"margin", "Margin 1", "margin", "", "margin", "1"},
    {"history-16", "History of 16 steps", "amax_history_len", "", "history", "16"},
    {"history-1024", "History of 1024 steps", "amax_history_len", "", "history", "1024"},
    {"most-recent", "Newest amax of the history", "amax_compute_algo", "", "algo", "most_recent"},
    {"interval", "Scale in every step", "interval", "", "interval", "1"},
    {"zero-amax", "Keep the scale at amax 0", "amax_epsilon", "", "zero_amax", "keep"},
    {"master", "FP32 master weights", "master_weights", "", "master", "fp32"},
    {"stochastic", "Updates rounded at random", "round_update", "", "round_update", "stochastic"},
    {"forward-e4m3", "E4M3 for x and w", "fp8_format", "", "fwd", "e4m3"},
    {"forward-e5m2", "E5M2 for x and w", "fp8_format", "", "fwd", "e5m2"},
    {"backward-e5m2", "E5M2 for gradients", "fp8_format", "", "bwd", "e5m2"},
    {"sums", "Sums in FP32", "acc", "", "acc", "fp32"},
    {"rate", "Learning rate 0.002", "lr", "", "", "", kDefaultRate},
    {"half-rate", "Learning rate 0.001", "lr", "", "", "", 1e-3},
}};

// The row of the option that has an effect on the recipe; null: none has.
const RecipeKey* key_of(const Recipe& recipe, std::string_view name) {
    for (const RecipeKey& key : recipe_keys())
        if (key.name == name && key.applies(recipe)) return &key;
    return nullptr;
}

}  // namespace

std::string RunSpec::recipe() const {
    std::string out = base;
    for (const auto& [name, value] : options) out += fmt::format(":{}={}", name, value);
    return out;
}

TrainSpec RunSpec::train_spec() const {
    TrainOptions out;
    out.steps = kSteps;
    out.schedule = "cosine";
    out.lr = lr;
    out.seed = seed;
    out.poison = poison;
    out.init = init;
    out.recipes = recipe();
    return make_train_spec(out);
}

RunSpec twin_of(RunSpec spec) {
    spec.base = "bf16";
    spec.options.clear();
    return spec;
}
RunSpec reference_of(const RunSpec& spec) {
    RunSpec out = twin_of(spec);
    out.lr = kDefaultRate;
    return out;
}

const DiseaseInfo& info_of(Disease disease) { return kDiseaseTable.at(static_cast<std::size_t>(disease)); }

RunSpec patient_of(Disease disease, std::uint64_t seed) {
    const DiseaseInfo& info = info_of(disease);
    RunSpec out{.base = std::string(info.base),
                .lr = info.lr,
                .poison = std::string(info.poison),
                .init = std::string(info.init),
                .seed = seed};
    if (!info.option.empty()) out.options.emplace_back(info.option, info.value);
    return out;
}

std::array<Disease, kLetters.size()> dealt(int deal) {
    std::array<Disease, kLetters.size()> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Disease>(i);
    if (deal > kHealthyDeals) out[static_cast<std::size_t>(Disease::narrow_sum)] = Disease::healthy;
    if (deal == 0) return out;
    Rng rng(static_cast<std::uint64_t>(deal));
    for (std::uint32_t i = out.size(); i-- > 1;) std::swap(out.at(i), out.at(rng.below(i + 1)));
    return out;
}

std::span<const Treatment> treatments() { return kTreatments; }

const Treatment& find_treatment(std::string_view id, std::string_view where) {
    const auto* const at = std::ranges::find(kTreatments, id, &Treatment::id);
    if (at != kTreatments.end()) return *at;
    std::vector<std::string_view> ids;
    for (const Treatment& one : kTreatments) ids.push_back(one.id);
    throw usage_error(std::string(where), fmt::format("'{}' is none of {}", id, fmt::join(ids, ", ")));
}

RunSpec treated(RunSpec spec, const Treatment& treatment) {
    if (treatment.lr > 0) spec.lr = treatment.lr;
    if (!treatment.base.empty()) {
        spec.base = treatment.base;
        const Recipe recipe = parse_recipe(spec.base);
        const std::vector<std::string_view> drops = split(treatment.drops, ' ');
        std::erase_if(spec.options, [&](const auto& option) {
            return std::ranges::find(drops, option.first) != drops.end() || !key_of(recipe, option.first);
        });
    }
    if (!treatment.option.empty() && key_of(parse_recipe(spec.recipe()), treatment.option)) {
        const auto at = std::ranges::find(spec.options, treatment.option,
                                          [](const auto& option) { return option.first; });
        if (at != spec.options.end()) spec.options.erase(at);
        spec.options.emplace_back(treatment.option, treatment.value);
    }
    return spec;
}

}  // namespace fp8lab::clinic
