// The residual stream and its norms against core.
#include <doctest/doctest.h>

#include "core/nn/ops/rms_norm.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

// Every size of a team, its widest row, and one beyond it.
const std::vector<Shape> kShapes = {padded(1, 16),    padded(20, 64),    padded(300, 96),  padded(33, 512),
                                    padded(40, 528),  padded(70, 768),   padded(33, 1024), padded(35, 1040),
                                    padded(33, 2048), padded(19, 2064),  padded(50, 4096), padded(18, 4112),
                                    padded(17, 8192), padded(2100, 128), padded(1, 8192),  padded(5, 8208),
                                    padded(3, 16384)};

// Those whose casts norms take along: every team's widest row, one beyond it, strips that end in padding, more rows than
// strips of the least height hold.
const std::vector<Shape> kCastShapes = {padded(1, 16),    padded(20, 64),  padded(33, 256), padded(40, 272),
                                        padded(64, 512),  padded(47, 528), padded(70, 768), padded(96, 784),
                                        padded(33, 1024), padded(8201, 32)};

double largest_size(const Values& values) { return static_cast<double>(amax(values)); }

}  // namespace

TEST_CASE("the residual sum is core's, and the inverse of its root mean square within 1e-6") {
    NEEDS_GPU();
    for (const Shape s : kShapes)
        for (const Element element : kBoth)
            for (const bool round : {true, false}) {
                if (!round && element == Element::bf16) continue;
                CAPTURE(s.rows);
                CAPTURE(s.cols);
                const std::size_t n = size_of(s.rows, s.cols);
                const Values x = normals(n, 1, element), y = normals(n, 2, element, 0.3F);
                Values sum = x;
                for (std::size_t i = 0; i < n; ++i) sum[i] += y[i];
                sum = rounded(sum, round);
                const OnDevice x_memory(x, s, element), y_memory(y, s, element), out(s, element);
                Buffer<float> inverse(static_cast<std::size_t>(s.padded_rows));
                const Values poison(inverse.size(), kPoison);
                const auto check_inverse = [&](const Values& of) {
                    std::vector<double> expected;
                    for (int r = 0; r < s.rows; ++r) {
                        double squares = 0;
                        for (int c = 0; c < s.cols; ++c) {
                            const auto v = static_cast<double>(of[at(r, s.cols, c)]);
                            squares += v * v;
                        }
                        expected.push_back(1 / std::sqrt(squares / s.cols + kRmsEpsilon));
                    }
                    Values found = inverse.download();
                    CHECK(std::count(found.begin() + s.rows, found.end(), kPoison) == s.padded_rows - s.rows);
                    found.resize(static_cast<std::size_t>(s.rows));
                    CHECK(far(found, expected, 1e-6, 0) == 0);
                };
                inverse.upload(poison);
                add_and_measure(
                    {x_memory.get(), y_memory.get(), element, round, out.get(), inverse.get(), nullptr}, s,
                    nullptr);
                done();
                CHECK(different(out.real(), sum) == 0);
                CHECK(out.touched(kPoison) == 0);
                check_inverse(sum);
                inverse.upload(poison);
                add_and_measure({x_memory.get(), nullptr, element, round, out.get(), inverse.get(), nullptr},
                                s, nullptr);
                done();
                check_inverse(x);
                CHECK(different(out.real(), sum) == 0);  // not written
                // In place.
                add_and_measure(
                    {x_memory.get(), y_memory.get(), element, round, x_memory.get(), inverse.get(), nullptr},
                    s, nullptr);
                done();
                CHECK(different(x_memory.real(), sum) == 0);
                check_inverse(sum);
            }
}

TEST_CASE("the gradient through a norm and of its gains is core's, twice the same bytes") {
    NEEDS_GPU();
    for (const Shape s : kShapes)
        for (const Element element : kBoth)
            for (const bool first : {false, true}) {
                CAPTURE(s.rows);
                CAPTURE(s.cols);
                CAPTURE(first);
                const bool round = element == Element::bf16;
                const std::size_t n = size_of(s.rows, s.cols), d = static_cast<std::size_t>(s.cols);
                const Values x = normals(n, 1, element, 2), dy = normals(n, 2, element),
                             stream = normals(n, 3, element), gain = normals(d, 4);
                Matrix<double> normalised, y, dx;
                std::vector<double> inverse_rms, dg;
                const auto wide = [&](const Values& values) {
                    Matrix<double> m(static_cast<std::size_t>(s.rows), d);
                    std::ranges::copy(values, m.values.begin());
                    return m;
                };
                const std::vector<double> wide_gain(gain.begin(), gain.end());
                rms_norm(wide(x), wide_gain, kRmsEpsilon, normalised, inverse_rms, y);
                rms_norm_backward(wide(dy), normalised, inverse_rms, wide_gain, dx, dg);
                if (!first)
                    for (std::size_t i = 0; i < n; ++i) dx.values[i] += static_cast<double>(stream[i]);
                const Buffer<float> inverse = on_device(Values(inverse_rms.begin(), inverse_rms.end())),
                                    gains = on_device(gain);
                const OnDevice x_memory(x, s, element), dy_memory(dy, s, element);
                const int strips = norm_partials(s);
                Buffer<float> partials(size_of(strips, s.padded_cols) + 16);
                std::vector<Values> results;
                for (int again = 0; again < 2; ++again) {
                    partials.upload(Values(partials.size(), kPoison));
                    // In place, and the second time, where there is a stream to add to, out of place.
                    const OnDevice before(stream, s, element),
                        dstream(again ? Values(n, kNan) : stream, s, element, kPoison);
                    const void* const from = first ? nullptr : again ? before.get() : dstream.get();
                    const Buffer<std::uint32_t> counters = on_device(std::vector<std::uint32_t>(65, 7));
                    norm_backward({dy_memory.get(), x_memory.get(), element, inverse.get(), gains.get(), from,
                                   dstream.get(), round, partials.get(), again ? counters.get() : nullptr},
                                  s, nullptr);
                    done();
                    std::vector<std::uint32_t> cleared(65, again ? 0 : 7);
                    cleared.back() = 7;
                    CHECK(counters.download() == cleared);
                    const Values found = dstream.real(), sums = partials.download();
                    CHECK(dstream.touched(kPoison) == 0);
                    CHECK(std::count(sums.end() - 16, sums.end(), kPoison) == 16);
                    if (again == 0) {
                        const double size = largest_size(dy) * largest_size(gain) * 4;
                        CHECK(far(found, dx.values, half_step(element) + 1e-6, 1e-6 * size) == 0);
                    }
                    results.push_back(found), results.push_back(sums);
                }
                CHECK(different(results[0], results[2]) == 0);
                CHECK(different(results[1], results[3]) == 0);
                // Sums of the strips, in order.
                const Buffer<float> out(d);
                sum_strips(partials.get(), strips, s.cols, s.padded_cols, out.get(), nullptr);
                done();
                Values expected(d);
                for (int strip = 0; strip < strips; ++strip)
                    for (std::size_t c = 0; c < d; ++c)
                        expected[c] += results[1][size_of(strip, s.padded_cols) + c];
                const Values found = out.download();
                CHECK(different(found, expected) == 0);
                std::vector<double> size(d);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < n; ++i)
                    size[i % d] += std::abs(static_cast<double>(dy[i]) * normalised.values[i]);
                for (std::size_t c = 0; c < d; ++c)
                    wrong += std::abs(static_cast<double>(found[c]) - dg[c]) > 4e-6 * size[c];
                CHECK(wrong == 0);
            }
}

TEST_CASE("a row with a NaN or an Inf changes no other row") {
    NEEDS_GPU();
    const Shape s = padded(40, 768);
    const std::size_t n = size_of(s.rows, s.cols);
    Values x = normals(n, 1, Element::bf16);
    x[at(7, s.cols, 100)] = kNan;
    x[at(9, s.cols, 700)] = kInf;
    const OnDevice memory(x, s, Element::bf16), dy(normals(n, 2, Element::bf16), s, Element::bf16),
        dstream(Values(n, 0.0F), s, Element::bf16);
    const Buffer<float> inverse(static_cast<std::size_t>(s.rows)),
        gains = on_device(Values(768, 1.0F)), partials(size_of(norm_partials(s), s.padded_cols));
    add_and_measure({memory.get(), nullptr, Element::bf16, true, nullptr, inverse.get(), nullptr}, s,
                    nullptr);
    norm_backward({dy.get(), memory.get(), Element::bf16, inverse.get(), gains.get(), dstream.get(),
                   dstream.get(), true, partials.get()},
                  s, nullptr);
    done();
    const Values found = inverse.download(), dx = dstream.real();
    for (int r = 0; r < s.rows; ++r) {
        CHECK(std::isnan(found[static_cast<std::size_t>(r)]) == (r == 7));
        for (int c = 0; c < s.cols; ++c)
            if (r != 7 && r != 9) REQUIRE(std::isfinite(dx[at(r, s.cols, c)]));
    }
    CHECK(found[9] == 0);
    CHECK(std::isnan(dx[at(7, s.cols, 5)]));
}

TEST_CASE("rows that no team holds are refused in a sentence") {
    for (const Shape s : {padded(4, 24), padded(4, 16400)})
        CHECK_THROWS_WITH_AS(add_and_measure({}, s, nullptr),
                             doctest::Contains("multiple of 16 wide, and 16384 at most"), Error);
}

TEST_CASE("a cast that no norm takes along is refused in a sentence") {
    ScaleState state;
    const auto refused = [](Shape s, Element element, const CastTarget& cast) {
        CAPTURE(s.cols);
        NormForward forward;
        NormBackward backward;
        forward.element = backward.element = element;
        CHECK_THROWS_WITH_AS(add_and_measure(forward, s, nullptr, &cast),
                             doctest::Contains("from BF16 to FP8 with one scale"), Error);
        CHECK_THROWS_WITH_AS(norm_backward(backward, s, nullptr, &cast),
                             doctest::Contains("from BF16 to FP8 with one scale"), Error);
    };
    const Shape s = padded(4, 64);
    CastTarget good;
    good.element = Element::e4m3;
    good.state = &state;
    good.scaled = true;
    refused(padded(4, 1040), Element::bf16, good);
    refused(s, Element::f32, good);
    CastTarget bad = good;
    bad.element = Element::bf16;
    refused(s, Element::bf16, bad);  // with a scale
    bad.scaled = false;
    CHECK_THROWS_WITH_AS(norm_backward({}, s, nullptr, &bad), doctest::Contains("BF16 already"), Error);
    bad = good;
    bad.scaling = ScaleMode::row;
    refused(s, Element::bf16, bad);
    CastSums stats;
    bad = good;
    bad.stats_partials = &stats;
    refused(s, Element::bf16, bad);
    bad = good;
    bad.element = Element::e5m2;
    CHECK_THROWS_WITH_AS(add_and_measure({}, s, nullptr, &bad), doctest::Contains("E4M3"), Error);
}

TEST_CASE("the cast that the forward norm takes along is core's, and nothing else is different") {
    NEEDS_GPU();
    const auto check = [](Shape s, Element to) {
        for (const bool adds : {true, false}) {
            CAPTURE(s.rows);
            CAPTURE(s.cols);
            CAPTURE(static_cast<int>(to));
            CAPTURE(adds);
            constexpr Element kIn = Element::bf16;
            const std::size_t n = size_of(s.rows, s.cols);
            const Values x = normals(n, 1, kIn), gain = normals(static_cast<std::size_t>(s.cols), 3);
            const OnDevice x_memory(x, s, kIn), y_memory(normals(n, 2, kIn, 0.3F), s, kIn), sum(s, kIn),
                with_cast(s, kIn);
            const Buffer<float> gains = on_device(gain), inverse(static_cast<std::size_t>(s.padded_rows)),
                                inverse_too(inverse.size());
            const auto forward = [&](const OnDevice& stream, const Buffer<float>& rms) {
                return NormForward{
                    x_memory.get(), adds ? y_memory.get() : nullptr, kIn, true, stream.get(), rms.get(),
                    gains.get()};
            };
            add_and_measure(forward(sum, inverse), s, nullptr);
            const NormSource alone{adds ? sum.get() : x_memory.get(), kIn, inverse.get(), gains.get(), true};
            const Values exact = copied(
                [&](const CastTarget& target, Pass pass) { cast_norm(alone, s, target, pass, nullptr); }, s);
            check_tensor_cast(
                [&](const CastTarget& target, Pass) {
                    add_and_measure(forward(with_cast, inverse_too), s, nullptr, &target);
                },
                s, exact, to, false);
            CHECK(different(with_cast.all(), sum.all()) == 0);
            CHECK(different(inverse_too.download(), inverse.download()) == 0);
        }
    };
    for (const Shape s : kCastShapes) check(s, Element::e4m3);
    for (const Shape s : kCastShapes) check(s, Element::bf16);
    for (const Shape s : {padded(5, 1040), padded(33, 4096), padded(3, 8192), padded(2, 16384)})
        check(s, Element::bf16);
}

TEST_CASE("the cast that the backward norm takes along is core's, and nothing else is different") {
    NEEDS_GPU();
    for (const Shape s : kCastShapes)
        for (const Element to : {Element::e4m3, Element::e5m2}) {
            CAPTURE(s.rows);
            CAPTURE(s.cols);
            CAPTURE(static_cast<int>(to));
            constexpr Element kIn = Element::bf16;
            const std::size_t n = size_of(s.rows, s.cols);
            const OnDevice x(normals(n, 1, kIn, 2), s, kIn), dy(normals(n, 2, kIn), s, kIn),
                dstream(normals(n, 3, kIn), s, kIn), alone(s, kIn), with_cast(s, kIn);
            const Buffer<float> gain = on_device(normals(static_cast<std::size_t>(s.cols), 4)),
                                inverse = on_device(Values(static_cast<std::size_t>(s.rows), 0.6F)),
                                partials(size_of(norm_partials(s), s.padded_cols)),
                                partials_too(partials.size());
            const auto backward = [&](const OnDevice& out, const Buffer<float>& sums) {
                return NormBackward{dy.get(),      x.get(),   kIn,  inverse.get(), gain.get(),
                                    dstream.get(), out.get(), true, sums.get()};
            };
            norm_backward(backward(alone, partials), s, nullptr);
            done();
            check_tensor_cast(
                [&](const CastTarget& target, Pass) {
                    norm_backward(backward(with_cast, partials_too), s, nullptr, &target);
                },
                s, alone.real(), to, false);
            CHECK(different(with_cast.all(), alone.all()) == 0);
            CHECK(different(partials_too.download(), partials.download()) == 0);
        }
}

TEST_CASE("a cast that a norm takes along may be by rows or by columns only, and without a scale") {
    NEEDS_GPU();
    const Shape s = padded(40, 272);
    constexpr Element kIn = Element::bf16;
    const OnDevice x(normals(size_of(s.rows, s.cols), 1, kIn), s, kIn), out(s, kIn);
    const Buffer<float> inverse = on_device(Values(static_cast<std::size_t>(s.rows), 0.6F)),
                        gain = on_device(normals(static_cast<std::size_t>(s.cols), 4)),
                        partials(size_of(norm_partials(s), s.padded_cols));
    for (const bool is_forward : {true, false}) {
        CAPTURE(is_forward);
        const auto launch = [&](const CastTarget& target) {
            if (is_forward)
                add_and_measure({x.get(), nullptr, kIn, true, nullptr, inverse.get(), gain.get()}, s, nullptr,
                                &target);
            else
                norm_backward({x.get(), x.get(), kIn, inverse.get(), gain.get(), nullptr, out.get(), true,
                               partials.get()},
                              s, nullptr, &target);
            done();
        };
        CastOutputs both(s, Element::e4m3, ScaleMode::tensor, 1, false);
        launch(both.target);
        for (const bool by_rows : {true, false}) {
            CastOutputs one(s, Element::e4m3, ScaleMode::tensor, 3, false);  // which is not used
            const auto untouched = one.rows.download();
            (by_rows ? one.target.columns : one.target.rows) = nullptr;
            one.target.scaled = false;
            launch(one.target);
            CHECK(one.rows.download() == (by_rows ? both.rows.download() : untouched));
            CHECK(one.columns.download() == (by_rows ? untouched : both.columns.download()));
            CHECK(one.state.download()[0].scale_used == 1);
            CHECK(one.state.download()[0].amax_bits == both.state.download()[0].amax_bits);
        }
    }
}
