#include "core/nn/tokens/zipf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace fp8lab {
namespace {

constexpr double kCircle = 4294967296.0, kOffset = 2.7;
// The circle divided by the golden ratio: its multiples lie far from each other.
constexpr std::uint32_t kGoldenTurn = 0x9E3779B9;
constexpr int kGuideBits = 15;
constexpr double kFresh = 0.5, kEach = (1 - kFresh) / ZipfLanguage::kSuccessors;

std::size_t size(int n) { return static_cast<std::size_t>(n); }
double information(double p) { return p > 0 ? -p * std::log(p) : 0; }

}  // namespace

ZipfLanguage::ZipfLanguage(int vocabulary) {
    if (vocabulary < kSmallest || vocabulary > kLargest)
        throw usage_error(
            "--task", fmt::format("a vocabulary of {} is not in {}..{}", vocabulary, kSmallest, kLargest));
    std::vector<double> sums{0};
    for (int r = 0; r < vocabulary; ++r) sums.push_back(sums.back() + 1 / (r + 1 + kOffset));
    for (const double sum : sums)  // the last one is the whole circle, which is 0 again
        starts_.push_back(static_cast<std::uint32_t>(std::llround(sum / sums.back() * kCircle)));
    int token = 0;
    for (std::uint32_t part = 0; part < 1U << kGuideBits; ++part) {
        while (token + 1 < vocabulary && starts_[size(token) + 1] <= part << (32 - kGuideBits)) ++token;
        guide_.push_back(token);
    }
    guide_.push_back(vocabulary - 1);
}

std::uint32_t ZipfLanguage::length(int token) const {
    return starts_[size(token) + 1] - starts_[size(token)];
}

ZipfLanguage::Arc ZipfLanguage::turned(int token, int turn) const {
    return {starts_[size(token)] + static_cast<std::uint32_t>(turn + 1) * kGoldenTurn, length(token)};
}

// The last token that starts at the point or before it: one of those from the start of the point's part to its end.
int ZipfLanguage::at(std::uint32_t point) const {
    const std::size_t part = point >> (32 - kGuideBits);
    const auto first = starts_.begin() + guide_[part] + 1, last = starts_.begin() + guide_[part + 1] + 1;
    return static_cast<int>(std::upper_bound(first, last, point) - starts_.begin()) - 1;
}

int ZipfLanguage::draw_next(int token, Rng& rng) const {
    constexpr int kTurnBits = 3;  // half of the choices are turns
    static_assert(1 << kTurnBits == 2 * kSuccessors && kFresh == 0.5);
    const auto turn = static_cast<int>(rng.bits() >> (32 - kTurnBits));
    if (turn >= kSuccessors) return draw(rng);
    const Arc arc = turned(token, turn);
    return at(arc.start + static_cast<std::uint32_t>(std::uint64_t{rng.bits()} * arc.length >> 32));
}

double ZipfLanguage::probability(int token) const { return length(token) / kCircle; }

double ZipfLanguage::probability(int token, int next) const {
    // What two arcs share, the second cut where it passes the circle's end.
    const auto shared = [&](Arc arc) {
        const std::uint64_t begin = starts_[size(next)], end = begin + length(next), first = arc.start,
                            last = first + arc.length;
        std::uint64_t sum = 0;
        for (const std::uint64_t lap : {std::uint64_t{0}, std::uint64_t{1} << 32}) {
            const std::uint64_t from = std::max(first, begin + lap), to = std::min(last, end + lap);
            sum += to > from ? to - from : 0;
        }
        return static_cast<double>(sum);
    };
    double p = kFresh * probability(next);
    for (int turn = 0; turn < kSuccessors; ++turn) p += kEach * shared(turned(token, turn)) / length(token);
    return p;
}

double ZipfLanguage::entropy() const {
    double sum = 0;
    for (int token = 0; token < vocabulary(); ++token) sum += information(probability(token));
    return sum;
}

// A next token that no turn reaches has the information of a fresh draw; the sum over all of them is known, and what
// turns reach is taken out and put in with its own probability.
double ZipfLanguage::entropy_rate() const {
    double fresh = 0, sum = 0;
    for (int token = 0; token < vocabulary(); ++token) fresh += information(kFresh * probability(token));
    std::vector<int> reached;
    for (int token = 0; token < vocabulary(); ++token) {
        reached.clear();
        for (int turn = 0; turn < kSuccessors; ++turn) {
            const Arc arc = turned(token, turn);
            for (std::uint64_t done = 0; done < arc.length;) {
                const std::uint32_t point = arc.start + static_cast<std::uint32_t>(done);
                reached.push_back(at(point));
                done += starts_[size(reached.back()) + 1] - point;  // 2^32 - point behind the last token
            }
        }
        std::ranges::sort(reached);
        const auto [end, behind] = std::ranges::unique(reached);
        reached.erase(end, behind);
        double here = fresh;
        for (const int next : reached)
            here += information(probability(token, next)) - information(kFresh * probability(next));
        sum += probability(token) * here;
    }
    return sum;
}

}  // namespace fp8lab
