#include "labs/serve/parts/model_rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "labs/serve/model.h"

namespace fp8lab::serve {
namespace {

constexpr std::size_t kPrompt = 8;

// Weights and inputs, the cache, both; and four bits.
const std::array<RolloutEngine, 4>& compared() {
    static const std::array<RolloutEngine, 4> kCompared = {
        {{"bf16", true}, {"e4m3-row", false}, {"e4m3-row", true}, {"nvfp4", false}}};
    return kCompared;
}

EngineSpec engine_of(const RolloutEngine& engine) {
    return {.format = &find_low_format(engine.format, "rollout", RecipeList::activations),
            .cache = &find_cache_scheme(engine.fp8_cache ? "one" : "bf16", "rollout")};
}

// What is kept stays right.
bool same_answers(const RolloutSpec& a, const RolloutSpec& b) {
    return a.network == b.network && a.temperature == b.temperature && a.answers == b.answers;
}

double mean(const std::vector<Rollout>& draws, const auto& value) {
    double sum = 0;
    for (const Rollout& draw : draws) sum += value(draw);
    return sum / static_cast<double>(draws.size());
}

}  // namespace

std::string name_of(const RolloutEngine& engine) {
    const std::string format = label_of(engine.format);
    if (!engine.fp8_cache) return format;
    return format + ", FP8 cache";
}

std::vector<double> RolloutLine::ess_pct(int length, double most) const {
    std::vector<double> out;
    for (const Rollout& draw : draws) out.push_back(draw.ess_pct(static_cast<std::size_t>(length), most));
    std::ranges::sort(out);
    return out;
}
double RolloutLine::median_ess_pct(int length, double most) const {
    return ess_pct(length, most).at(draws.size() / 2);
}
double RolloutLine::mean_abs_d() const {
    return mean(draws, [](const Rollout& r) { return r.mean_abs_d(); });
}
double RolloutLine::kl() const {
    return mean(draws, [](const Rollout& r) { return r.kl; });
}
double RolloutLine::over_2_pct() const {
    return mean(draws, [](const Rollout& r) { return r.over_2_pct(); });
}

double RolloutLine::median_ratio(int length) const {
    std::vector<double> sizes;  // |log w|
    for (const Rollout& draw : draws)
        for (std::size_t r = 0; r < draw.d.rows; ++r) {
            const auto d = draw.d.row(r).first(static_cast<std::size_t>(length));
            sizes.push_back(std::fabs(std::accumulate(d.begin(), d.end(), 0.0)));
        }
    const auto middle = sizes.begin() + std::ssize(sizes) / 2;
    std::ranges::nth_element(sizes, middle);
    return std::exp(*middle);
}

std::array<int, 3> Rollouts::lengths() const {
    const int longest = chosen() ? chosen()->longest() : kMostTokens;
    return {std::max(longest / 7, 1), std::max(longest / 2, 1), longest};
}

double truncation_of(const std::string& truncate) {
    return truncate == "off" ? std::numeric_limits<double>::infinity() : std::stod(truncate);
}

Rollouts RolloutMaker::operator()(const RolloutSpec& spec, const table::Told<Rollouts>& told) {
    if (!model_ || of_.network != spec.network) model_ = make_tokens(spec.network), known_.clear();
    if (!same_answers(of_, spec)) known_.clear();
    of_ = spec;
    std::vector<RolloutEngine> engines = {spec.engine};
    if (spec.others)
        for (const RolloutEngine& other : compared())
            if (other != spec.engine) engines.push_back(other);
    const std::size_t context = model_->data().test.context;
    RolloutSettings settings{.temperature = spec.temperature,
                             .tokens = context > kPrompt + kMostTokens ? kMostTokens : context - kPrompt,
                             .answers = static_cast<std::size_t>(spec.answers),
                             .prompt = kPrompt};
    Rollouts out{.spec = spec, .network = spec.network.network, .data = model_->data().name, .lines = {}};
    for (std::size_t i = 0; i < engines.size(); ++i) {
        RolloutLine& line = known_[name_of(engines[i])];
        line.engine = engines[i];
        while (line.draws.size() < kDraws) {
            const std::size_t drawn = i * kDraws + line.draws.size();
            settings.seed = line.draws.size() + 1;
            settings.told = [&](std::size_t done, std::size_t of) {
                told.share(drawn * of + done, engines.size() * kDraws * of);
            };
            Engine rollout(model_, engine_of(engines[i])), trainer(model_, engine_of({"bf16", false}));
            line.draws.push_back(measure_rollout(rollout, trainer, settings));
            Rollouts so_far = out;
            so_far.lines.push_back(line);
            told.so_far(std::move(so_far));
        }
        out.lines.push_back(line);
    }
    return out;
}

}  // namespace fp8lab::serve
