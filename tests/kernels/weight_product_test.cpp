// The optimiser that multiplies the weight gradient itself against the one that reads it from memory.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/formats/codec.h"
#include "kernels/bench/cases.h"
#include "kernels/device/device.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::cuda;

namespace {

using Values = std::vector<float>;
constexpr std::size_t area(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

struct Weights {
    Values w, m, v;
    std::vector<std::uint8_t> rows, columns;
    bool operator==(const Weights&) const = default;
};

// Operands in memory as a cast leaves them: BF16 (batch, cols), FP8 (cols, batch).
std::vector<std::uint8_t> operand(const Values& values, int batch, int cols, Element element) {
    const bool wide = element == Element::bf16;
    const FormatInfo& format = find_format(wide ? "bf16" : element == Element::e4m3 ? "e4m3" : "e5m2");
    std::vector<std::uint8_t> out;
    for (int outer = 0; outer < (wide ? batch : cols); ++outer)
        for (int inner = 0; inner < (wide ? cols : batch); ++inner) {
            const int b = wide ? outer : inner, c = wide ? inner : outer;
            const std::uint32_t code = encode(format, values[area(b, cols) + static_cast<std::size_t>(c)]);
            out.push_back(static_cast<std::uint8_t>(code & 0xFF));
            if (wide) out.push_back(static_cast<std::uint8_t>(code >> 8));
        }
    return out;
}

struct Problem {
    int out, in, batch;  // multiples of 16
    Values dy, x, w, m, v;
};

// Integers up to 7 in all formats: every product and sum is exact.
Problem make_problem(int out, int in, int batch) {
    std::mt19937 dice(static_cast<std::uint32_t>(out + in + batch));
    std::uniform_int_distribution<int> digit(-7, 7);
    std::normal_distribution<float> normal;
    Problem p{out, in, batch, Values(area(batch, out)), Values(area(batch, in)), {}, {}, {}};
    for (float& x : p.dy) x = static_cast<float>(digit(dice));
    for (float& x : p.x) x = static_cast<float>(digit(dice));
    for (Values* to : {&p.w, &p.m, &p.v})
        for (std::size_t i = 0; i < area(out, in); ++i) to->push_back(normal(dice));
    for (float& x : p.v) x = std::abs(x);
    return p;
}

// Factors of the operands; their product must reach the gradient.
// Powers of two, so that the gradient stays exact. by_column: one per column of the operand.
struct Inverses {
    Values dy, x;
    bool by_column;
};
Inverses inverses(const Problem& p, bool by_column) {
    if (!by_column) return {{0.25F}, {2.0F}, false};
    Inverses out{{}, {}, true};
    for (int o = 0; o < p.out; ++o) out.dy.push_back(std::ldexp(1.0F, o % 7 - 4));
    for (int i = 0; i < p.in; ++i) out.x.push_back(std::ldexp(1.0F, i % 5 - 1));
    return out;
}

Weights update(const Problem& p, Element dy_element, bool multiplied, bool with_stats,
               bool by_column = false) {
    const Inverses inverse = inverses(p, by_column);
    const auto of = [](const Values& all, int i) {
        return all[all.size() > 1 ? static_cast<std::size_t>(i) : 0];
    };
    const Element x_element = dy_element == Element::bf16 ? Element::bf16 : Element::e4m3;
    const bool fp8 = dy_element != Element::bf16;
    Values g(area(p.out, p.in));
    for (int o = 0; o < p.out; ++o)
        for (int i = 0; i < p.in; ++i) {
            double sum = 0;
            for (int b = 0; b < p.batch; ++b)
                sum += static_cast<double>(p.dy[area(b, p.out) + static_cast<std::size_t>(o)]) *
                       static_cast<double>(p.x[area(b, p.in) + static_cast<std::size_t>(i)]);
            g[area(o, p.in) + static_cast<std::size_t>(i)] =
                static_cast<float>(sum) * (fp8 ? of(inverse.dy, o) * of(inverse.x, i) : 1.0F);
        }
    const auto dy_bytes = operand(p.dy, p.batch, p.out, dy_element),
               x_bytes = operand(p.x, p.batch, p.in, x_element);
    const Buffer<float> w{std::span(p.w)}, m{std::span(p.m)}, v{std::span(p.v)},
        gradient{std::span<const float>(g)};
    const Buffer<std::uint8_t> dy{std::span(dy_bytes)}, x{std::span(x_bytes)};
    const StepInput input = case_input();
    const ArmState arm{kCaseStep, 1};
    const std::int32_t one = 1;
    const Buffer<StepInput> inputs{std::span(&input, 1)};
    const Buffer<ArmState> arms{std::span(&arm, 1)};
    const Buffer<std::int32_t> finite{std::span(&one, 1)};
    const Buffer<float> dy_inv{std::span(inverse.dy)}, x_inv{std::span(inverse.x)};
    const ScaleState start{.scale = 32};
    const Buffer<ScaleState> state{std::span(&start, 1)};
    const std::size_t bytes = area(p.out, p.in) * static_cast<std::size_t>(fp8 ? 1 : 2);
    Buffer<std::uint8_t> rows(bytes), columns(bytes);
    CastTarget target;
    target.element = fp8 ? Element::e4m3 : Element::bf16;
    target.rows = rows.get();
    target.state = state.get();
    target.scaled = fp8;
    if (fp8) target.columns = columns.get();
    const Shape shape{p.out, p.in, p.out, p.in};
    const Buffer<CastSums> stats(static_cast<std::size_t>(stats_blocks(shape)));
    if (with_stats) target.stats_partials = stats.get();
    const UpdateSource source{w.get(),
                              m.get(),
                              v.get(),
                              multiplied ? nullptr : gradient.get(),
                              Element::f32,
                              Element::f32,
                              inputs.get(),
                              1,
                              arms.get(),
                              finite.get(),
                              {}};
    if (multiplied)
        update_weights(source, {dy.get(), x.get(), dy_element, p.batch, dy_inv.get(), x_inv.get(), by_column},
                       shape, target, nullptr);
    else
        update_weights(source, shape, target, nullptr);
    check(cudaDeviceSynchronize(), "update_weights");
    return {w.download(), m.download(), v.download(), rows.download(),
            fp8 ? columns.download() : std::vector<std::uint8_t>{}};
}

}  // namespace

TEST_CASE("the optimiser that multiplies the gradient itself gives the bytes of the one that reads it") {
    NEEDS_GPU();
    for (const Element element : {Element::bf16, Element::e4m3, Element::e5m2})
        for (const int batch : {16, 32, 48, 64, 176})
            for (const auto& [out, in] : {std::pair{16, 16}, {64, 128}, {80, 144}, {208, 400}}) {
                CAPTURE(static_cast<int>(element));
                CAPTURE(batch);
                CAPTURE(out);
                const Problem p = make_problem(out, in, batch);
                const Weights read = update(p, element, false, false);
                CHECK(read.w != p.w);
                for (const bool with_stats : {false, true}) {  // BF16 has other tiles with them
                    const Weights multiplied = update(p, element, true, with_stats);
                    CHECK(multiplied.w == read.w);
                    CHECK(multiplied.m == read.m);
                    CHECK(multiplied.v == read.v);
                    CHECK(multiplied.rows == read.rows);
                    CHECK(multiplied.columns == read.columns);
                }
                if (element == Element::bf16) continue;
                const Weights by_column = update(p, element, true, false, true);
                CHECK(by_column.w == update(p, element, false, false, true).w);
                CHECK(by_column.w != read.w);
            }
}
