#include "core/nn/tokens/token_tasks.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/streams.h"

namespace fp8lab {
namespace {

// Held-out batches: any fixed number, and streams that no training reads.
constexpr std::uint64_t kHeldOutSeed = 0x4E1D007;
std::uint64_t held_out_stream(int i) { return stream(Draw::data, 0, i); }

void resize(TokenBatch& batch, std::size_t sequences, std::size_t context) {
    batch.sequences = sequences;
    batch.context = context;
    batch.tokens.resize(sequences * context);
    batch.targets.resize(sequences * context);
}

}  // namespace

TextSequences::TextSequences(const Corpus& corpus, std::uint64_t seed, std::size_t sequences,
                             std::size_t context)
    : corpus_(&corpus), seed_(seed), sequences_(sequences), context_(context) {
    const std::size_t least = std::min(corpus.train, corpus.codes.size() - corpus.train);
    if (least <= context)
        throw usage_error("--context", std::to_string(context) + " is too long for this text: it holds out " +
                                           std::to_string(least) +
                                           " characters, and a sequence takes one more than the context");
}

void TextSequences::cut(std::uint64_t seed, std::uint64_t stream_id, std::size_t begin, std::size_t end,
                        TokenBatch& batch) const {
    resize(batch, sequences_, context_);
    batch.scored.clear();
    Rng rng(seed, stream_id);
    const std::span<const int> codes = corpus_->codes;
    for (std::size_t s = 0; s < sequences_; ++s) {
        const std::size_t start = begin + rng.below(static_cast<std::uint32_t>(end - begin - context_));
        const auto row = static_cast<std::ptrdiff_t>(s * context_);
        std::ranges::copy(codes.subspan(start, context_), batch.tokens.begin() + row);
        std::ranges::copy(codes.subspan(start + 1, context_), batch.targets.begin() + row);
    }
}

void TextSequences::draw(int step, TokenBatch& batch) const {
    cut(seed_, stream(Draw::batch, 0, step), 0, corpus_->train, batch);
}

void TextSequences::held_out(int i, TokenBatch& batch) const {
    cut(kHeldOutSeed, held_out_stream(i), corpus_->train, corpus_->codes.size(), batch);
}

CopyingSequences::CopyingSequences(std::uint64_t seed, std::size_t sequences, std::size_t context)
    : seed_(seed), sequences_(sequences), context_(context) {
    if (context < kShortestContext)
        throw usage_error("--context", std::to_string(context) +
                                           " is too short for the task copying, whose periods are up to " +
                                           std::to_string(kLongestPeriod) + "; the shortest is " +
                                           std::to_string(kShortestContext));
}

void CopyingSequences::fill(std::uint64_t seed, std::uint64_t stream_id, TokenBatch& batch) const {
    resize(batch, sequences_, context_);
    batch.scored.resize(sequences_ * context_);
    Rng rng(seed, stream_id);
    for (std::size_t s = 0; s < sequences_; ++s) {
        const std::size_t period =
            kShortestPeriod + rng.below(static_cast<std::uint32_t>(kLongestPeriod - kShortestPeriod + 1));
        std::array<int, kSymbols> symbols;
        std::iota(symbols.begin(), symbols.end(), 0);
        for (std::size_t i = 0; i < period; ++i)  // Fisher and Yates
            std::swap(symbols[i], symbols[i + rng.below(static_cast<std::uint32_t>(kSymbols - i))]);
        for (std::size_t t = 0; t < context_; ++t) {
            const std::size_t i = s * context_ + t;
            batch.tokens[i] = symbols[t % period];
            batch.targets[i] = symbols[(t + 1) % period];
            batch.scored[i] = t >= period;
        }
    }
}

void CopyingSequences::draw(int step, TokenBatch& batch) const {
    fill(seed_, stream(Draw::batch, 0, step), batch);
}

void CopyingSequences::held_out(int i, TokenBatch& batch) const {
    fill(kHeldOutSeed, held_out_stream(i), batch);
}

ZipfSequences::ZipfSequences(int vocabulary, std::uint64_t seed, std::size_t sequences, std::size_t context)
    : language_(vocabulary), seed_(seed), sequences_(sequences), context_(context) {}

void ZipfSequences::fill(std::uint64_t seed, std::uint64_t stream_id, TokenBatch& batch) const {
    resize(batch, sequences_, context_);
    batch.scored.clear();
    Rng rng(seed, stream_id);
    for (std::size_t s = 0; s < sequences_; ++s) {
        int token = language_.draw(rng);
        for (std::size_t i = s * context_; i < (s + 1) * context_; ++i) {
            batch.tokens[i] = token;
            batch.targets[i] = token = language_.draw_next(token, rng);
        }
    }
}

void ZipfSequences::draw(int step, TokenBatch& batch) const {
    fill(seed_, stream(Draw::batch, 0, step), batch);
}

void ZipfSequences::held_out(int i, TokenBatch& batch) const {
    fill(kHeldOutSeed, held_out_stream(i), batch);
}

}  // namespace fp8lab
