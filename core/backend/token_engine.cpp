#include "core/backend/token_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "core/base/error.h"

namespace fp8lab {
namespace {

constexpr std::array kWeights = {
    ServedWeightsInfo{ServedWeights::bf16, "bf16", "BF16", 2},
    ServedWeightsInfo{ServedWeights::e4m3, "e4m3", "E4M3, a scale per tensor"},
    ServedWeightsInfo{ServedWeights::e4m3_row, "e4m3-row", "E4M3, a scale per row"},
    ServedWeightsInfo{ServedWeights::weight_only, "e4m3-weight-only", "E4M3 weights, BF16 inputs"},
};
constexpr std::array<std::string_view, 2> kCaches = {"bf16", "e4m3"};

}  // namespace

std::span<const ServedWeightsInfo> served_weights() { return kWeights; }

const ServedWeightsInfo& info_of(ServedWeights id) {
    return *std::ranges::find(kWeights, id, &ServedWeightsInfo::id);
}

ServedWeights find_served_weights(std::string_view name) {
    const auto hit = std::ranges::find(kWeights, name, &ServedWeightsInfo::name);
    if (hit == kWeights.end())
        throw unknown_name("--weights", "format", name, kWeights,
                           [](const ServedWeightsInfo& info) { return info.name; });
    return hit->id;
}

std::string_view to_string(ServedCache cache) { return kCaches.at(static_cast<std::size_t>(cache)); }

ServedCache find_served_cache(std::string_view name) {
    const auto hit = std::ranges::find(kCaches, name);
    if (hit == kCaches.end())
        throw unknown_name("--kv", "cache", name, kCaches, [](std::string_view n) { return n; });
    return static_cast<ServedCache>(hit - kCaches.begin());
}

void check_served(const TrainSpec& spec) {
    const auto refuse = [](const std::string& why) { throw usage_error("--backend cuda", why); };
    if (spec.model != "transformer")
        refuse(fmt::format("reads tokens with a transformer; this is model {}", spec.model));
    for (const Recipe& recipe : spec.arms)
        if (recipe.act == SwigluForm::clamp)
            refuse("computes SwiGLU without limits; this model was trained with act=clamp");
}

std::string served_weights_names() {
    return fmt::format("{}", fmt::join(kWeights | std::views::transform(&ServedWeightsInfo::name), ", "));
}
std::string served_cache_names() { return fmt::format("{}", fmt::join(kCaches, ", ")); }

}  // namespace fp8lab
