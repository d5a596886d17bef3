// Sums over ranks against a scalar model of ring, tree and wire: values of 8 bits from a list of all codes, FP16 and BF16
// rounded in float64, chunks sent from rank to rank.
#include "core/ranks/sums.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/base/rng.h"

using namespace fp8lab;

namespace {

using Arrays = std::vector<std::vector<float>>;

// To `bits` significant bits, with exponents from `lowest` on.
double rounded(double x, int bits, int lowest, double largest) {
    if (x == 0 || !std::isfinite(x)) return x;
    const int unit = std::max(std::ilogb(x), lowest) - (bits - 1);
    const double y = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
    return std::fabs(y) > largest ? std::copysign(INFINITY, y) : y;
}
double half(double x) { return rounded(x, 11, -14, 65504); }
double bf16(double x) { return rounded(x, 8, -126, 3.3895313892515355e38); }

// The nearest of all values of an 8-bit format, of two equally near the one with an even code; it saturates.
double nearest_f8(double x, int exponent_bits, int mantissa_bits, double largest) {
    if (std::isnan(x)) return x;
    if (std::fabs(x) >= largest) return std::copysign(largest, x);
    const int bias = (1 << (exponent_bits - 1)) - 1, steps = 1 << mantissa_bits;
    double best = 0, distance = std::fabs(x);
    for (int code = 1; code < 128; ++code) {
        const int e = code / steps, m = code % steps;
        const double value =
            e == 0 ? std::ldexp(double(m) / steps, 1 - bias) : std::ldexp(1 + double(m) / steps, e - bias);
        if (value > largest) break;
        const double d = std::fabs(std::fabs(x) - value);
        if (d < distance || (d == distance && code % 2 == 0)) best = value, distance = d;
    }
    return std::copysign(best, x);
}

double cast(const std::string& format, double x) {
    if (format == "bf16") return bf16(x);
    if (format == "e4m3") return nearest_f8(x, 4, 3, 448);
    if (format == "e5m2") return nearest_f8(x, 5, 2, 57344);
    return static_cast<double>(static_cast<float>(x));
}

double add(const std::string& format, double a, double b) {
    return format == "e4m3" || format == "e5m2" ? cast(format, half(a + b)) : cast(format, a + b);
}

// At each step rank r sends the part of chunk r - 1 - step that it has added up to rank r + 1.
std::vector<double> ring(const std::string& format, const Arrays& ranks) {
    const std::size_t count = ranks.size(), n = ranks[0].size();
    std::vector<std::vector<double>> held;
    for (const auto& values : ranks) held.emplace_back(values.begin(), values.end());
    for (std::size_t step = 0; step + 1 < count; ++step) {
        const auto before = held;
        for (std::size_t r = 0; r < count; ++r)
            for (std::size_t i = 0; i < n; ++i)
                if (i * count / n == (r + 2 * count - 1 - step) % count) {
                    const std::size_t to = (r + 1) % count;
                    held[to][i] = add(format, before[r][i], before[to][i]);
                }
    }
    std::vector<double> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = held[i * count / n][i];
    return out;
}

double tree(const std::string& format, const Arrays& ranks, std::size_t i, std::size_t first,
            std::size_t count) {
    if (first >= ranks.size()) return NAN;  // no such rank
    if (count == 1) return double{ranks[first][i]};
    const double a = tree(format, ranks, i, first, count / 2),
                 b = tree(format, ranks, i, first + count / 2, count / 2);
    return std::isnan(b) ? a : add(format, a, b);
}

std::vector<double> expected(const RankSum& how, const Arrays& sent) {
    const std::string format(how.format);
    if (how.hops == Hops::ring) return ring(format, sent);
    std::vector<double> out;
    for (std::size_t i = 0; i < sent[0].size(); ++i) {
        if (how.hops == Hops::tree) {
            out.push_back(tree(format, sent, i, 0, 1024));
            continue;
        }
        float sum = sent[0][i];
        for (std::size_t r = 1; r < sent.size(); ++r) sum += sent[r][i];
        out.push_back(double{sum});
    }
    return out;
}

Arrays normal(std::size_t ranks, std::size_t n, std::uint64_t seed, float sigma = 1) {
    Arrays out(ranks, std::vector<float>(n));
    for (std::size_t r = 0; r < ranks; ++r) Rng(seed, r).fill_normal(out[r], sigma);
    return out;
}

std::vector<std::span<const float>> views(const Arrays& arrays) { return {arrays.begin(), arrays.end()}; }

std::vector<float> sum_of(const std::string& id, const Arrays& ranks) {
    std::vector<float> out(ranks[0].size());
    sum_over_ranks(find_rank_sum(id), views(ranks), out);
    return out;
}

}  // namespace

TEST_CASE("sums over ranks are those of a scalar model of messages between ranks, to the bit") {
    for (const RankSum& how : rank_sums())
        for (const std::size_t count : {1, 2, 3, 4, 7, 8, 33})
            for (const std::size_t n : {1, 5, 64, 100}) {
                CAPTURE(how.id);
                CAPTURE(count);
                CAPTURE(n);
                const Arrays ranks = normal(count, n, 5);
                float largest = 0;
                for (const auto& values : ranks)
                    for (const float x : values) largest = std::max(largest, std::fabs(x));
                const float scale = shared_scale(how, largest, static_cast<int>(count));
                Arrays sent = ranks, wanted = ranks;
                for (std::size_t r = 0; r < count; ++r) {
                    cast_to_send(how, ranks[r], scale, sent[r]);
                    for (std::size_t i = 0; i < n; ++i)
                        wanted[r][i] = static_cast<float>(
                            cast(std::string(how.format), static_cast<double>(ranks[r][i] * scale)));
                }
                REQUIRE(sent == wanted);
                std::vector<float> got(n);
                add_ranks(how, views(sent), got);
                const std::vector<double> model = expected(how, sent);
                for (std::size_t i = 0; i < n; ++i) CHECK(double{got[i]} == model[i]);
                std::vector<float> whole(n);
                sum_over_ranks(how, views(ranks), whole);
                for (std::size_t i = 0; i < n; ++i) CHECK(whole[i] == got[i] * (1 / scale));
            }
}

TEST_CASE("an addition of 8 bits goes through half: it rounds twice, and its overflow saturates") {
    const auto one = [](const char* id, std::vector<float> values) {
        Arrays ranks;
        for (const float v : values) ranks.push_back({v});
        std::vector<float> out(1);
        add_ranks(find_rank_sum(id), views(ranks), out);
        return out[0];
    };
    CHECK(one("e4m3", {128, 8}) == 128);  // ties of E4M3 go to the even code
    CHECK(one("e4m3", {144, 8}) == 160);
    CHECK(one("e4m3", {128, 9}) == 144);
    // 136 + 2^-6 is above the tie of E4M3, but half rounds it to 136 first.
    CHECK(one("e4m3", {128, 8.015625F}) == 128);
    CHECK(one("e4m3", {448, 448}) == 448);
    CHECK(one("e4m3", {-448, -448}) == -448);
    CHECK(one("e5m2", {57344, 57344}) == 57344);
    CHECK(one("bf16", {256, 1}) == 256);
    CHECK(one("bf16-tree", {256, 1, 1, 0}) == 256);
    CHECK(one("fp32", {16777216, 1}) == 16777216);
    CHECK(std::isnan(one("e4m3", {1, NAN, 1})));
    CHECK(std::isnan(one("bf16", {1, 1, NAN, 1})));
}

TEST_CASE("equal addends fit: the shared scale leaves room for as many as there are ranks") {
    for (const RankSum& how : rank_sums())
        for (const std::size_t count : {2, 8, 16}) {
            CAPTURE(how.id);
            CAPTURE(count);
            const Arrays ranks(count, std::vector<float>(10, 0.75F));
            const double truth = 0.75 * double(count);
            for (const float x : sum_of(std::string(how.id), ranks)) {
                CHECK(double{x} < truth * (how.is_scaled() ? 1.13 : 1.001));
                // A ring of 8 bits stops growing where its gap outgrows the addend.
                CHECK(double{x} > truth * (how.is_scaled() && how.hops == Hops::ring ? 0.5 : 0.93));
            }
            const float scale = shared_scale(how, 0.75F, static_cast<int>(count));
            if (how.is_scaled() && how.hops != Hops::wire)
                CHECK(double{0.75F * scale * float(count)} == doctest::Approx(max_finite(how.sent())));
        }
    const RankSum& e4m3 = find_rank_sum("e4m3");
    CHECK(shared_scale(e4m3, 0, 8) == 1);
    CHECK(shared_scale(e4m3, INFINITY, 8) == 1);
    CHECK(shared_scale(e4m3, 1e-44F, 8) == std::numeric_limits<float>::max());
    CHECK(shared_scale(find_rank_sum("bf16"), 3, 8) == 1);
    CHECK(shared_scale(find_rank_sum("e4m3-wire"), 2, 8) == 224);
    CHECK(shared_scale(e4m3, 2, 8) == 28);
}

TEST_CASE("one rank gives its cast, and two ranks give the same either way round") {
    const Arrays one = normal(1, 50, 3);
    CHECK(sum_of("fp32", one) == one[0]);
    for (const RankSum& how : rank_sums()) {
        CAPTURE(how.id);
        const std::string id(how.id);
        std::vector<float> cast_only(50);
        float largest = 0;
        for (const float x : one[0]) largest = std::max(largest, std::fabs(x));
        const float scale = shared_scale(how, largest, 1);
        cast_to_send(how, one[0], scale, cast_only);
        for (float& x : cast_only) x *= 1 / scale;
        CHECK(sum_of(id, one) == cast_only);
        Arrays two = normal(2, 77, 4);
        const auto sum = sum_of(id, two);
        std::swap(two[0], two[1]);
        CHECK(sum_of(id, two) == sum);
    }
}

TEST_CASE("the ring of 8 bits loses the sum as ranks are added, FP32 sums of 8-bit gradients do not") {
    constexpr std::size_t n = 4096;
    const auto distance = [&](const std::string& id, const Arrays& ranks) {
        return distance_of_sum(sum_of(id, ranks), views(ranks));
    };
    // A mean that all ranks share, and noise of four times its size: sums grow with N, as gradients do.
    const auto gradients = [&](std::size_t count) {
        Arrays ranks = normal(count, n, 11);
        const Arrays mean = normal(1, n, 12, 0.25F);
        for (auto& values : ranks)
            for (std::size_t i = 0; i < n; ++i) values[i] += mean[0][i];
        return ranks;
    };
    double before = 0;
    for (const std::size_t count : {2, 16, 128, 1024}) {
        CAPTURE(count);
        const Arrays ranks = gradients(count);
        const double e4m3 = distance("e4m3", ranks).error_pct(), e5m2 = distance("e5m2", ranks).error_pct(),
                     bf16 = distance("bf16", ranks).error_pct(),
                     wire = distance("e4m3-wire", ranks).error_pct();
        CHECK(distance("fp32", ranks).error_pct() < 1e-3);
        CHECK(bf16 < 8);
        CHECK(distance("bf16-tree", ranks).error_pct() < 0.5);
        CHECK(e4m3 > bf16);
        CHECK(e5m2 > e4m3);
        CHECK(wire < e4m3);
        CHECK(wire < 3.5);
        CHECK(e4m3 > before);
        before = e4m3;
    }
    CHECK(before > 50);
    CHECK(distance("e4m3", gradients(1024)).kept_pct() < 60);
    CHECK(distance("bf16", gradients(1024)).kept_pct() > 95);
}

TEST_CASE("distances: the norm of the error, and what is left along the truth") {
    const std::vector<float> a = {3, 0}, b = {0, 4}, sum = {1.5F, 2}, zero = {0, 0};
    const std::vector<std::span<const float>> ranks = {a, b};
    CHECK(distance_of_sum(sum, ranks).error_pct() == doctest::Approx(50));
    CHECK(distance_of_sum(sum, ranks).kept_pct() == doctest::Approx(50));
    const std::vector<std::span<const float>> nothing = {zero};
    CHECK(std::isnan(distance_of_sum(sum, nothing).error_pct()));
    Distance both = distance_of_sum(sum, ranks);
    both += distance_of_sum(sum, ranks);
    CHECK(both.error_pct() == doctest::Approx(50));
}

TEST_CASE("sums that do not exist, no rank and arrays of different lengths are refused") {
    CHECK_THROWS_WITH_AS(find_rank_sum("fp16"),
                         "--sum: unknown sum 'fp16'; valid: fp32 bf16 bf16-tree e4m3 e5m2 e4m3-wire", Error);
    const std::vector<float> a = {1, 2}, b = {1};
    std::vector<float> out(2);
    const std::vector<std::span<const float>> ranks = {a, b};
    CHECK_THROWS_AS(add_ranks(find_rank_sum("bf16"), ranks, out), Error);
    CHECK_THROWS_AS(add_ranks(find_rank_sum("bf16"), {}, out), Error);
}
