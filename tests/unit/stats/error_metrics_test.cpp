#include "core/stats/error_metrics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace fp8lab;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
using Values = std::vector<float>;

ErrorMetrics metrics_of(const Values& x, const Values& q, float top = 448) {
    const Values scale = {1}, tops = {top};
    return error_metrics(measure_cast(x, q, scale, {464, false}), measure_errors(x, q, tops));
}

}  // namespace

TEST_CASE("the metrics of five numbers, by hand") {
    // Errors 0, 1, 0.001, 52, 0: relative 0, 1/17, 1, 52/500, -.
    const ErrorMetrics m = metrics_of({3, 17, -0.001F, 500, 0}, {3, 16, 0, 448, 0});
    const double signal = 9 + 289 + 1e-6 + 250000, noise = 1 + 1e-6 + 2704;
    CHECK(m.n == 5);
    CHECK(m.sqnr_db == doctest::Approx(10 * std::log10(signal / noise)));
    CHECK(m.rel_l2 == doctest::Approx(std::sqrt(noise / signal)));
    CHECK(m.mse == doctest::Approx(noise / 5));
    CHECK(m.mean_rel == doctest::Approx((1.0 / 17 + 1 + 0.104) / 4));
    CHECK(m.max_rel == 1);
    CHECK(m.cosine == doctest::Approx((9 + 272 + 224000) / std::sqrt(signal * (9 + 256 + 200704))));
    CHECK(m.underflow_pct == 20);
    CHECK(m.lost_l1_pct == doctest::Approx(100 * 0.001 / 520.001));
    CHECK(m.lost_energy_pct == doctest::Approx(100 * 1e-6 / signal));
    CHECK(m.overflow_pct == 20);
    CHECK(m.max_code_pct == 20);
    CHECK(m.amax == 500);
    CHECK(m.amin_nonzero == doctest::Approx(0.001));
    CHECK(m.dynamic_range_log2 == doctest::Approx(std::log2(500 / 0.001)));
}

TEST_CASE("NaN and infinities are counted and take no part in the sums") {
    const ErrorMetrics m = metrics_of({kNan, 2, kInf, -kInf, 4}, {kNan, 2, 448, -448, 5});
    CHECK(m.nan == 1);
    CHECK(m.inf == 2);
    CHECK(m.n == 5);
    CHECK(m.mse == doctest::Approx(0.5));
    CHECK(m.mean_rel == doctest::Approx(0.125));
    CHECK(m.max_code_pct == 0);
    CHECK(m.amin_nonzero == 2);
    CHECK(std::isinf(m.dynamic_range_log2));
}

TEST_CASE("a metric without a meaning is NaN: of zeros, of nothing but infinities") {
    const ErrorMetrics zeros = metrics_of({0, 0}, {0, 0});
    for (const double value :
         {zeros.sqnr_db, zeros.rel_l2, zeros.mean_rel, zeros.max_rel, zeros.cosine, zeros.amin_nonzero})
        CHECK(std::isnan(value));
    CHECK(zeros.mse == 0);
    const ErrorMetrics infinities = metrics_of({kInf}, {448});
    for (const double value : {infinities.sqnr_db, infinities.mse, infinities.mean_rel, infinities.max_rel})
        CHECK(std::isnan(value));
}

TEST_CASE("a finite number that is cast to NaN is seen in every mean") {
    const ErrorMetrics m = metrics_of({1, 500, 1}, {1, kNan, 1});
    for (const double value : {m.sqnr_db, m.mse, m.mean_rel, m.max_rel}) CHECK(std::isnan(value));
}

TEST_CASE("sums of parts add up, each with its own largest code") {
    const Values x = {1, -2, 0, 4, kNan, 0.5F}, q = {1, -3, 0, 3, 0, 0.5F}, tops = {1, 3, 1, 4, 1, 1};
    const ErrorSums whole = measure_errors(x, q, tops);
    ErrorSums parts;
    for (std::size_t i = 0; i < x.size(); i += 2)
        parts += measure_errors(std::span(x).subspan(i, 2), std::span(q).subspan(i, 2),
                                std::span(tops).subspan(i, 2));
    CHECK(whole.at_max == 2);  // 1 and -3
    CHECK(parts.at_max == whole.at_max);
    CHECK(parts.nan == 1);
    CHECK(parts.nonzero == whole.nonzero);
    CHECK(parts.relative == doctest::Approx(whole.relative));
    CHECK(parts.worst == whole.worst);
    CHECK(parts.dot == doctest::Approx(whole.dot));
    CHECK(parts.q_squared == doctest::Approx(whole.q_squared));
    CHECK(parts.amin_nonzero == 0.5F);
}
