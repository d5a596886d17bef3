// Every cast of launch.h against core/formats, byte for byte.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/formats/codec.h"
#include "core/scaling/quantizer.h"
#include "kernels/casts/emulate.h"
#include "kernels/device/device.h"
#include "kernels/device/launch.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using cuda::Buffer;
using cuda::Element;
using cuda::Shape;

namespace {

// Magnitudes over many binades, and every kind of special value in between.
std::vector<float> awkward(std::size_t n, std::uint32_t seed, bool finite) {
    std::mt19937 dice(seed);
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> binade(-20, 12);
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const std::vector<float> edges = {0.0F,     -0.0F,      448,      449,      463.999F, 464,   464.001F,
                                      480,      57344,      61439,    61440,    61441,    65536, 0x1p-9F,
                                      0x1p-10F, 0x1.8p-10F, 0x1p-16F, 0x1p-17F, 0x1p-18F, -448,  -464.5F,
                                      -61440,   17,         19,       1e-40F,   3e38F,    -3e38F};
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        values[i] = std::ldexp(normal(dice), binade(dice));
        if (i % 7 == 3) values[i] = edges[i / 7 % edges.size()];
        if (!finite && i % 97 == 11) values[i] = i % 2 ? kInf : std::numeric_limits<float>::quiet_NaN();
    }
    return values;
}

std::vector<float> pad(const std::vector<float>& values, Shape s) {
    std::vector<float> out(static_cast<std::size_t>(s.padded_rows * s.padded_cols));
    for (int r = 0; r < s.rows; ++r)
        for (int c = 0; c < s.cols; ++c)
            out[static_cast<std::size_t>(r * s.padded_cols + c)] =
                values[static_cast<std::size_t>(r * s.cols + c)];
    return out;
}

constexpr Shape padded(int rows, int cols) {
    return {rows, cols, (rows + 15) / 16 * 16, (cols + 15) / 16 * 16};
}
const std::vector<Shape> kShapes = {padded(1, 1),    padded(16, 16),  padded(33, 47),
                                    padded(64, 128), padded(65, 129), padded(200, 333)};

}  // namespace

TEST_CASE("FP8 casts give core's bytes, the transpose the same bytes, and the exact amax") {
    NEEDS_GPU();
    for (const bool finite : {true, false})
        for (const Shape s : kShapes)
            for (const auto& [element, name] :
                 {std::pair{Element::e4m3, "e4m3"}, std::pair{Element::e5m2, "e5m2"}})
                for (const float scale : {1.0F, 3.7F, 0x1p-6F}) {
                    CAPTURE(name);
                    CAPTURE(s.rows);
                    CAPTURE(s.cols);
                    CAPTURE(scale);
                    const std::vector<float> values =
                        pad(awkward(static_cast<std::size_t>(s.rows * s.cols), 7, finite), s);
                    const std::size_t n = values.size();
                    const Buffer<float> in{std::span(values)};
                    Buffer<std::uint8_t> rows(n), columns(n);
                    const std::vector<std::uint8_t> poison(n, 0xAA);
                    rows.upload(poison);
                    columns.upload(poison);
                    cuda::ScaleState start;
                    start.scale = scale;
                    Buffer<cuda::ScaleState> state{std::span<const cuda::ScaleState>(&start, 1)};
                    cuda::CastTarget target;
                    target.element = element;
                    target.rows = rows.get();
                    target.columns = columns.get();
                    target.state = state.get();
                    target.scaled = true;
                    cuda::cast_matrix(in.get(), Element::f32, s, target, cuda::Pass::cast, nullptr);
                    cuda::check(cudaDeviceSynchronize(), "cast");
                    std::vector<std::uint8_t> expected(n);
                    encode(find_format(name), values, std::span(expected), {.scale = scale});
                    const auto found = rows.download(), transposed = columns.download();
                    CHECK(found == expected);
                    std::size_t wrong = 0;
                    for (int r = 0; r < s.padded_rows; ++r)
                        for (int c = 0; c < s.padded_cols; ++c)
                            wrong += transposed[static_cast<std::size_t>(c * s.padded_rows + r)] !=
                                     expected[static_cast<std::size_t>(r * s.padded_cols + c)];
                    CHECK(wrong == 0);
                    const auto after = state.download()[0];
                    const float largest = std::bit_cast<float>(after.amax_bits);
                    CHECK((finite ? largest == amax(values) : !std::isfinite(largest) || n < 97 * 7));
                    CHECK(after.scale_used == scale);
                    CHECK(after.scale_inv == 1 / scale);
                }
}

TEST_CASE("BF16 casts give core's bits and keep Inf") {
    NEEDS_GPU();
    for (const Shape s : kShapes) {
        const std::vector<float> values =
            pad(awkward(static_cast<std::size_t>(s.rows * s.cols), 3, false), s);
        const Buffer<float> in{std::span(values)};
        const Buffer<std::uint16_t> out(values.size());
        const Buffer<cuda::ScaleState> state(1);
        cuda::CastTarget target;
        target.rows = out.get();
        target.state = state.get();
        cuda::cast_matrix(in.get(), Element::f32, s, target, cuda::Pass::cast, nullptr);
        cuda::check(cudaDeviceSynchronize(), "cast");
        std::vector<std::uint16_t> expected(values.size());
        encode(find_format("bf16"), values, std::span(expected), {.overflow = Overflow::nonsaturate});
        const auto found = out.download();
        std::size_t wrong = 0;  // any NaN stands for NaN
        for (std::size_t i = 0; i < found.size(); ++i)
            wrong +=
                found[i] != expected[i] && !((found[i] & 0x7FFF) > 0x7F80 && (expected[i] & 0x7FFF) > 0x7F80);
        CHECK(wrong == 0);
    }
}

TEST_CASE(
    "emulated casts are core's quantize() bit for bit: every recipe, class, direction and awkward size") {
    NEEDS_GPU();
    std::vector<Recipe> all(recipes().begin(), recipes().end());
    for (const char* text :
         {"delayed:round=stochastic", "mxfp8:mxrule=floor", "mxfp8:mxrule=even",
          "delayed:overflow=nonsaturate", "current:fwd=e3m4", "current:fwd=e4m3fnuz:bwd=e5m2fnuz",
          "rowwise:pow2=1", "block128:margin=2", "delayed:round_bwd=stochastic", "nvfp4:target=4",
          "nvfp4:target=4or6:w2d=1", "nvfp4-te:target=4or6:round=stochastic"})
        all.push_back(parse_recipe(text));
    std::size_t cases = 0;
    for (const Recipe& recipe : all)
        for (const TensorClass tensor : {TensorClass::x, TensorClass::w, TensorClass::dy})
            for (const Along along : {Along::cols, Along::rows})
                for (const Shape s : kShapes) {
                    const CastPlan plan = cast_plan(recipe, tensor);
                    if (plan.format->name == "fp32") continue;
                    CAPTURE(recipe.name);
                    CAPTURE(static_cast<int>(along));
                    CAPTURE(s.rows);
                    CAPTURE(s.cols);
                    const auto rows = static_cast<std::size_t>(s.rows),
                               cols = static_cast<std::size_t>(s.cols);
                    const std::vector<float> values = awkward(rows * cols, 11, true), staged = pad(values, s);
                    constexpr std::uint64_t kSeed = 5;
                    constexpr int kStep = 9, kLayer = 2;
                    QuantizeRequest request{.rows = rows, .cols = cols, .along = along, .seed = kSeed};
                    request.stream = stream(Draw::cast, kLayer, kStep, 3);
                    if (plan.granularity == Granularity::tensor && plan.scaled) request.tensor_scale = 2.5F;
                    std::vector<float> expected(values.size());
                    const QuantizeResult result = quantize(plan, values, expected, request);
                    cuda::ScaleState start;
                    start.scale = plan.scaled ? 2.5F : 1.0F;
                    Buffer<cuda::ScaleState> state{std::span<const cuda::ScaleState>(&start, 1)};
                    const cuda::ArmState step{kStep, 1};
                    const Buffer<cuda::ArmState> arm{std::span<const cuda::ArmState>(&step, 1)};
                    const Buffer<float> in{std::span(staged)}, out(staged.size());
                    const Buffer<cuda::CastSums> partials(static_cast<std::size_t>(cuda::stats_blocks(s)));
                    const cuda::Memory scratch(cuda::emulation_scratch_bytes(plan, s.rows, s.cols));
                    cuda::EmulatedCast cast;
                    cast.plan = plan;
                    cast.rows = s.rows;
                    cast.cols = s.cols;
                    cast.stride = s.padded_cols;
                    cast.along = along;
                    cast.seed = kSeed;
                    cast.layer = kLayer;
                    cast.detail = 3;
                    cuda::emulate_cast(cast, in.get(), out.get(), state.get(), scratch.get(), partials.get(),
                                       true, arm.get(), nullptr);
                    cuda::check(cudaDeviceSynchronize(), "emulate_cast");
                    const std::vector<float> found = out.download(), wanted = pad(expected, s);
                    std::size_t wrong = 0;
                    for (std::size_t i = 0; i < found.size(); ++i)
                        wrong += std::bit_cast<std::uint32_t>(found[i]) !=
                                     std::bit_cast<std::uint32_t>(wanted[i]) &&
                                 !(std::isnan(found[i]) && std::isnan(wanted[i]));
                    CHECK(wrong == 0);
                    const cuda::ScaleState after = state.download()[0];
                    CHECK(std::bit_cast<float>(after.amax_bits) == result.stats.amax);
                    CHECK(static_cast<std::int64_t>(after.underflow) == result.stats.underflow);
                    CHECK(static_cast<std::int64_t>(after.overflow) == result.stats.overflow);
                    double signal = 0, noise = 0;
                    LostMass mass;
                    for (const cuda::CastSums& p : partials.download())
                        signal += p.signal, noise += p.noise, mass += p.mass;
                    CHECK(mass.l1 == doctest::Approx(result.stats.mass.l1).epsilon(1e-12));
                    CHECK(mass.lost_l1 == doctest::Approx(result.stats.mass.lost_l1).epsilon(1e-12));
                    CHECK(mass.lost_energy == doctest::Approx(result.stats.mass.lost_energy).epsilon(1e-12));
                    CHECK(signal == doctest::Approx(result.stats.signal).epsilon(1e-12));
                    if (std::isfinite(result.stats.noise))
                        CHECK(noise == doctest::Approx(result.stats.noise).epsilon(1e-6));
                    ++cases;
                }
    CHECK(cases > 500);
}

TEST_CASE("the log2 histogram counts what core's counts") {
    NEEDS_GPU();
    const std::vector<float> values = awkward(100000, 2, false);
    Log2Histogram expected;
    expected.add(values);
    const Buffer<float> in{std::span(values)};
    const Buffer<unsigned long long> counts(Log2Histogram::kBins + 4);
    cuda::log2_histogram(in.get(), Element::f32, nullptr, static_cast<long long>(values.size()), counts.get(),
                         nullptr);
    cuda::check(cudaDeviceSynchronize(), "log2_histogram");
    const auto found = counts.download();
    for (std::size_t b = 0; b < Log2Histogram::kBins; ++b)
        CHECK(static_cast<std::int64_t>(found[b]) == expected.counts[b]);
    const std::array rest = {expected.zeros, expected.below, expected.above, expected.nonfinite};
    for (std::size_t i = 0; i < rest.size(); ++i)
        CHECK(static_cast<std::int64_t>(found[Log2Histogram::kBins + i]) == rest[i]);
}
