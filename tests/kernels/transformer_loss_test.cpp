// The loss of the next token and its gradient, the norm of all gradients, and the optimiser behind it, against core.
#include <doctest/doctest.h>

#include "core/nn/ops/token_loss.h"
#include "core/nn/optimizer.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

// Logits of `rows` rows, of which every fifth is not scored, or none is.
struct Scored {
    Shape s;
    Values logits;
    TokenBatch batch;
    int scored = 0;
    Buffer<std::int32_t> ring;
    OnDevice memory;
    TokenLossSource source;

    Scored(int rows, int vocabulary, Element element, Values values, bool all_unscored = false)
        : s(padded(rows, vocabulary)), logits(std::move(values)), memory(logits, s, element) {
        std::mt19937 dice(static_cast<std::uint32_t>(rows + vocabulary));
        TokenRing layout;
        layout.rows = rows, layout.vocabulary = vocabulary;
        std::vector<std::int32_t> entry(static_cast<std::size_t>(layout.stride()));
        for (int r = 0; r < rows; ++r) {
            const bool counts = !all_unscored && r % 5 != 2;
            int target = static_cast<int>(dice() % static_cast<std::uint32_t>(vocabulary));
            // Often the largest of the row, now and then twice there.
            const auto row = logits.begin() + static_cast<std::ptrdiff_t>(size_of(r, vocabulary));
            if (r % 3 == 0) target = static_cast<int>(std::max_element(row, row + vocabulary) - row);
            if (r % 12 == 3) target = vocabulary / 2;  // as large as the first, which is before it
            if (r % 12 == 10) target = 5;
            if (target == 1) target = 0;  // whose logit is -Inf here and there
            batch.targets.push_back(target);
            batch.scored.push_back(counts);
            scored += counts;
            entry[static_cast<std::size_t>(rows + r)] = counts ? target : -1;
        }
        entry.back() = scored;
        batch.sequences = 1, batch.context = static_cast<std::size_t>(rows);
        batch.tokens.resize(static_cast<std::size_t>(rows));
        ring = on_device(entry);
        source = {
            memory.get(), element, {ring.get(), rows, vocabulary, 1, nullptr, 1, nullptr}, nullptr, true};
    }
};

struct Rows {
    std::vector<float2> stats;
    std::vector<double> loss;
    std::vector<std::uint8_t> correct;
};
Rows rows_of(const Scored& x, Buffer<float2>& stats) {
    const auto n = static_cast<std::size_t>(x.s.rows);
    Buffer<double> loss(n);
    Buffer<std::uint8_t> correct(n);
    stats.upload(std::vector<float2>(n, float2{kNan, kNan}));
    loss.upload(std::vector<double>(n, 1e9));
    correct.upload(std::vector<std::uint8_t>(n, 7));
    token_rows(x.source, x.s, stats.get(), loss.get(), correct.get(), nullptr);
    done();
    return {stats.download(), loss.download(), correct.download()};
}

Values logits_of(int rows, int vocabulary, Element element) {
    Values y = normals(size_of(rows, vocabulary), 1, element, 3);
    for (int r = 0; r < rows; ++r) {
        if (r % 4 == 1) y[at(r, vocabulary, vocabulary - 1)] = 40;  // all but one are far below
        if (r % 6 == 3)
            y[at(r, vocabulary, 0)] = y[at(r, vocabulary, vocabulary / 2)] = 20;  // twice the largest
        if (r % 7 == 4) y[at(r, vocabulary, 1)] = -kInf;
        if (r % 12 == 10) y[at(r, vocabulary, 4)] = y[at(r, vocabulary, 5)] = 45;
    }
    return y;
}

}  // namespace

TEST_CASE("rows of logits have core's loss and accuracy, and their gradient is core's") {
    NEEDS_GPU();
    for (const auto& [rows, vocabulary] : {std::pair{1, 16},
                                           {20, 55},
                                           {130, 16},
                                           {70, 1000},
                                           {33, 1030},
                                           {19, 4096},
                                           {18, 50257},
                                           {4100, 1100}})
        for (const Element element : kBoth) {
            CAPTURE(rows);
            CAPTURE(vocabulary);
            const Scored x(rows, vocabulary, element, logits_of(rows, vocabulary, element));
            const auto n = static_cast<std::size_t>(rows);
            Buffer<float2> stats(n);
            const Rows found = rows_of(x, stats);
            double loss = 0, correct = 0;
            for (std::size_t r = 0; r < n; ++r) {
                loss += found.loss[r], correct += found.correct[r];
                CHECK(found.correct[r] <= 1);
                if (x.batch.scored[r]) continue;
                CHECK(found.loss[r] == 0);
                CHECK(found.correct[r] == 0);
            }
            Matrix<double> logits(n, static_cast<std::size_t>(vocabulary)), gradient;
            std::ranges::copy(x.logits, logits.values.begin());
            const LossValue expected = token_loss(logits, x.batch, gradient);
            CHECK(loss == doctest::Approx(expected.loss).epsilon(2e-6));
            CHECK(correct / x.scored == expected.accuracy);
            const Rows again = rows_of(x, stats);
            CHECK(again.loss == found.loss);
            for (std::size_t r = 0; r < n; ++r) {
                CHECK(again.stats[r].x == found.stats[r].x);
                CHECK(again.stats[r].y == found.stats[r].y);
            }

            for (const bool round : {true, false}) {
                if (!round && element == Element::bf16) continue;
                TokenLossSource source = x.source;
                source.row_stats = stats.get();
                source.round = round;
                const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
                    cast_token_gradient(source, x.s, target, pass, nullptr);
                };
                const Values values = copied(launch, x.s);
                CHECK(far(values, gradient.values, (round ? half_step(Element::bf16) : 0) + 4e-6,
                          4e-6 / x.scored) == 0);
                if (element == Element::bf16 && rows * vocabulary < 100000)
                    check_casts(launch, x.s, values, true);
            }
        }
}

TEST_CASE("a row of logits with a NaN or an Inf has a loss of NaN, and no other row has") {
    NEEDS_GPU();
    for (const int vocabulary : {55, 4096})
        for (const Element element : kBoth) {
            Values y = logits_of(20, vocabulary, element);
            y[at(3, vocabulary, 30)] = kNan;
            y[at(5, vocabulary, 54)] = kInf;
            for (int c = 0; c < vocabulary; ++c) y[at(8, vocabulary, c)] = -kInf;
            const Scored x(20, vocabulary, element, y);
            Buffer<float2> stats(20);
            const Rows found = rows_of(x, stats);
            for (std::size_t r = 0; r < 20; ++r) {
                CAPTURE(r);
                CHECK(std::isnan(found.loss[r]) == (r == 3 || r == 5 || r == 8));
                if (std::isnan(found.loss[r])) CHECK(found.correct[r] == 0);
            }
            if (element != Element::bf16) continue;
            TokenLossSource source = x.source;
            source.row_stats = stats.get();
            const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
                cast_token_gradient(source, x.s, target, pass, nullptr);
            };
            check_casts(launch, x.s, copied(launch, x.s), true);
        }
}

TEST_CASE("where nothing is scored logits change nothing and the gradient is zeros") {
    NEEDS_GPU();
    for (const Element element : kBoth) {
        const Scored x(20, 55, element, Values(20 * 55, kNan), true);
        Buffer<float2> stats(20);
        const Rows found = rows_of(x, stats);
        CHECK(found.loss == std::vector<double>(20));
        CHECK(found.correct == std::vector<std::uint8_t>(20));
        TokenLossSource source = x.source;
        source.row_stats = stats.get();
        const Values values =
            copied([&](const CastTarget& target,
                       Pass pass) { cast_token_gradient(source, x.s, target, pass, nullptr); },
                   x.s);
        CHECK(different(values, Values(20 * 55)) == 0);
    }
}

TEST_CASE("the norm of all gradients is that of float64, and what clipping multiplies by is core's") {
    NEEDS_GPU();
    for (const Element element : kBoth) {
        std::vector<Values> gradients;
        std::vector<Buffer<double>> unused;
        double squares = 0;
        int count = 0;
        constexpr std::size_t kCounts[] = {1, 7, 64, 16384, 16400, 300001};
        for (const std::size_t n : kCounts) {
            gradients.push_back(normals(n, static_cast<std::uint32_t>(n), element, 1e-3F));
            for (const float g : gradients.back()) squares += static_cast<double>(g) * static_cast<double>(g);
            count += square_partials(static_cast<long long>(n));
        }
        const double norm = std::sqrt(squares);
        for (const double limit : {norm / 3, norm * 2}) {
            Buffer<double> partials(static_cast<std::size_t>(count)), length(1);
            partials.upload(std::vector<double>(partials.size(), 1e9));
            const Buffer<float> factor(1);
            int first = 0;
            for (const Values& g : gradients) {
                const auto n = static_cast<int>(g.size());
                const OnDevice memory(g, {1, n, 1, n}, element);
                sum_of_squares(memory.get(), element, n, partials.get() + first, nullptr);
                done();
                first += square_partials(n);
            }
            clip_factor(partials.get(), count, limit, factor.get(), length.get(), nullptr);
            done();
            const double found = length.download()[0], f = limit / (found + 1e-6);
            CHECK(found == doctest::Approx(norm).epsilon(1e-12));
            CHECK(factor.download()[0] == (f < 1 ? static_cast<float>(f) : 1.0F));
            clip_factor(partials.get(), count, limit, factor.get(), nullptr, nullptr);
            done();
            CHECK(factor.download()[0] == (f < 1 ? static_cast<float>(f) : 1.0F));
            partials.upload(std::vector<double>(partials.size(), static_cast<double>(kNan)));
            clip_factor(partials.get(), count, limit, factor.get(), length.get(), nullptr);
            done();
            CHECK(factor.download()[0] == 1);
            CHECK(std::isnan(length.download()[0]));
        }
    }
}
