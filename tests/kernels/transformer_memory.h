// Matrices of the transformer's kernels in device memory, and casts of their values in every scale mode against core.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/nn/matrix.h"
#include "core/scaling/block_scales.h"
#include "kernels/layers/launch.h"
#include "tests/kernels/case_launch.h"
#include "tests/kernels/gemm_reference.h"
#include "tests/kernels/gpu.h"

namespace fp8lab::cuda::test {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kPoison = -12352;  // exact in BF16: outputs hold it before a launch
constexpr Element kBoth[] = {Element::f32, Element::bf16};

inline void done() { check(cudaDeviceSynchronize(), "kernel"); }
inline std::size_t at(int r, int cols, int c) { return size_of(r, cols) + static_cast<std::size_t>(c); }

// Normal values, those of BF16 where that is the element.
inline Values normals(std::size_t n, std::uint32_t seed, Element element = Element::f32, float size = 1) {
    std::mt19937 dice(seed);
    std::normal_distribution<float> normal;
    Values values(n);
    for (float& x : values) x = size * normal(dice);
    if (element == Element::bf16)
        quantize(find_format("bf16"), values, values, {.overflow = Overflow::nonsaturate});
    return values;
}
inline Values rounded(Values values, bool round = true) {
    if (round) quantize(find_format("bf16"), values, values, {.overflow = Overflow::nonsaturate});
    return values;
}
inline Matrix<float> matrix(const Values& values, int rows, int cols) {
    Matrix<float> m(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
    m.values = values;
    return m;
}

template <class T>
Buffer<T> on_device(const std::vector<T>& values) {
    return Buffer<T>(std::span<const T>(values));
}
template <class T>
Buffer<T> one(const T& value) {
    return Buffer<T>(std::span<const T>(&value, 1));
}

// (rows, cols) values in FP32 or BF16, `filler` in the padding: NaN, where kernels must not look.
class OnDevice {
  public:
    OnDevice(const Values& values, Shape s, Element element, float filler = kNan)
        : shape_(s), element_(element), memory_(bytes()) {
        write(pad(values, s, filler));
    }
    // An output, poisoned.
    OnDevice(Shape s, Element element)
        : OnDevice({}, {0, s.cols, s.padded_rows, s.padded_cols}, element, kPoison) {
        shape_ = s;
    }
    void* get() const { return memory_.get(); }
    Values all() const {  // with the padding
        Values values(count());
        if (element_ == Element::f32) {
            check(cudaMemcpy(values.data(), get(), bytes(), cudaMemcpyDeviceToHost), "read");
            return values;
        }
        std::vector<std::uint16_t> codes(count());
        check(cudaMemcpy(codes.data(), get(), bytes(), cudaMemcpyDeviceToHost), "read");
        decode(find_format("bf16"), std::span<const std::uint16_t>(codes), values);
        return values;
    }
    Values real() const { return unpad(all(), shape_); }
    // Elements of padded rows that are no longer what they were.
    std::size_t touched(float was) const {
        const Values values = all();
        return static_cast<std::size_t>(std::count_if(
            values.begin() + static_cast<std::ptrdiff_t>(size_of(shape_.rows, shape_.padded_cols)),
            values.end(), [&](float x) { return x != was; }));
    }

  private:
    std::size_t count() const { return size_of(shape_.padded_rows, shape_.padded_cols); }
    std::size_t bytes() const { return count() * static_cast<std::size_t>(bytes_of(element_)); }
    void write(const Values& values) {
        if (element_ == Element::f32) return copy_to_device(get(), values.data(), bytes());
        std::vector<std::uint16_t> codes(values.size());
        encode(find_format("bf16"), values, std::span(codes), {.overflow = Overflow::nonsaturate});
        copy_to_device(get(), codes.data(), bytes());
    }

    Shape shape_;
    Element element_;
    Memory memory_;
};

// ---- comparisons
inline bool same(float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
           (std::isnan(x) && std::isnan(y));
}
inline std::size_t different(const Values& found, const Values& expected) {
    REQUIRE(found.size() == expected.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) wrong += !same(found[i], expected[i]);
    return wrong;
}
// Values that are not within `relative` of the expected size and `absolute`; NaN equals NaN, and Inf itself.
template <class T>
std::size_t far(const Values& found, const std::vector<T>& expected, double relative, double absolute) {
    REQUIRE(found.size() == expected.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto x = static_cast<double>(found[i]), y = static_cast<double>(expected[i]);
        if (std::isnan(y) ? std::isnan(x) : x == y) continue;
        wrong += !(std::abs(x - y) <= relative * std::abs(y) + absolute);
    }
    return wrong;
}
// Half a step of BF16 and a little, for results whose exact value is compared; none in FP32.
inline double half_step(Element element) { return element == Element::bf16 ? 0x1.04p-8 : 0.0; }

// ---- casts
using CastLaunch = std::function<void(const CastTarget&, Pass)>;

// The FP32 values of the source, (rows, cols); the padding of the copy is zeros.
inline Values copied(const CastLaunch& launch, Shape s) {
    const OnDevice out(s, Element::f32);
    CastTarget target;
    target.element = Element::f32;
    target.rows = out.get();
    launch(target, Pass::cast);
    done();
    const Values all = out.all();
    CHECK(different(all, pad(unpad(all, s), s, 0.0F)) == 0);
    return unpad(all, s);
}

inline std::vector<std::uint8_t> codes_of(const Values& values, Element element, Shape s, float scale) {
    const Values all = pad(values, s, 0.0F);
    std::vector<std::uint8_t> bytes(all.size());
    encode(format_of(element), all, std::span(bytes), {.scale = scale});
    return bytes;
}

// What a launch leaves behind.
struct CastOutputs {
    Shape s;
    Element element;
    Buffer<std::uint8_t> rows, columns;
    Buffer<ScaleState> state{1};
    Buffer<CastSums> stats;
    ScaleBuffers scales;
    Buffer<ScaleControls> controls{1};
    CastTarget target;
    CastOutputs(Shape shape, Element to, ScaleMode scaling, float scale, bool with_stats)
        : s(shape),
          element(to),
          rows(size_of(s.padded_rows, s.padded_cols) * static_cast<std::size_t>(bytes_of(to))),
          columns(rows.size()),
          stats(static_cast<std::size_t>(stats_blocks(s))),
          scales(scaling, s) {
        const std::vector<std::uint8_t> poison(rows.size(), 0xA5);
        rows.upload(poison);
        columns.upload(poison);
        ScaleState start;
        start.scale = scale;
        if (bytes_of(to) == 1) start.max_finite = static_cast<float>(max_finite(format_of(to)));
        state.upload({&start, 1});
        const ScaleControls fine;
        controls.upload({&fine, 1});
        target.element = to;
        target.rows = rows.get();
        if (bytes_of(to) == 1) target.columns = columns.get();
        target.state = state.get();
        target.scaled = bytes_of(to) == 1;
        if (with_stats) target.stats_partials = stats.get();
        target.scaling = scaling;
        target.vectors = scales.vectors(controls.get());
    }
    CastSums sums() const {
        CastSums sum;
        for (const CastSums& part : stats.download()) {
            sum.signal += part.signal, sum.noise += part.noise;
            sum.mass += part.mass;
        }
        return sum;
    }
};

inline void check_tensor_cast(const CastLaunch& launch, Shape s, const Values& exact, Element element,
                              bool with_stats) {
    constexpr float kScale = 3;
    const bool wide = element == Element::bf16;
    CastOutputs out(s, element, ScaleMode::tensor, kScale, with_stats);
    launch(out.target, Pass::cast);
    done();
    const ScaleState state = out.state.download()[0];
    const bool finite = std::ranges::all_of(exact, [](float x) { return std::isfinite(x); });
    if (finite)
        CHECK(std::bit_cast<float>(state.amax_bits) == fp8lab::amax(exact));
    else
        CHECK(!std::isfinite(std::bit_cast<float>(state.amax_bits)));
    CHECK(state.scale_used == (wide ? 1.0F : kScale));
    const auto found = out.rows.download();
    if (wide) {
        Values values(found.size() / 2);
        std::vector<std::uint16_t> codes(values.size());
        std::memcpy(codes.data(), found.data(), found.size());
        decode(find_format("bf16"), std::span<const std::uint16_t>(codes), values);
        CHECK(different(values, rounded(pad(exact, s, 0.0F))) == 0);
        return;
    }
    const auto expected = codes_of(exact, element, s, kScale);
    CHECK(found == expected);
    const auto transposed = out.columns.download();
    std::size_t wrong = 0;
    for (int r = 0; r < s.padded_rows; ++r)
        for (int c = 0; c < s.padded_cols; ++c)
            wrong += transposed[at(c, s.padded_rows, r)] != found[at(r, s.padded_cols, c)];
    CHECK(wrong == 0);
    if (!with_stats || !finite) return;
    Values q(exact.size());
    std::vector<std::uint8_t> codes = unpad(found, s);
    decode(format_of(element), codes, q);
    for (float& x : q) x *= 1 / kScale;
    const CastStats stats = measure_cast(exact, q, {&kScale, 1}, overflow_threshold(format_of(element)));
    CHECK(static_cast<std::int64_t>(state.underflow) == stats.underflow);
    CHECK(static_cast<std::int64_t>(state.overflow) == stats.overflow);
    check_sums(out.sums(), stats);
}

inline void check_vector_cast(const CastLaunch& launch, Shape s, const Values& exact, Element element,
                              ScaleMode scaling, bool with_stats) {
    CastOutputs out(s, element, scaling, 1, with_stats);
    if (scaling == ScaleMode::row) launch(out.target, Pass::amax_only);
    launch(out.target, Pass::cast);
    done();
    CastPlan plan;
    plan.format = &format_of(element);
    plan.granularity = scaling == ScaleMode::row ? Granularity::row : Granularity::block128;
    plan.square_blocks = scaling == ScaleMode::square128;
    plan.scaled = true;
    const Values inverses = out.scales.scale_inv().download();
    const auto rows = static_cast<std::size_t>(s.rows), cols = static_cast<std::size_t>(s.cols);
    for (const Along along : {Along::cols, Along::rows}) {
        const bool by_rows = along == Along::cols;
        const auto codes = (by_rows ? out.rows : out.columns).download();
        const float* const inverse = inverses.data() + (by_rows ? 0 : out.scales.columns_at());
        fp8lab::test::Operand layout;  // knows where the scale of an element lies
        layout.outer = by_rows ? s.padded_rows : s.padded_cols;
        layout.k = by_rows ? s.padded_cols : s.padded_rows;
        layout.mode = scaling;
        const BlockGrid grid = block_grid(plan, rows, cols, along);
        const BlockScales scales = block_scales(plan, exact, cols, grid);
        std::size_t wrong_codes = 0, wrong_scales = 0, wrong_padding = 0;
        for (int o = 0; o < layout.outer; ++o)
            for (int i = 0; i < layout.k; ++i) {
                const std::uint8_t code = codes[at(o, layout.k, i)];
                const auto r = static_cast<std::size_t>(by_rows ? o : i),
                           c = static_cast<std::size_t>(by_rows ? i : o);
                if (r >= rows || c >= cols) {
                    wrong_padding += code != 0;
                    continue;
                }
                const std::size_t block = r / grid.height * grid.across + c / grid.width;
                wrong_codes += code != encode(*plan.format, exact[r * cols + c] * scales.scale[block],
                                              plan.rounding, plan.overflow);
                wrong_scales += !same(inverse[layout.scale_at(o, i)], scales.scale_inv[block]);
            }
        CHECK(wrong_codes == 0);
        CHECK(wrong_scales == 0);
        CHECK(wrong_padding == 0);
    }
    if (!with_stats || !std::ranges::all_of(exact, [](float x) { return std::isfinite(x); })) return;
    Values q(exact.size());
    const CastStats stats =
        quantize(plan, exact, q, {.rows = rows, .cols = cols, .along = Along::cols}).stats;
    const ScaleState state = out.state.download()[0];
    CHECK(static_cast<std::int64_t>(state.underflow) == stats.underflow);
    CHECK(static_cast<std::int64_t>(state.overflow) == stats.overflow);
    check_sums(out.sums(), stats);
}

// All casts of a source in BF16 against core's of its FP32 values `exact`.
inline void check_casts(const CastLaunch& launch, Shape s, const Values& exact, bool gradient) {
    CastOutputs amaxes(s, Element::e4m3, ScaleMode::tensor, 1, false);
    launch(amaxes.target, Pass::amax_only);
    done();
    const float found = std::bit_cast<float>(amaxes.state.download()[0].amax_bits);
    CHECK((found == fp8lab::amax(exact) || !std::isfinite(found)));
    CHECK(amaxes.rows.download() == std::vector<std::uint8_t>(amaxes.rows.size(), 0xA5));
    for (const Element element : {Element::bf16, Element::e4m3, Element::e5m2}) {
        if (element == Element::e5m2 && !gradient) continue;
        CAPTURE(static_cast<int>(element));
        for (const bool with_stats : {false, true}) {
            CAPTURE(with_stats);
            check_tensor_cast(launch, s, exact, element, with_stats);
            if (element == Element::bf16) continue;
            for (const ScaleMode scaling : {ScaleMode::row, ScaleMode::block128, ScaleMode::square128}) {
                CAPTURE(static_cast<int>(scaling));
                check_vector_cast(launch, s, exact, element, scaling, with_stats);
            }
        }
    }
}

}  // namespace fp8lab::cuda::test
