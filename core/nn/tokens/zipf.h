// A language without a text, of any vocabulary, whose losses are known: a Markov chain in which the tokens have the
// frequencies of words.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng.h"

namespace fp8lab {

// Token r, from 0, has the frequency of the word of rank r + 1: Zipf's law with Mandelbrot's offset, p(r) in proportion
// to 1 / (r + 1 + 2.7) (Piantadosi, "Zipf's word frequency law in natural language: A critical review and future
// directions", Psychonomic Bulletin & Review 21, 2014, equation 2). The tokens lie side by side on a circle, each with
// an arc of length p. Half of the tokens are drawn afresh: the token at a uniform point of the circle. The others
// depend on the token before: a uniform point of its arc is turned by one of kSuccessors fixed angles, each as likely,
// and the token there is next. A turn keeps lengths, so p is stationary, exactly. An arc that is turned covers one or
// two frequent tokens or some rare ones: the median token has 4 or 5 successors; of V 50,257 the most frequent one has
// 4,310.
//
// Arcs are multiples of 2^-32 of the circle, so that all of it is integer arithmetic. Nothing depends on a seed: one
// language for each vocabulary. In nats, for a vocabulary V of
//                                          257     4,096    32,768    50,257
//   ln V, a model that knows nothing      5.5491   8.3178   10.3972   10.8249
//   entropy of p, one that counts         4.8455   6.7107    8.0051    8.2642
//   entropy rate, a perfect model         4.1277   5.3954    6.2654    6.4393
class ZipfLanguage {
  public:
    static constexpr int kSmallest = 2, kLargest = 1 << 17, kUsual = 4096, kSuccessors = 4;

    // Throws usage_error("--task", ...) unless vocabulary is kSmallest .. kLargest.
    explicit ZipfLanguage(int vocabulary);
    int vocabulary() const { return static_cast<int>(starts_.size()) - 1; }
    double probability(int token) const;            // p
    double probability(int token, int next) const;  // of `next` behind `token`
    double entropy() const;                         // -sum p ln p
    double entropy_rate() const;                    // sum over tokens of p times the entropy of the next one

    int draw(Rng& rng) const { return at(rng.bits()); }
    int draw_next(int token, Rng& rng) const;

  private:
    struct Arc {
        std::uint32_t start, length;
    };
    std::uint32_t length(int token) const;
    Arc turned(int token, int turn) const;
    int at(std::uint32_t point) const;

    std::vector<std::uint32_t>
        starts_;  // of each token's arc, 2^32 the whole circle; 0, its end, behind the last
    std::vector<std::int32_t> guide_;  // the token at the start of each of equal parts of the circle
};

}  // namespace fp8lab
