// The language of task zipf: its frequencies, its transitions, its entropies, and the batches drawn from it.
#include "core/nn/tokens/zipf.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/nn/tokens/token_tasks.h"

using namespace fp8lab;

namespace {

// The definition in FP64, with arcs of any length: row a has the probabilities of what follows a.
struct Oracle {
    explicit Oracle(int vocabulary) : begin(1, 0.0) {
        for (int rank = 1; rank <= vocabulary; ++rank) begin.push_back(begin.back() + 1 / (rank + 2.7));
        const double whole = begin.back();
        for (double& b : begin) b /= whole;
    }
    std::size_t size() const { return begin.size() - 1; }
    double p(std::size_t t) const { return begin[t + 1] - begin[t]; }
    double next(std::size_t a, std::size_t b) const {
        double turned = 0;
        for (int k = 1; k <= 4; ++k) {
            const double angle = k * (std::sqrt(5.0) - 1) / 2;
            for (int lap = -3; lap <= 1; ++lap)  // the same arc, so many circles further back or on
                turned += std::max(0.0, std::min(begin[a + 1] + angle + lap, begin[b + 1]) -
                                            std::max(begin[a] + angle + lap, begin[b]));
        }
        return p(b) / 2 + turned / p(a) / 8;
    }
    std::vector<double> begin;
};

// Of the targets that one position of many sequences has: independent of each other.
std::vector<int> last_targets(const ZipfSequences& sequences, int steps) {
    std::vector<int> out;
    TokenBatch batch;
    for (int step = 0; step < steps; ++step) {
        sequences.draw(step, batch);
        for (std::size_t s = 0; s < batch.sequences; ++s)
            out.push_back(batch.targets[(s + 1) * batch.context - 1]);
    }
    return out;
}

}  // namespace

TEST_CASE(
    "zipf: transitions are the definition's, Zipf's law is stationary, both entropies are sums of them") {
    for (const int v : {2, 3, 7, 64, 257}) {
        CAPTURE(v);
        const ZipfLanguage language(v);
        const Oracle oracle(v);
        REQUIRE(language.vocabulary() == v);
        double entropy = 0, rate = 0;
        std::vector<double> after(oracle.size());
        for (std::size_t a = 0; a < oracle.size(); ++a) {
            const int from = static_cast<int>(a);
            CHECK(language.probability(from) == doctest::Approx(oracle.p(a)).epsilon(1e-6));
            double sum = 0;
            for (std::size_t b = 0; b < oracle.size(); ++b) {
                const double p = language.probability(from, static_cast<int>(b));
                REQUIRE(std::abs(p - oracle.next(a, b)) < 1e-6);
                sum += p;
                after[b] += language.probability(from) * p;
                rate -= oracle.p(a) * oracle.next(a, b) * std::log(oracle.next(a, b));
            }
            CHECK(sum == doctest::Approx(1).epsilon(1e-12));
            entropy -= oracle.p(a) * std::log(oracle.p(a));
        }
        for (std::size_t b = 0; b < oracle.size(); ++b)
            CHECK(after[b] == doctest::Approx(language.probability(static_cast<int>(b))).epsilon(1e-12));
        CHECK(language.entropy() == doctest::Approx(entropy).epsilon(1e-6));
        CHECK(language.entropy_rate() == doctest::Approx(rate).epsilon(1e-6));
    }
}

// numpy, FP64, arcs of any length.
TEST_CASE("zipf: the entropies that the header states") {
    struct Stated {
        int vocabulary;
        double entropy, rate;
    };
    for (const Stated& s : {Stated{257, 4.845510389017496, 4.127706626865854},
                            Stated{4096, 6.710710872126158, 5.395366819097965},
                            Stated{32768, 8.00513363765061, 6.265353413767389},
                            Stated{50257, 8.264238330959287, 6.439272329908526}}) {
        CAPTURE(s.vocabulary);
        const ZipfLanguage language(s.vocabulary);
        CHECK(std::abs(language.entropy() - s.entropy) < 1e-5);
        CHECK(std::abs(language.entropy_rate() - s.rate) < 1e-5);
    }
}

TEST_CASE("zipf: tokens have their frequencies at every position") {
    for (const int v : {2, 257, 50257}) {
        CAPTURE(v);
        const ZipfLanguage language(v);
        const ZipfSequences sequences(v, 1, 500, 5);
        const std::vector<int> drawn = last_targets(sequences, 100);
        const auto n = static_cast<double>(drawn.size());
        // Sums over ranks that double: few tokens of the last half are drawn twice.
        for (int first = 0, count = 1; first < v; first += count, count *= 2) {
            double p = 0;
            for (int t = first; t < std::min(first + count, v); ++t) p += language.probability(t);
            const auto found = static_cast<double>(
                std::ranges::count_if(drawn, [&](int t) { return t >= first && t < first + count; }));
            CAPTURE(first);
            CHECK(std::abs(found / n - p) < 5 * std::sqrt(p * (1 - p) / n));
        }
        CHECK(*std::ranges::max_element(drawn) < v);
        CHECK(*std::ranges::min_element(drawn) == 0);
    }
}

TEST_CASE("zipf: transitions are drawn as often as they are probable") {
    constexpr int kVocabulary = 7, kDraws = 40000;
    const ZipfLanguage language(kVocabulary);
    Rng rng(5);
    for (int a = 0; a < kVocabulary; ++a) {
        std::map<int, int> counts;
        for (int i = 0; i < kDraws; ++i) ++counts[language.draw_next(a, rng)];
        for (int b = 0; b < kVocabulary; ++b) {
            CAPTURE(a);
            CAPTURE(b);
            const double p = language.probability(a, b);
            CHECK(std::abs(counts[b] / double{kDraws} - p) < 5 * std::sqrt(p * (1 - p) / kDraws));
        }
    }
}

TEST_CASE("zipf: what a perfect model loses on drawn tokens is the entropy rate") {
    for (const int v : {2, 257, 50257}) {
        CAPTURE(v);
        const ZipfLanguage language(v);
        TokenBatch batch;
        // Sequences are independent, so the error of the mean is that of the sequences' means.
        double sum = 0, squares = 0, count = 0;
        for (int step = 0; step < 20; ++step) {
            ZipfSequences(v, 3, 40, 64).draw(step, batch);
            for (std::size_t s = 0; s < batch.sequences; ++s, ++count) {
                double loss = 0;
                for (std::size_t i = s * 64; i < (s + 1) * 64; ++i)
                    loss -= std::log(language.probability(batch.tokens[i], batch.targets[i])) / 64;
                sum += loss, squares += loss * loss;
            }
        }
        const double mean = sum / count, error = std::sqrt((squares / count - mean * mean) / count);
        MESSAGE("V " << v << ": " << mean << " +- " << error << ", entropy rate " << language.entropy_rate());
        CHECK(error < 0.02);
        CHECK(std::abs(mean - language.entropy_rate()) < 5 * error);
    }
}

TEST_CASE("zipf: a batch depends on seed and step alone, held-out batches and the language on neither") {
    const ZipfSequences one(50257, 1, 4, 16), two(50257, 2, 4, 16);
    CHECK(one.vocabulary() == 50257);
    TokenBatch batch, again;
    one.draw(7, batch);
    REQUIRE(batch.tokens.size() == 64);
    REQUIRE(batch.scored.empty());
    for (std::size_t i = 0; i < 64; ++i)
        if (i % 16 != 15) CHECK(batch.targets[i] == batch.tokens[i + 1]);
    one.draw(3, again);
    CHECK(again.tokens != batch.tokens);
    one.draw(7, again);  // into memory that another step has used
    CHECK(again.tokens == batch.tokens);
    CHECK(again.targets == batch.targets);
    two.draw(7, again);
    CHECK(again.tokens != batch.tokens);
    one.held_out(0, batch);
    two.held_out(0, again);
    CHECK(again.tokens == batch.tokens);
    CHECK(again.targets == batch.targets);
    one.held_out(1, again);
    CHECK(again.tokens != batch.tokens);
    for (const int seed : {1, 2, 3}) {
        ZipfSequences(50257, static_cast<std::uint64_t>(seed), 4, 16).draw(0, again);
        CHECK(again.tokens != batch.tokens);
    }
    ZipfSequences(50257, 1, 2, 16).held_out(0, again);  // fewer sequences are the first ones
    one.held_out(0, batch);
    CHECK_THROWS_WITH(ZipfSequences(1, 1, 4, 16), "--task: a vocabulary of 1 is not in 2..131072");
    CHECK_THROWS_WITH(ZipfLanguage(131073), "--task: a vocabulary of 131073 is not in 2..131072");
    CHECK(std::equal(again.tokens.begin(), again.tokens.end(), batch.tokens.begin()));
}
