#include "core/inference/serve/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/memory.h"
#include "core/nn/streams.h"

namespace fp8lab {
namespace {

// log softmax(logits / temperature).
void log_probabilities(std::span<const float> logits, double temperature, std::span<double> out) {
    const double top = static_cast<double>(std::ranges::max(logits)) / temperature;
    double sum = 0;
    for (std::size_t c = 0; c < out.size(); ++c) {
        out[c] = static_cast<double>(logits[c]) / temperature - top;
        sum += std::exp(out[c]);
    }
    for (double& value : out) value -= std::log(sum);
}

void check(const Engine& engine, const RolloutSettings& settings) {
    const std::size_t context = engine.model().data().test.context;
    if (!(settings.temperature > 0))
        throw usage_error("temperature", "0 leaves no probabilities to compare; a rollout needs one above 0");
    if (settings.answers == 0) throw usage_error("answers", "at least 1");
    if (settings.prompt + 1 > context)
        throw usage_error("prompt",
                          fmt::format("of {} tokens, and one more, is longer than the context of {}",
                                      settings.prompt, context));
    if (settings.tokens == 0 || settings.prompt + settings.tokens > context)
        throw usage_error("tokens", fmt::format("1 to {}: prompts have {} tokens, the context {}",
                                                context - settings.prompt, settings.prompt, context));
}

}  // namespace

double ess_pct(std::span<const double> log_w, double most) {
    double sum = 0, squares = 0;
    for (const double value : log_w) {
        const double w = std::min(std::exp(value), most);
        sum += w, squares += w * w;
    }
    return 100 * sum * sum / (static_cast<double>(log_w.size()) * squares);
}

double Rollout::mean_abs_d() const {
    double sum = 0;
    for (const double value : d.values) sum += std::abs(value);
    return sum / static_cast<double>(d.values.size());
}

double Rollout::over_2_pct() const {
    const auto above = std::ranges::count_if(d.values, [](double value) { return value > std::log(2.0); });
    return 100 * static_cast<double>(above) / static_cast<double>(d.values.size());
}

double Rollout::ess_pct(std::size_t length, double most) const {
    std::vector<double> log_w(d.rows);
    for (std::size_t r = 0; r < d.rows; ++r)
        for (std::size_t t = 0; t < length; ++t) log_w[r] += d.row(r)[t];
    return fp8lab::ess_pct(log_w, most);
}

std::vector<double> Rollout::ess_pct_by_length() const {
    std::vector<double> out, log_w(d.rows);
    for (std::size_t t = 0; t < d.cols; ++t) {
        for (std::size_t r = 0; r < d.rows; ++r) log_w[r] += d.row(r)[t];
        out.push_back(fp8lab::ess_pct(log_w, std::numeric_limits<double>::infinity()));
    }
    return out;
}

Rollout measure_rollout(Engine& rollout, Engine& trainer, const RolloutSettings& settings) {
    check(rollout, settings);
    const double logits = static_cast<double>(settings.answers * settings.prompt) *
                          static_cast<double>(rollout.model().spec().vocabulary);
    require_memory("mismatch", 2 * (cache_memory(rollout.model(), settings.answers) +
                                    2 * weights_memory(rollout.model()) + sizeof(float) * logits));
    Rollout out{.d = Matrix<double>(settings.answers, settings.tokens)};
    TokenBatch next = held_out_pieces(rollout.model(), settings.answers, settings.prompt, settings.seed);
    trainer.detach();
    KvState<float> drawn_by, read_by;
    Rng rng(settings.seed, stream(Draw::sample, 2));
    for (std::size_t t = 0; t < settings.tokens; ++t) {
        const std::size_t read = next.context;
        const Matrix<float>*low_logits = nullptr, *own_logits = nullptr;
        run_both([&] { low_logits = &rollout.decode(next, drawn_by); },
                 [&] { own_logits = &trainer.decode(next, read_by); });
        const Matrix<float>&low = *low_logits, &own = *own_logits;
        std::vector<double> log_q(low.cols), log_p(low.cols), q(low.cols);
        TokenBatch tokens{.sequences = settings.answers, .context = 1};
        for (std::size_t r = 0; r < settings.answers; ++r) {
            log_probabilities(low.row(r * read + read - 1), settings.temperature, log_q);
            log_probabilities(own.row(r * read + read - 1), settings.temperature, log_p);
            for (std::size_t c = 0; c < q.size(); ++c) {
                q[c] = std::exp(log_q[c]);
                out.kl += q[c] * (log_q[c] - log_p[c]);
            }
            const int token = drawn(q, rng.uniform());
            const auto at = static_cast<std::size_t>(token);
            out.d.row(r)[t] = log_p[at] - log_q[at];
            tokens.tokens.push_back(token);
        }
        next = std::move(tokens);
        if (settings.told) settings.told(t + 1, settings.tokens);
    }
    out.kl /= static_cast<double>(settings.answers * settings.tokens);
    return out;
}

}  // namespace fp8lab
