// The embedding and its gradient against core.
#include <doctest/doctest.h>

#include "core/nn/ops/embedding.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

struct Tokens {
    std::vector<int> tokens;
    Buffer<std::int32_t> ring;
    Buffer<StepInput> inputs;
    Buffer<ArmState> arm;
    TokenRing batch;
};
// Entry 2 of a ring of 3, in a step whose poison is `poison`.
Tokens tokens_of(int rows, int vocabulary, float poison) {
    constexpr int kSlots = 3, kStep = 5;
    Tokens t;
    std::mt19937 dice(static_cast<std::uint32_t>(rows + vocabulary));
    for (int r = 0; r < rows; ++r)  // few are frequent, most do not occur
        t.tokens.push_back(
            static_cast<int>(dice() % (r % 3 == 0 ? 3U : static_cast<std::uint32_t>(vocabulary))));
    TokenRing layout;
    layout.rows = rows, layout.vocabulary = vocabulary;
    const auto stride = static_cast<std::size_t>(layout.stride());
    std::vector<std::int32_t> entry(stride * kSlots, 0);
    auto* const to = entry.data() + kStep % kSlots * stride;
    auto* const order = to + 2 * rows;
    auto* const starts = order + rows;
    int next = 0;
    for (int v = 0; v < vocabulary; ++v) {
        starts[v] = next;
        for (int r = 0; r < rows; ++r)
            if (t.tokens[static_cast<std::size_t>(r)] == v) order[next++] = r;
    }
    starts[vocabulary] = next;
    std::ranges::copy(t.tokens, to);
    t.ring = on_device(entry);
    std::vector<StepInput> inputs(4);
    inputs[kStep % 4].poison = poison;
    t.inputs = on_device(inputs);
    t.arm = one(ArmState{kStep, 1});
    t.batch = {t.ring.get(), rows, vocabulary, kSlots, t.inputs.get(), 4, t.arm.get()};
    return t;
}

}  // namespace

TEST_CASE("the embedding and its gradient are core's, byte for byte, of the ring's batch and its poison") {
    NEEDS_GPU();
    for (const auto& [rows, vocabulary, d] : {std::tuple{1, 16, 16},
                                              {64, 55, 64},
                                              {130, 16, 96},
                                              {700, 55, 768},
                                              {200, 50257, 32},
                                              {33, 300, 4096}})
        for (const Element element : kBoth)
            for (const float poison : {1.0F, 0.37F}) {
                CAPTURE(rows);
                CAPTURE(vocabulary);
                CAPTURE(poison);
                const Shape s = padded(rows, d), of_table = padded(vocabulary, d);
                const bool round = element == Element::bf16;
                const Tokens t = tokens_of(rows, vocabulary, poison);
                const Values table = normals(size_of(vocabulary, d), 1);
                const OnDevice table_memory(table, of_table, Element::f32), out(s, element);
                gather(t.batch, static_cast<const float*>(table_memory.get()), s, element, round, out.get(),
                       nullptr);
                done();
                Matrix<float> expected;
                gather(matrix(table, vocabulary, d), t.tokens, expected);
                for (float& x : expected.values) x *= poison;
                CHECK(different(out.real(), rounded(expected.values, round)) == 0);
                CHECK(out.touched(kPoison) == 0);

                const Values dx = normals(size_of(rows, d), 2, element);
                const OnDevice dx_memory(dx, s, element);
                Matrix<float> scaled = matrix(dx, rows, d), dtable;
                for (float& x : scaled.values) x *= poison;
                gather_backward(scaled, t.tokens, static_cast<std::size_t>(vocabulary), dtable);
                const Values add = normals(size_of(vocabulary, d), 3);
                const OnDevice add_memory(add, of_table, Element::f32);
                for (const bool tied : {false, true}) {
                    if (tied)
                        for (std::size_t i = 0; i < add.size(); ++i) dtable.values[i] += add[i];
                    const OnDevice sums(of_table, Element::f32);
                    gather_backward(t.batch, dx_memory.get(), element, s,
                                    tied ? static_cast<const float*>(add_memory.get()) : nullptr,
                                    static_cast<float*>(sums.get()), nullptr);
                    done();
                    CHECK(different(sums.real(), dtable.values) == 0);
                    CHECK(sums.touched(kPoison) == 0);
                }
            }
}
