// Updates of weights against core's optimisers, alone, and several matrices at once.
#include <doctest/doctest.h>

#include "core/nn/optimizer.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

TEST_CASE("updates with other constants of AdamW and a factor of the gradients are core's, bit for bit") {
    NEEDS_GPU();
    const Shape s = padded(70, 144);
    const std::size_t n = size_of(s.rows, s.cols);
    for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd})
        for (const float factor : {1.0F, 0.37F}) {
            CAPTURE(factor);
            const OptimizerStep how{kind, kCaseRate, kCaseDecay, kCaseStep, 0.8, 0.95, 1e-6};
            StepInput input = case_input();
            input.rate = static_cast<float>(kCaseRate / (1 - std::pow(how.beta1, kCaseStep + 1)));
            input.spread = static_cast<float>(1 / std::sqrt(1 - std::pow(how.beta2, kCaseStep + 1)));
            Values w = normals(n, 1), g = normals(n, 2), scaled = g;
            for (float& x : scaled) x *= factor;
            Moments moments{normals(n, 3), normals(n, 4)};
            for (float& v : moments.v) v = std::abs(v);
            const bool adamw = kind == OptimizerKind::adamw;
            const OnDevice w_memory(w, s, Element::f32, 0), g_memory(g, s, Element::f32, 0),
                m_memory(moments.m, s, Element::f32, 0), v_memory(moments.v, s, Element::f32, 0);
            const Buffer<StepInput> inputs = one(input);
            const Buffer<ArmState> arm = one(ArmState{kCaseStep, 1});
            const Buffer<std::int32_t> finite = one(std::int32_t{1});
            const Buffer<float> factor_memory = one(factor);
            // Of a matrix and of a vector, which is its first column's worth of biases.
            BiasUpdates biases;
            biases.layers = 1;
            const Values b(w.begin(), w.begin() + 50), gb(g.begin(), g.begin() + 50);
            const Buffer<float> b_memory = on_device(b), db(50), before(50), partials = on_device(gb),
                                mb = on_device(Values(moments.m.begin(), moments.m.begin() + 50)),
                                vb = on_device(Values(moments.v.begin(), moments.v.begin() + 50));
            biases.layer[0] = {b_memory.get(),
                               adamw ? mb.get() : nullptr,
                               adamw ? vb.get() : nullptr,
                               db.get(),
                               before.get(),
                               partials.get(),
                               1,
                               50,
                               50};
            UpdateSource source;
            source.w = w_memory.get(), source.g = g_memory.get();
            if (adamw) source.m = m_memory.get(), source.v = v_memory.get();
            source.inputs = inputs.get(), source.arm = arm.get(), source.finite = finite.get();
            source.adamw = {how.beta1, how.beta2, how.eps};
            source.gradient_factor = factor == 1 ? nullptr : factor_memory.get();
            CastTarget target;
            target.element = Element::f32;
            update_weights(source, s, target, nullptr);
            update_biases(biases, inputs.get(), 1, arm.get(), finite.get(), nullptr, source.adamw,
                          source.gradient_factor);
            done();
            update(how, w, scaled, moments);
            CHECK(different(w_memory.real(), w) == 0);
            CHECK(different(b_memory.download(), Values(w.begin(), w.begin() + 50)) == 0);
            CHECK(db.download() == gb);
            if (!adamw) continue;
            CHECK(different(m_memory.real(), moments.m) == 0);
            CHECK(different(v_memory.real(), moments.v) == 0);
            CHECK(different(mb.download(), Values(moments.m.begin(), moments.m.begin() + 50)) == 0);
        }
}

TEST_CASE("several matrices at once and in parts are updated and cast as one by one") {
    NEEDS_GPU();
    struct Kind {
        Element weight, gradient, payload;
    };
    const std::vector<Shape> shapes = {padded(70, 144), padded(200, 272), padded(16, 16), padded(130, 400),
                                       padded(16, 32),  padded(64, 128),  padded(1, 16),  padded(65, 129),
                                       padded(32, 16),  padded(128, 256)};
    constexpr Kind kF8{Element::f32, Element::f32, Element::e4m3},
        kB16{Element::f32, Element::f32, Element::bf16}, kNarrow{Element::f32, Element::bf16, Element::e4m3},
        kAllB16{Element::bf16, Element::bf16, Element::bf16};
    // Elements of one kind, and of several kinds that alternate.
    for (const std::vector<Kind>& kinds :
         {std::vector<Kind>(10, kF8), std::vector<Kind>(10, kB16), std::vector<Kind>(10, kNarrow),
          std::vector<Kind>(10, kAllB16),
          std::vector<Kind>{kF8, kB16, kB16, kNarrow, kB16, kF8, kF8, kF8, kAllB16, kAllB16}})
        for (const bool stats : {false, true}) {
            const Buffer<StepInput> inputs = one(case_input());
            const Buffer<ArmState> arm = one(ArmState{kCaseStep, 1});
            const Buffer<std::int32_t> finite = one(std::int32_t{1});
            struct One {
                OnDevice w, g, m, v;
                Buffer<std::uint8_t> rows, columns;
                Buffer<ScaleState> state;
                Buffer<CastSums> sums;
                std::vector<Values> values() const { return {w.real(), m.real(), v.real()}; }
            };
            const auto make = [&](std::size_t i) {
                const Shape s = shapes[i];
                const std::size_t n = size_of(s.rows, s.cols);
                const auto seed = static_cast<std::uint32_t>(10 * i);
                Values v = normals(n, seed + 4, kinds[i].weight);
                for (float& x : v) x = std::abs(x);
                ScaleState state;
                state.scale = 64;
                return One{{normals(n, seed + 1, kinds[i].weight), s, kinds[i].weight, 0},
                           {normals(n, seed + 2, kinds[i].gradient), s, kinds[i].gradient, 0},
                           {normals(n, seed + 3, kinds[i].weight), s, kinds[i].weight, 0},
                           {v, s, kinds[i].weight, 0},
                           Buffer<std::uint8_t>(2 * size_of(s.padded_rows, s.padded_cols)),
                           Buffer<std::uint8_t>(size_of(s.padded_rows, s.padded_cols)),
                           one(state),
                           Buffer<CastSums>(static_cast<std::size_t>(stats_blocks(s)))};
            };
            const auto update = [&](const One& one, std::size_t i) {
                UpdateSource source;
                source.w = one.w.get(), source.g = one.g.get(), source.m = one.m.get(),
                source.v = one.v.get();
                source.element = kinds[i].weight, source.g_element = kinds[i].gradient;
                source.inputs = inputs.get(), source.arm = arm.get(), source.finite = finite.get();
                CastTarget target;
                target.element = kinds[i].payload;
                target.rows = one.rows.get();
                if (bytes_of(target.element) == 1) target.columns = one.columns.get(), target.scaled = true;
                target.state = one.state.get();
                if (stats) target.stats_partials = one.sums.get();
                return WeightUpdate{source, shapes[i], target};
            };
            std::vector<One> expected;
            for (std::size_t i = 0; i < shapes.size(); ++i) {
                expected.push_back(make(i));
                const WeightUpdate one = update(expected.back(), i);
                update_weights(one.source, one.shape, one.target, nullptr);
            }
            for (const unsigned blocks : {0U, 3U})
                for (const unsigned part : {0U, 1U, 11U, 28U, 41U}) {
                    CAPTURE(blocks);
                    CAPTURE(part);
                    std::vector<One> found;
                    std::vector<WeightUpdate> updates;
                    for (std::size_t i = 0; i < shapes.size(); ++i) found.push_back(make(i));
                    for (std::size_t i = 0; i < shapes.size(); ++i) updates.push_back(update(found[i], i));
                    update_weights(updates, {0, part}, blocks, nullptr);
                    update_weights(updates, {part}, blocks, nullptr);
                    done();
                    for (std::size_t i = 0; i < shapes.size(); ++i) {
                        CAPTURE(i);
                        const auto wanted = expected[i].values(), got = found[i].values();
                        for (std::size_t which = 0; which < wanted.size(); ++which)
                            CHECK(different(got[which], wanted[which]) == 0);
                        CHECK(found[i].rows.download() == expected[i].rows.download());
                        CHECK(found[i].columns.download() == expected[i].columns.download());
                        const ScaleState a = found[i].state.download()[0],
                                         b = expected[i].state.download()[0];
                        CHECK(a.amax_bits == b.amax_bits);
                        CHECK(a.scale_used == b.scale_used);
                        CHECK(a.scale_inv == b.scale_inv);
                        CHECK(a.underflow == b.underflow);
                        if (!stats) continue;
                        const auto sums = found[i].sums.download(), wanted_sums = expected[i].sums.download();
                        for (std::size_t tile = 0; tile < sums.size(); ++tile) {
                            CHECK(sums[tile].signal == wanted_sums[tile].signal);
                            CHECK(sums[tile].noise == wanted_sums[tile].noise);
                        }
                    }
                }
        }
}
