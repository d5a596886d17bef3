#include "core/inference/serve/draft.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/nn/streams.h"

namespace fp8lab {
namespace {

// The numbers of a round, by what they are for, so that another draft has the same texts before it.
enum class Part : unsigned { text, draft, verdict };
Rng part(std::uint64_t seed, Part which) {
    return Rng(seed, stream(Draw::sample, 1, 0, static_cast<unsigned>(which)));
}

// Rows `first`, first + every, ... of the logits as probabilities.
Matrix<double> rows_of(const Matrix<float>& logits, std::size_t first, std::size_t every,
                       double temperature) {
    Matrix<double> p(logits.rows / every, logits.cols);
    for (std::size_t r = 0; r < p.rows; ++r)
        probabilities(logits.row(first + r * every), temperature, p.row(r));
    return p;
}

TokenBatch drawn_of(const Matrix<double>& p, Rng& rng) {
    TokenBatch next{.sequences = p.rows, .context = 1};
    for (std::size_t r = 0; r < p.rows; ++r) next.tokens.push_back(drawn(p.row(r), rng.uniform()));
    return next;
}

// The texts that the draft goes on from: what both engines have read, and what they say of the next token.
struct Texts {
    KvState<float> target, draft;
    Matrix<double> p, q;
};
Texts write_texts(Engine& target, Engine& draft, const DraftSettings& settings, std::size_t prompt,
                  std::size_t length) {
    Texts texts;
    TokenBatch next = held_out_pieces(target.model(), settings.sequences, prompt, settings.seed);
    Rng rng = part(settings.seed, Part::text);
    for (std::size_t n = prompt;; ++n) {
        const std::size_t last = next.context - 1;
        const auto read = [&](Engine& engine, KvState<float>& state, Matrix<double>& says) {
            says = rows_of(engine.decode(next, state), last, next.context, settings.temperature);
        };
        run_both([&] { read(target, texts.target, texts.p); }, [&] { read(draft, texts.draft, texts.q); });
        if (settings.told) settings.told(n, length);
        if (n == length) return texts;
        next = drawn_of(texts.p, rng);
    }
}

}  // namespace

DraftVerdict verify(std::span<const int> proposed, const Matrix<double>& q, const Matrix<double>& p,
                    Rng& rng) {
    for (std::size_t i = 0; i < proposed.size(); ++i) {
        const auto token = static_cast<std::size_t>(proposed[i]);
        if (rng.uniform() * q.row(i)[token] < p.row(i)[token]) continue;
        std::vector<double> rest(p.cols);
        double sum = 0;
        for (std::size_t c = 0; c < p.cols; ++c) sum += rest[c] = std::max(p.row(i)[c] - q.row(i)[c], 0.0);
        return {i, drawn(rest, rng.uniform() * sum)};
    }
    return {proposed.size(), drawn(p.row(proposed.size()), rng.uniform())};
}

double DraftRun::expected(std::size_t length) const {
    double tokens = 1;
    for (std::size_t k = 0; k < length; ++k) tokens += accepted.at(k);
    return tokens;
}

double DraftRun::speedup(std::size_t length, double cost) const {
    return expected(length) / (static_cast<double>(length) * cost + 1);
}

std::size_t DraftRun::best_length(double cost) const {
    std::size_t best = 1;
    for (std::size_t length = 2; length <= longest(); ++length)
        if (speedup(length, cost) > speedup(best, cost)) best = length;
    return best;
}

double DraftRun::break_even(std::size_t length) const {
    return (expected(length) - 1) / static_cast<double>(length);
}

DraftRun measure_draft(Engine& target, Engine& draft, const DraftSettings& settings) {
    constexpr double kColdest = 1e-3;  // logits divided by less are not finite
    if (settings.temperature != 0 && !(settings.temperature >= kColdest))
        throw usage_error("temperature", fmt::format("is 0, or at least {}", kColdest));
    const std::size_t context = target.model().data().test.context, longest = longest_draft(context);
    const double vocabulary = target.model().spec().vocabulary;
    require_memory("draft", static_cast<double>(settings.sequences * (longest + 3)) * vocabulary *
                                    (sizeof(double) + sizeof(float)) +
                                2 * (cache_memory(target.model(), settings.sequences) +
                                     2 * weights_memory(target.model())));
    draft.detach();
    Texts texts = write_texts(target, draft, settings, context / 8, context * 11 / 16);
    Rng rng = part(settings.seed, Part::draft), verdicts = part(settings.seed, Part::verdict);
    const std::size_t n = settings.sequences;
    std::vector<Matrix<double>> q = {texts.q};
    std::vector<TokenBatch> proposed;
    for (std::size_t k = 0; k < longest; ++k) {
        proposed.push_back(drawn_of(q[k], rng));
        if (k + 1 < longest)
            q.push_back(rows_of(draft.decode(proposed[k], texts.draft), 0, 1, settings.temperature));
    }
    TokenBatch all{.sequences = n, .context = longest};
    for (std::size_t s = 0; s < n; ++s)
        for (const TokenBatch& token : proposed) all.tokens.push_back(token.tokens[s]);
    const Matrix<float>& logits = target.decode(all, texts.target);
    DraftRun run{.sequences = n,
                 .accepted = std::vector<double>(longest),
                 .by_position = std::vector<double>(longest),
                 .reached = std::vector<std::size_t>(longest)};
    Matrix<double> p_of(longest + 1, logits.cols), q_of(longest, logits.cols);
    std::vector<std::size_t> passed(longest);
    for (std::size_t s = 0; s < n; ++s) {
        std::ranges::copy(texts.p.row(s), p_of.row(0).begin());
        for (std::size_t k = 0; k < longest; ++k) {
            probabilities(logits.row(s * longest + k), settings.temperature, p_of.row(k + 1));
            std::ranges::copy(q[k].row(s), q_of.row(k).begin());
        }
        for (std::size_t c = 0; c < p_of.cols; ++c)
            run.alpha += std::min(p_of.row(0)[c], q_of.row(0)[c]) / static_cast<double>(n);
        const auto tokens = std::span(all.tokens).subspan(s * longest, longest);
        const std::size_t accepted = verify(tokens, q_of, p_of, verdicts).accepted;
        for (std::size_t k = 0; k < longest; ++k) run.reached[k] += k <= accepted, passed[k] += k < accepted;
    }
    for (std::size_t k = 0; k < longest; ++k) {
        run.accepted[k] = static_cast<double>(passed[k]) / static_cast<double>(n);
        run.by_position[k] =
            static_cast<double>(passed[k]) / static_cast<double>(run.reached[k]);  // NaN: none
    }
    return run;
}

}  // namespace fp8lab
