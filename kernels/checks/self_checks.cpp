#include "kernels/checks/self_checks.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "core/base/rng.h"
#include "core/nn/streams.h"
#include "core/scaling/quantizer.h"
#include "kernels/casts/emulate.h"
#include "kernels/gemm/engine.h"
#include "kernels/gemm/gemm.h"
#include "kernels/scaling/scale_buffers.h"

namespace fp8lab::cuda {
namespace {

SelfCheckOutcome no_differences(std::uint64_t differences, std::uint64_t cases) {
    constexpr auto kText = "{} differences in {} cases";
    return {differences == 0, fmt::format(kText, 0, cases), fmt::format(kText, differences, cases)};
}

SelfCheckOutcome check_all_inputs(const GoldenConversion& to, std::size_t column) {
    const AllInputs found = convert_all_inputs(to);
    std::uint64_t wrong = 0;
    for (const GoldenTable::Row& row : golden_histogram().rows)
        wrong += found.counts.at(row.key) != row.values.at(column);
    constexpr auto kText = "{:016x}, {} of 256 counts differ";
    return {found.checksum == to.checksum && wrong == 0, fmt::format(kText, to.checksum, 0),
            fmt::format(kText, found.checksum, wrong)};
}

// Golden edges and random bit patterns, NaN and Inf among them, in a padded matrix.
struct Inputs {
    Shape shape{1000, 1030, 1008, 1040};
    std::vector<float> values, padded;
};
Inputs inputs(bool finite) {
    Inputs in;
    const auto rows = static_cast<std::size_t>(in.shape.rows), cols = static_cast<std::size_t>(in.shape.cols);
    for (const GoldenTable::Row& edge : golden_edges().rows)
        in.values.push_back(std::bit_cast<float>(edge.key));
    Rng rng(1);
    while (in.values.size() < rows * cols) in.values.push_back(std::bit_cast<float>(rng.bits()));
    if (finite)
        for (float& x : in.values)
            if (!std::isfinite(x)) x = 1;
    const auto stride = static_cast<std::size_t>(in.shape.padded_cols);
    in.padded.resize(static_cast<std::size_t>(in.shape.padded_rows) * stride);
    for (std::size_t i = 0; i < rows * cols; ++i) in.padded[i / cols * stride + i % cols] = in.values[i];
    return in;
}

SelfCheckOutcome check_fp8_cast(std::string_view name, Element element) {
    const Inputs in = inputs(false);
    const Shape s = in.shape;
    const Buffer<float> values(std::span<const float>(in.padded));
    const Buffer<std::uint8_t> rows(in.padded.size()), columns(in.padded.size());
    ScaleState start;
    start.scale = 0.75F;
    const Buffer<ScaleState> state(std::span<const ScaleState>(&start, 1));
    CastTarget target;
    target.element = element;
    target.rows = rows.get();
    target.columns = columns.get();
    target.state = state.get();
    target.scaled = true;
    cast_matrix(values.get(), Element::f32, s, target, Pass::cast, nullptr);
    check(cudaDeviceSynchronize(), "cast_matrix");
    std::vector<std::uint8_t> expected(in.padded.size());
    encode(find_format(name), in.padded, std::span(expected), {.scale = start.scale});
    const auto found = rows.download(), transposed = columns.download();
    std::uint64_t wrong = 0;
    for (int r = 0; r < s.padded_rows; ++r)
        for (int c = 0; c < s.padded_cols; ++c) {
            const std::uint8_t code =
                expected[static_cast<std::size_t>(r) * static_cast<std::size_t>(s.padded_cols) +
                         static_cast<std::size_t>(c)];
            wrong += found[static_cast<std::size_t>(r) * static_cast<std::size_t>(s.padded_cols) +
                           static_cast<std::size_t>(c)] != code;
            wrong += transposed[static_cast<std::size_t>(c) * static_cast<std::size_t>(s.padded_rows) +
                                static_cast<std::size_t>(r)] != code;
        }
    return no_differences(wrong, 2 * expected.size());
}

// Codes times scale_inv of both layouts are core's dequantised values, bit for bit.
SelfCheckOutcome check_vector_cast(const std::string& text, TensorClass tensor) {
    const CastPlan plan = cast_plan(parse_recipe(text), tensor);
    const Inputs in = inputs(true);
    const Shape s = in.shape;
    const Buffer<float> values(std::span<const float>(in.padded));
    const Buffer<std::uint8_t> rows(in.padded.size()), columns(in.padded.size());
    const ScaleBuffers scales(scale_mode_of(plan), s);
    ScaleState start;
    start.max_finite = static_cast<float>(max_finite(*plan.format));
    const Buffer<ScaleState> state(std::span<const ScaleState>(&start, 1));
    const ScaleControls how{.margin = plan.margin, .pow2 = plan.pow2};
    const Buffer<ScaleControls> controls(std::span<const ScaleControls>(&how, 1));
    CastTarget target;
    target.element = plan.format->name == "e4m3" ? Element::e4m3 : Element::e5m2;
    target.rows = rows.get();
    target.columns = columns.get();
    target.state = state.get();
    target.scaling = scale_mode_of(plan);
    target.vectors = scales.vectors(controls.get());
    if (target.scaling == ScaleMode::row)
        cast_matrix(values.get(), Element::f32, s, target, Pass::amax_only, nullptr);
    cast_matrix(values.get(), Element::f32, s, target, Pass::cast, nullptr);
    check(cudaDeviceSynchronize(), "cast_matrix");
    const std::vector<float> all = scales.scale_inv().download();
    std::uint64_t wrong = 0;
    for (const Along along : {Along::cols, Along::rows}) {
        const bool by_rows = along == Along::cols;
        const auto height = static_cast<std::size_t>(s.rows), width = static_cast<std::size_t>(s.cols);
        std::vector<float> expected(in.values.size());
        quantize(plan, in.values, expected,
                 {.rows = height, .cols = width, .along = along, .with_stats = false});
        const std::vector<std::uint8_t> codes = (by_rows ? rows : columns).download();
        const int m = by_rows ? s.padded_rows : s.padded_cols, k = by_rows ? s.padded_cols : s.padded_rows;
        for (int r = 0; r < s.rows; ++r)
            for (int c = 0; c < s.cols; ++c) {
                const int outer = by_rows ? r : c, i = by_rows ? c : r;
                const auto at = static_cast<std::size_t>(outer) * static_cast<std::size_t>(k) +
                                static_cast<std::size_t>(i);
                const float scale_inv =
                    all[(by_rows ? 0 : scales.columns_at()) +
                        static_cast<std::size_t>(scale_inv_at(target.scaling, m, k, outer, i))];
                const float q = decode(*plan.format, codes[at]) * scale_inv,
                            wanted =
                                expected[static_cast<std::size_t>(r) * width + static_cast<std::size_t>(c)];
                wrong += std::bit_cast<std::uint32_t>(q) != std::bit_cast<std::uint32_t>(wanted);
            }
    }
    return no_differences(wrong, 2 * in.values.size());
}

SelfCheckOutcome check_emulation(const std::string& text) {
    const Recipe recipe = parse_recipe(text);
    const Inputs in = inputs(true);
    const Shape s = in.shape;
    constexpr std::uint64_t kSeed = 3;
    constexpr int kStep = 5;
    const ArmState step{kStep, 1};
    const Buffer<ArmState> arm(std::span<const ArmState>(&step, 1));
    const Buffer<float> values(std::span<const float>(in.padded)), out(in.padded.size());
    std::uint64_t wrong = 0, cases = 0;
    for (const TensorClass tensor : {TensorClass::x, TensorClass::w, TensorClass::dy})
        for (const Along along : {Along::cols, Along::rows}) {
            const CastPlan plan = cast_plan(recipe, tensor);
            const auto rows = static_cast<std::size_t>(s.rows), cols = static_cast<std::size_t>(s.cols);
            QuantizeRequest request{
                .rows = rows, .cols = cols, .along = along, .seed = kSeed, .with_stats = false};
            request.stream = stream(Draw::cast, 1, kStep, 0);
            const bool one_scale = plan.granularity == Granularity::tensor;
            ScaleState start;
            start.scale = one_scale && plan.scaled ? 0.5F : 1.0F;
            if (one_scale && plan.scaled) request.tensor_scale = start.scale;
            std::vector<float> expected(rows * cols);
            quantize(plan, in.values, expected, request);
            const Buffer<ScaleState> state(std::span<const ScaleState>(&start, 1));
            const Memory scratch(emulation_scratch_bytes(plan, s.rows, s.cols));
            EmulatedCast cast;
            cast.plan = plan;
            cast.rows = s.rows;
            cast.cols = s.cols;
            cast.stride = s.padded_cols;
            cast.along = along;
            cast.seed = kSeed;
            cast.layer = 1;
            emulate_cast(cast, values.get(), out.get(), state.get(), scratch.get(), nullptr, true, arm.get(),
                         nullptr);
            check(cudaDeviceSynchronize(), "emulate_cast");
            const std::vector<float> found = out.download();
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const float q = found[i / cols * static_cast<std::size_t>(s.padded_cols) + i % cols];
                wrong += std::bit_cast<std::uint32_t>(q) != std::bit_cast<std::uint32_t>(expected[i]) &&
                         !(std::isnan(q) && std::isnan(expected[i]));
            }
            cases += expected.size();
        }
    return no_differences(wrong, cases);
}

// The random Hadamard transform, along both dimensions.
SelfCheckOutcome check_rotation() {
    const Inputs in = inputs(true);
    const Shape s{in.shape.rows / 16 * 16, in.shape.cols / 16 * 16, in.shape.padded_rows,
                  in.shape.padded_cols};
    const auto rows = static_cast<std::size_t>(s.rows), cols = static_cast<std::size_t>(s.cols),
               stride = static_cast<std::size_t>(s.padded_cols);
    std::vector<float> values(rows * cols), expected(rows * cols);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = in.padded[i / cols * stride + i % cols];
    const Buffer<float> padded(std::span<const float>(in.padded)), out(in.padded.size());
    std::uint64_t wrong = 0;
    for (const Along along : {Along::cols, Along::rows}) {
        fp8lab::rotate(values, expected, rows, cols, along, te_signs());
        rotate(padded.get(), out.get(), s.rows, s.cols, s.padded_cols, along, te_signs(), nullptr);
        check(cudaDeviceSynchronize(), "rotate");
        const std::vector<float> found = out.download();
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const float y = found[i / cols * stride + i % cols];
            wrong += std::bit_cast<std::uint32_t>(y) != std::bit_cast<std::uint32_t>(expected[i]) &&
                     !(std::isnan(y) && std::isnan(expected[i]));
        }
    }
    return no_differences(wrong, 2 * expected.size());
}

// Operands from -2 to 2: every sum is exact, in any order and any accumulator.
SelfCheckOutcome check_products(Element element, ScaleMode scale, bool fast) {
    constexpr int kM = 48, kN = 80, kK = 2048;
    const Stream on;
    const Lt lt;
    Rng rng(11);
    const FormatInfo& format = find_format(element == Element::bf16 ? "bf16" : "e4m3");
    std::vector<int> a(kM * kK), b(kN * kK);
    const auto stage = [&](std::vector<int>& values) {
        std::vector<std::uint8_t> bytes;
        for (int& v : values) {
            v = static_cast<int>(rng.below(5)) - 2;
            const std::uint32_t code = encode(format, static_cast<float>(v));
            bytes.push_back(static_cast<std::uint8_t>(code));
            if (element == Element::bf16) bytes.push_back(static_cast<std::uint8_t>(code >> 8));
        }
        return Buffer<std::uint8_t>(std::span<const std::uint8_t>(bytes));
    };
    const Buffer<std::uint8_t> left = stage(a), right = stage(b);
    const Buffer<float> ones(std::span<const float>(std::vector<float>(4096, 1.0F))), d(kM * kN);
    const GemmPlan plan(lt, {Product::nt, kM, kN, kK, element, element, Element::f32, scale, scale, fast},
                        on.get());
    plan.run(left.get(), right.get(), d.get(), ones.get(), ones.get(), on.get());
    on.wait();
    const std::vector<float> found = d.download();
    std::uint64_t wrong = 0;
    for (std::size_t m = 0; m < kM; ++m)
        for (std::size_t n = 0; n < kN; ++n) {
            int sum = 0;
            for (std::size_t k = 0; k < kK; ++k) sum += a[m * kK + k] * b[n * kK + k];
            wrong += found[m * kN + n] != static_cast<float>(sum);
        }
    return no_differences(wrong, kM * kN);
}

}  // namespace

std::vector<SelfCheck> cuda_self_checks(bool full) {
    std::vector<SelfCheck> checks = {
        {"cast + transpose = core's bytes: e4m3", [] { return check_fp8_cast("e4m3", Element::e4m3); }},
        {"cast + transpose = core's bytes: e5m2", [] { return check_fp8_cast("e5m2", Element::e5m2); }},
        {"exact products of integers: BF16",
         [] { return check_products(Element::bf16, ScaleMode::none, false); }},
        {"exact products of integers: E4M3",
         [] { return check_products(Element::e4m3, ScaleMode::tensor, false); }},
        {"exact products of integers: E4M3, fast accumulation",
         [] { return check_products(Element::e4m3, ScaleMode::tensor, true); }},
        {"random Hadamard transform = core's bits", check_rotation}};
    for (const std::string text : {"rowwise", "block128", "block128:pow2=0:margin=2"})
        for (const auto& [tensor, name] : {std::pair{TensorClass::x, "x"}, std::pair{TensorClass::w, "w"},
                                           std::pair{TensorClass::dy, "dy"}})
            checks.push_back(
                {fmt::format("casts for the tensor cores = core's codes and scales: {} of {}", name, text),
                 [text, tensor] { return check_vector_cast(text, tensor); }});
    std::vector<std::string> emulated;
    for (const Recipe& recipe : recipes())
        if (recipe.base != "fp32") emulated.emplace_back(recipe.base);
    emulated.emplace_back("delayed:round=stochastic:round_bwd=stochastic");
    emulated.emplace_back("delayed:overflow=nonsaturate");
    emulated.emplace_back("nvfp4:target=4:w2d=1");
    emulated.emplace_back("nvfp4:target=4or6:w2d=1");
    for (const std::string& text : emulated)
        checks.push_back({fmt::format("emulated casts = core's bits: {}", text),
                          [text] { return check_emulation(text); }});
    if (!full) return checks;
    const auto conversions = golden_conversions();
    for (std::size_t column = 0; column < conversions.size(); ++column)
        if (const GoldenConversion& to = conversions[column]; to.format == "e4m3" || to.format == "e5m2")
            checks.push_back({fmt::format("all 2^32 inputs, hardware: {}", to.column),
                              [&to, column] { return check_all_inputs(to, column); }});
    return checks;
}

}  // namespace fp8lab::cuda
