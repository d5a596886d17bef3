// The tasks of a transformer. As with all tasks, a batch depends only on the seed and the step, so every arm
// gets the same batches and a resumed run continues with the right one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/nn/tokens/corpus.h"
#include "core/nn/tokens/token_batch.h"
#include "core/nn/tokens/zipf.h"

namespace fp8lab {

// Pieces of context + 1 characters of a corpus: the next character is to be predicted, and all are scored.
// Starts are uniform over all places of the part. The corpus must outlive the object.
class TextSequences {
  public:
    // Throws usage_error("--context", ...) where train or held-out part is not longer than the context.
    TextSequences(const Corpus& corpus, std::uint64_t seed, std::size_t sequences, std::size_t context);
    TextSequences(const Corpus&&, std::uint64_t, std::size_t, std::size_t) = delete;  // would not outlive it
    int vocabulary() const { return static_cast<int>(corpus_->symbols.size()); }
    // Draws a batch from the train part, by Rng(seed, stream(Draw::batch, 0, step)).
    void draw(int step, TokenBatch& batch) const;
    // Batch i of the held-out part, the same for every seed.
    void held_out(int i, TokenBatch& batch) const;

  private:
    void cut(std::uint64_t seed, std::uint64_t stream_id, std::size_t begin, std::size_t end,
             TokenBatch& batch) const;

    const Corpus* corpus_;
    std::uint64_t seed_;
    std::size_t sequences_, context_;
};

// Copying needs an induction head: it is solved by attention from a token to the one after its last occurrence
// (Olsson et al., "In-context Learning and Induction Heads", arXiv 2209.11895). Per sequence a period p,
// uniform in kShortestPeriod .. kLongestPeriod, and p different symbols in random order, repeated. A target is
// scored where its answer is in the context already: at positions t >= p.
class CopyingSequences {
  public:
    static constexpr std::size_t kSymbols = 16, kShortestPeriod = 4, kLongestPeriod = 16;
    static constexpr std::size_t kShortestContext = 32;  // half of the targets at least are scored

    // Throws usage_error("--context", ...) where the context is shorter than kShortestContext.
    CopyingSequences(std::uint64_t seed, std::size_t sequences, std::size_t context);
    int vocabulary() const { return static_cast<int>(kSymbols); }
    void draw(int step, TokenBatch& batch) const;   // by Rng(seed, stream(Draw::batch, 0, step))
    void held_out(int i, TokenBatch& batch) const;  // of a fixed seed of its own

  private:
    void fill(std::uint64_t seed, std::uint64_t stream_id, TokenBatch& batch) const;

    std::uint64_t seed_;
    std::size_t sequences_, context_;
};

// Sequences of ZipfLanguage, each with a first token of its own; all targets are scored. The language is the same for
// every seed, so what is held out is of the language that was trained on.
class ZipfSequences {
  public:
    // Throws as ZipfLanguage.
    ZipfSequences(int vocabulary, std::uint64_t seed, std::size_t sequences, std::size_t context);
    int vocabulary() const { return language_.vocabulary(); }
    void draw(int step, TokenBatch& batch) const;   // by Rng(seed, stream(Draw::batch, 0, step))
    void held_out(int i, TokenBatch& batch) const;  // of a fixed seed of its own

  private:
    void fill(std::uint64_t seed, std::uint64_t stream_id, TokenBatch& batch) const;

    ZipfLanguage language_;
    std::uint64_t seed_;
    std::size_t sequences_, context_;
};

}  // namespace fp8lab
