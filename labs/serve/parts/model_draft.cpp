#include "labs/serve/parts/model_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/streams.h"

namespace fp8lab::serve {
namespace {

constexpr std::size_t kRoundContext = 24;  // held-out tokens before a verification that is shown

EngineSpec engine_of(const std::string& scheme, bool both) {
    return {.format = &find_low_format(scheme, "draft", both ? RecipeList::activations : RecipeList::weights),
            .both = both};
}

// What is kept of the model stays right.
bool same_texts(const DraftSpec& a, const DraftSpec& b) {
    return a.network == b.network && a.both == b.both && a.temperature == b.temperature;
}

// Characters that would not be seen, as signs that the fonts have.
std::string shown(char symbol) { return symbol == '\n' ? "¶" : symbol == ' ' ? "·" : std::string(1, symbol); }

// The probabilities of the last `rows` tokens of one sequence.
Matrix<double> last_rows(const Matrix<float>& logits, std::size_t rows, double temperature) {
    Matrix<double> p(rows, logits.cols);
    for (std::size_t r = 0; r < rows; ++r)
        probabilities(logits.row(logits.rows - rows + r), temperature, p.row(r));
    return p;
}
TokenBatch one_token(int token) { return {.sequences = 1, .context = 1, .tokens = {token}}; }

}  // namespace

double DraftPrice::of(double bits) const {
    constexpr double kTold = 1.0 / 7;  // of the claim "FP4 drafts are 7 times as fast"
    if (cost == "own") return own;
    return cost == "bytes" ? bits / (target == "bf16" ? 16 : 8) : kTold;
}

Drafts DraftMaker::operator()(const DraftSpec& spec, const table::Told<Drafts>& told) {
    if (!model_ || of_.network != spec.network) model_ = make_tokens(spec.network), known_.clear();
    if (!same_texts(of_, spec)) known_.clear();
    of_ = spec;
    std::vector<std::string> ids = {spec.draft};
    if (spec.others)
        for (const char* id : kDrafts)
            if (id != spec.draft) ids.emplace_back(id);
    Drafts out{.spec = spec, .network = spec.network.network, .data = model_->data().name, .curves = {}};
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::string& id = ids[i];
        if (!known_.contains(id)) {
            const EngineSpec how = engine_of(id, spec.both);
            Engine target(model_, {}), low(model_, how);
            DraftSettings settings{.temperature = spec.temperature};
            settings.told = [&](std::size_t done, std::size_t of) {
                told.share(i * of + done, ids.size() * of);
            };
            known_[id] = {how.format, low.bits(), measure_draft(target, low, settings)};
        }
        out.curves.push_back(known_.at(id));
        if (i + 1 < ids.size()) told.so_far(out);
    }
    return out;
}

DraftRound RoundMaker::operator()(const RoundSpec& spec) {
    const DraftSpec& draft = spec.draft;
    if (!model_ || of_ != draft.network) {
        model_ = make_tokens(draft.network), of_ = draft.network;
        symbols_ = make_task(model_->spec())->symbols();
    }
    Engine target(model_, {}), low(model_, engine_of(draft.draft, draft.both));
    const std::size_t context = model_->data().test.context;
    const std::size_t known = std::min(kRoundContext, context / 2),
                      length = std::min(static_cast<std::size_t>(spec.length), longest_draft(context));
    const auto number = static_cast<std::uint64_t>(spec.number);
    const TokenBatch text = held_out_pieces(*model_, 1, known, number);
    Rng rng(number, stream(Draw::sample, 3));
    const auto letter = [&](int token) {
        const auto at = static_cast<std::size_t>(token);
        return at < symbols_.size() ? shown(symbols_[at]) : std::to_string(token);
    };

    KvState<float> read_by_target, read_by_draft;
    Matrix<double> p(length + 1, static_cast<std::size_t>(model_->spec().vocabulary)), q(length, p.cols);
    const auto first = [&](Engine& engine, KvState<float>& state) {
        return last_rows(engine.decode(text, state), 1, draft.temperature);
    };
    std::ranges::copy(first(target, read_by_target).row(0), p.row(0).begin());
    std::ranges::copy(first(low, read_by_draft).row(0), q.row(0).begin());
    TokenBatch proposed{.sequences = 1, .context = length};
    for (std::size_t k = 0; k < length; ++k) {
        proposed.tokens.push_back(drawn(q.row(k), rng.uniform()));
        if (k + 1 == length) break;
        const Matrix<float>& logits = low.decode(one_token(proposed.tokens.back()), read_by_draft);
        probabilities(logits.row(0), draft.temperature, q.row(k + 1));
    }
    const Matrix<double> verified =
        last_rows(target.decode(proposed, read_by_target), length, draft.temperature);
    for (std::size_t k = 0; k < length; ++k) std::ranges::copy(verified.row(k), p.row(k + 1).begin());
    const DraftVerdict verdict = verify(proposed.tokens, q, p, rng);

    DraftRound out{.accepted = static_cast<int>(verdict.accepted), .next = letter(verdict.next)};
    for (const int token : text.tokens) out.context += letter(token);
    for (std::size_t k = 0; k < length; ++k) {
        const auto at = static_cast<std::size_t>(proposed.tokens[k]);
        out.proposed.push_back({letter(proposed.tokens[k]), p.row(k)[at], q.row(k)[at], k <= verdict.accepted,
                                k < verdict.accepted});
    }
    return out;
}

}  // namespace fp8lab::serve
