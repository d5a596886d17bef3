// The sources of casts that only a transformer has: their values against core's operations, and every cast of these
// values against core's casts.
#include <doctest/doctest.h>

#include "core/nn/ops/rms_norm.h"
#include "core/nn/ops/rope.h"
#include "core/nn/ops/swiglu.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

const std::vector<Shape> kShapes = {padded(1, 16), padded(20, 64), padded(130, 96), padded(200, 384)};

// core's operation for the same values in memory; `round`: to BF16 afterwards.
struct Norm {
    Values x, gain, inverse_rms, y;
};
Norm norm_of(Shape s, Element element) {
    Norm n{normals(size_of(s.rows, s.cols), 1, element, 3),
           normals(static_cast<std::size_t>(s.cols), 2),
           {},
           {}};
    Matrix<float> normalised, y;
    rms_norm(matrix(n.x, s.rows, s.cols), n.gain, kRmsEpsilon, normalised, n.inverse_rms, y);
    n.y = y.values;
    return n;
}

// Gates up to 20, where the activation saturates, and some at the limits of the clamped form.
Values gates(Shape s, Element element) {
    Values values = normals(size_of(s.rows, 2 * s.cols), 3, element, 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i % 7 == 1) values[i] *= 8;
        if (i % 31 == 2) values[i] = i % 2 ? 10.0F : -10.0F;
        if (i % 53 == 3) values[i] = 0;
        if (i % 97 == 4) values[i] = i % 2 ? 300.0F : -300.0F;
    }
    return rounded(values, element == Element::bf16);
}
Shape twice_as_wide(Shape s) { return {s.rows, 2 * s.cols, s.padded_rows, 2 * s.padded_cols}; }
GatedActivation activation_of(GateKind kind) {
    return kind == GateKind::clamp ? GatedActivation::clamp : GatedActivation::swiglu;
}

}  // namespace

TEST_CASE("the cast behind a norm is core's norm, rounded, and core's cast of it") {
    NEEDS_GPU();
    for (const Shape s : kShapes)
        for (const Element element : kBoth)
            for (const bool round : {true, false}) {
                if (!round && element == Element::bf16) continue;
                CAPTURE(s.cols);
                CAPTURE(round);
                const Norm norm = norm_of(s, element);
                const OnDevice x(norm.x, s, element);
                const Buffer<float> inverse = on_device(norm.inverse_rms), gain = on_device(norm.gain);
                const NormSource source{x.get(), element, inverse.get(), gain.get(), round};
                const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
                    cast_norm(source, s, target, pass, nullptr);
                };
                const Values found = copied(launch, s);
                CHECK(different(found, rounded(norm.y, round)) == 0);
                if (element == Element::bf16) check_casts(launch, s, found, false);
            }
}

TEST_CASE("the cast of what is rotated back is core's rotation, rounded, and core's cast of it") {
    NEEDS_GPU();
    struct Heads {
        int rows, heads, head_size, context, values;  // values: columns that are not rotated
    };
    for (const Heads& h : {Heads{64, 1, 16, 64, 0}, Heads{130, 6, 16, 65, 32}, Heads{70, 3, 32, 7, 48},
                           Heads{50, 2, 64, 50, 64}, Heads{33, 5, 128, 11, 128}, Heads{40, 4, 8, 20, 16},
                           Heads{130, 4, 64, 65, 128}, Heads{300, 4, 128, 100, 256},
                           Heads{131, 16, 16, 65, 128}, Heads{77, 8, 32, 7, 128}, Heads{37, 2, 128, 37, 128},
                           Heads{21, 8, 6, 7, 16}, Heads{16, 8, 2, 1, 16}})
        for (const Element element : kBoth)
            for (const bool round : {true, false}) {
                if (!round && element == Element::bf16) continue;
                CAPTURE(h.head_size);
                CAPTURE(round);
                const int turned = h.heads * h.head_size;
                const Shape s = padded(h.rows, turned + h.values);
                REQUIRE(s.cols % 16 == 0);
                const Values m = normals(size_of(s.rows, s.cols), 5, element);
                Matrix<float> part(static_cast<std::size_t>(h.rows), static_cast<std::size_t>(turned));
                for (int r = 0; r < s.rows; ++r)
                    for (int c = 0; c < turned; ++c) part.values[at(r, turned, c)] = m[at(r, s.cols, c)];
                const RotaryTable<float> table(static_cast<std::size_t>(h.context),
                                               static_cast<std::size_t>(h.head_size));
                const Buffer<float> cos = on_device(table.cos().values), sin = on_device(table.sin().values);
                const Rotary rotary{cos.get(), sin.get(), h.context, h.head_size, turned};
                const auto with = [&](const Matrix<float>& rotated) {
                    Values all = m;
                    for (int r = 0; r < s.rows; ++r)
                        for (int c = 0; c < turned; ++c)
                            all[at(r, s.cols, c)] = rotated.values[at(r, turned, c)];
                    return all;
                };
                Matrix<float> forward = part, back = part;
                rotate(forward, table);
                rotate_back(back, table);

                for (const Turn turn : {Turn::forward, Turn::back}) {
                    const OnDevice in_place(m, s, element, kPoison);
                    rotate_heads(in_place.get(), element, s, rotary, turn, round, nullptr);
                    done();
                    Values expected = with(turn == Turn::forward ? forward : back);
                    for (int r = 0; r < s.rows; ++r)
                        for (int c = 0; c < turned; ++c)
                            if (round) expected[at(r, s.cols, c)] = as_bf16(expected[at(r, s.cols, c)]);
                    CHECK(different(in_place.real(), expected) == 0);
                    CHECK(in_place.touched(kPoison) == 0);
                }

                const OnDevice in(m, s, element);
                const RotatedBackSource source{in.get(), element, rotary, round};
                const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
                    cast_rotated_back(source, s, target, pass, nullptr);
                };
                if (element == Element::bf16 && !rotates_in_eights(h.head_size)) {
                    CHECK_THROWS_WITH_AS(copied(launch, s), doctest::Contains("multiple of 16"), Error);
                    continue;
                }
                const Values found = copied(launch, s);
                CHECK(different(found, rounded(with(back), round)) == 0);
                if (element == Element::bf16) check_casts(launch, s, found, true);
            }
}

TEST_CASE("the cast of the gated activation is core's in FP32 bit for bit, near it in BF16") {
    NEEDS_GPU();
    for (const Shape s : kShapes)
        for (const Element element : kBoth)
            for (const GateKind kind : {GateKind::swiglu, GateKind::clamp})
                for (const bool scaled : {false, true}) {
                    CAPTURE(s.cols);
                    CAPTURE(static_cast<int>(kind));
                    CAPTURE(scaled);
                    const Values gate_up = gates(s, element);
                    const OnDevice in(gate_up, twice_as_wide(s), element);
                    Values scales;
                    for (int c = 0; c < s.cols; ++c) scales.push_back(std::ldexp(1.0F, c % 9 - 4));
                    const Buffer<float> factors = on_device(scales);
                    Matrix<float> a;
                    gated_activation(activation_of(kind), matrix(gate_up, s.rows, 2 * s.cols), a);
                    for (const bool round : {true, false}) {
                        if (!round && element == Element::bf16) continue;
                        const GateSource source{in.get(), element, kind, round,
                                                scaled ? factors.get() : nullptr};
                        const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
                            cast_gate(source, s, target, pass, nullptr);
                        };
                        const Values found = copied(launch, s);
                        Values expected = element == Element::f32 ? rounded(a.values, round) : a.values;
                        if (scaled)
                            for (std::size_t i = 0; i < expected.size(); ++i)
                                expected[i] *= scales[i % scales.size()];
                        if (element == Element::f32)
                            CHECK(different(found, expected) == 0);
                        else
                            CHECK(far(found, expected, half_step(element), 1e-30) == 0);
                        if (element == Element::bf16) check_casts(launch, s, found, false);
                    }
                }
}

TEST_CASE("the cast of the gradients through the gate is core's in FP32 bit for bit, near it in BF16") {
    NEEDS_GPU();
    for (const Shape channels : {padded(1, 16), padded(20, 64), padded(130, 192), padded(70, 256),
                                 padded(131, 128), padded(50, 128)})
        for (const Element element : kBoth)
            for (const GateKind kind : {GateKind::swiglu, GateKind::clamp})
                for (const bool scaled : {false, true}) {
                    CAPTURE(channels.cols);
                    CAPTURE(static_cast<int>(kind));
                    CAPTURE(scaled);
                    const Shape s = twice_as_wide(channels);
                    const Values gate_up = gates(channels, element),
                                 da = normals(size_of(channels.rows, channels.cols), 8, element);
                    const OnDevice gate_memory(gate_up, s, element), da_memory(da, channels, element);
                    Values scales, scaled_da = da;
                    for (int c = 0; c < channels.cols; ++c) scales.push_back(std::ldexp(1.0F, c % 9 - 4));
                    const Buffer<float> factors = on_device(scales);
                    if (scaled)
                        for (std::size_t i = 0; i < da.size(); ++i) scaled_da[i] *= scales[i % scales.size()];
                    Matrix<float> expected;
                    gated_activation_backward(activation_of(kind),
                                              matrix(scaled_da, channels.rows, channels.cols),
                                              matrix(gate_up, s.rows, s.cols), expected);
                    for (const bool round : {true, false}) {
                        if (!round && element == Element::bf16) continue;
                        const GateSlopeSource source{da_memory.get(), gate_memory.get(),
                                                     element,         kind,
                                                     round,           scaled ? factors.get() : nullptr};
                        const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
                            cast_gate_slope(source, s, target, pass, nullptr);
                        };
                        const Values found = copied(launch, s);
                        if (element == Element::f32)
                            CHECK(different(found, rounded(expected.values, round)) == 0);
                        else  // near its root the slope cancels
                            CHECK(far(found, expected.values, half_step(element),
                                      1e-6 * static_cast<double>(amax(scaled_da)) *
                                          static_cast<double>(amax(gate_up))) == 0);
                        if (element == Element::bf16) check_casts(launch, s, found, true);
                    }
                }
}

TEST_CASE("scales of channels are core's, and the columns of the weights are divided by them") {
    NEEDS_GPU();
    for (const Shape s : {padded(1, 16), padded(130, 96), padded(257, 1040)})
        for (const Element element : kBoth) {
            CAPTURE(s.cols);
            Values gate_up = gates(s, element);
            for (int r = 0; r < s.rows; ++r) gate_up[at(r, 2 * s.cols, 3)] = 0;  // a channel of zeros
            gate_up[5] = kInf, gate_up[at(0, 2 * s.cols, s.cols + 5)] = 1;
            gate_up[7] = kNan;
            const OnDevice in(gate_up, twice_as_wide(s), element);
            const GateSource source{in.get(), element, GateKind::swiglu, true, nullptr};
            Buffer<std::uint32_t> scratch(static_cast<std::size_t>(s.cols));
            scratch.upload(std::vector<std::uint32_t>(scratch.size(), 0x7F000000u));
            const Buffer<float> scales(static_cast<std::size_t>(s.cols));
            channel_scales(source, s, scratch.get(), scales.get(), nullptr);
            const Values a = copied(
                [&](const CastTarget& target, Pass pass) { cast_gate(source, s, target, pass, nullptr); }, s);
            Values expected;
            channel_scales(matrix(a, s.rows, s.cols), expected);
            CHECK(scales.download() == expected);
            CHECK(expected[3] == 1);
            CHECK(expected[5] == 1);

            const Values w = normals(size_of(s.rows, s.cols), 9);
            const OnDevice weights(w, s, Element::f32, kPoison), out(s, Element::f32);
            Matrix<float> unscaled;
            unscale_columns(matrix(w, s.rows, s.cols), expected, unscaled);
            unscale_columns(static_cast<const float*>(weights.get()), scales.get(), s,
                            static_cast<float*>(out.get()), nullptr);
            done();
            CHECK(different(out.real(), unscaled.values) == 0);
            unscale_columns(static_cast<const float*>(weights.get()), scales.get(), s,
                            static_cast<float*>(weights.get()), nullptr);
            done();
            CHECK(different(weights.real(), unscaled.values) == 0);
            CHECK(weights.touched(kPoison) == 0);
        }
}

TEST_CASE("a NaN and an Inf of a row stay in it, and in every cast") {
    NEEDS_GPU();
    const Shape s = padded(70, 256);
    Values gate_up = normals(size_of(s.rows, 2 * s.cols), 3, Element::bf16);
    gate_up[at(3, 2 * s.cols, 17)] = kNan;
    gate_up[at(5, 2 * s.cols, s.cols + 40)] = kInf;
    gate_up[at(6, 2 * s.cols, 41)] = -kInf;
    const OnDevice in(gate_up, twice_as_wide(s), Element::bf16);
    const GateSource source{in.get(), Element::bf16, GateKind::swiglu, true, nullptr};
    const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
        cast_gate(source, s, target, pass, nullptr);
    };
    const Values found = copied(launch, s);
    CHECK(std::isnan(found[at(3, s.cols, 17)]));
    CHECK(std::isinf(found[at(5, s.cols, 40)]));
    CHECK(std::isnan(found[at(6, s.cols, 41)]));  // -Inf / (1 + Inf), as in core
    CHECK(std::ranges::count_if(found, [](float x) { return !std::isfinite(x); }) == 3);
    check_casts(launch, s, found, false);
}

TEST_CASE("a NaN and an Inf stay in their place where the parts of a matrix come from the same loads") {
    NEEDS_GPU();
    SUBCASE("rotated back: with them the other half of the head") {
        constexpr int kHeadSize = 64, kTurned = 256, kContext = 33;
        const Shape s = padded(66, kTurned + 128);
        Values m = normals(size_of(s.rows, s.cols), 5, Element::bf16);
        m[at(3, s.cols, 17)] = kNan;            // of a low half of q
        m[at(64, s.cols, 128 + 40)] = kInf;     // of a high half of k
        m[at(65, s.cols, kTurned + 9)] = kNan;  // of v
        const OnDevice in(m, s, Element::bf16);
        const RotaryTable<float> table(kContext, kHeadSize);
        const Buffer<float> cos = on_device(table.cos().values), sin = on_device(table.sin().values);
        const RotatedBackSource source{
            in.get(), Element::bf16, {cos.get(), sin.get(), kContext, kHeadSize, kTurned}, true};
        const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
            cast_rotated_back(source, s, target, pass, nullptr);
        };
        const Values found = copied(launch, s);
        for (const int c : {17, 17 + 32}) CHECK(std::isnan(found[at(3, s.cols, c)]));
        for (const int c : {128 + 40, 128 + 8}) CHECK(!std::isfinite(found[at(64, s.cols, c)]));
        CHECK(std::isnan(found[at(65, s.cols, kTurned + 9)]));
        CHECK(std::ranges::count_if(found, [](float x) { return !std::isfinite(x); }) == 5);
        check_casts(launch, s, found, true);
    }
    SUBCASE("through the gate") {
        const Shape channels = padded(66, 128), s = twice_as_wide(channels);
        const Values gate_up = gates(channels, Element::bf16);
        Values da = normals(size_of(channels.rows, channels.cols), 8, Element::bf16);
        da[at(2, channels.cols, 5)] = kNan;
        da[at(65, channels.cols, 100)] = -kInf;
        const OnDevice gate_memory(gate_up, s, Element::bf16), da_memory(da, channels, Element::bf16);
        const GateSlopeSource source{
            da_memory.get(), gate_memory.get(), Element::bf16, GateKind::swiglu, true, nullptr};
        const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
            cast_gate_slope(source, s, target, pass, nullptr);
        };
        const Values found = copied(launch, s);
        for (const int c : {5, 128 + 5}) CHECK(std::isnan(found[at(2, s.cols, c)]));
        for (const int c : {100, 128 + 100}) CHECK(!std::isfinite(found[at(65, s.cols, c)]));
        CHECK(std::ranges::count_if(found, [](float x) { return !std::isfinite(x); }) == 4);
        check_casts(launch, s, found, true);
    }
}
