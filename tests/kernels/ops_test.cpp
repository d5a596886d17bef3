// Every kernel of the case table against core: payloads, transposes, amax, counts, updates in place, sums.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/formats/codec.h"
#include "core/stats/tensor_stats.h"
#include "tests/kernels/case_launch.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

// Codes of core for the padded matrix, zeros in the padding, as bytes.
std::vector<std::uint8_t> payload_of(const Values& values, Element element, Shape s, float scale) {
    const Values all = pad(values, s, 0.0F);
    std::vector<std::uint8_t> bytes(all.size() * static_cast<std::size_t>(bytes_of(element)));
    if (element == Element::bf16) {
        std::vector<std::uint16_t> codes(all.size());
        encode(format_of(element), all, std::span(codes), {.overflow = Overflow::nonsaturate});
        std::copy_n(reinterpret_cast<const std::uint8_t*>(codes.data()), bytes.size(), bytes.begin());
    } else {
        encode(format_of(element), all, std::span(bytes), {.scale = scale});
    }
    return bytes;
}

Values values_of(const std::vector<std::uint8_t>& payload, Element element, float scale) {
    Values out(payload.size() / static_cast<std::size_t>(bytes_of(element)));
    if (element == Element::bf16) {
        std::vector<std::uint16_t> codes(out.size());
        std::copy_n(payload.data(), payload.size(), reinterpret_cast<std::uint8_t*>(codes.data()));
        decode(format_of(element), codes, out);
    } else {
        decode(format_of(element), payload, out);
        for (float& x : out) x /= scale;
    }
    return out;
}

// Elements whose payload is further from core's than the rounding of two values that differ by `error`
// explains.
std::size_t far_from(const Values& found, const Values& expected, const Values& exact, Element element,
                     float scale, double error) {
    const double half_ulp = unit_roundoff(format_of(element)),
                 subnormal = min_subnormal(format_of(element)) / static_cast<double>(scale);
    std::size_t far = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double size = std::abs(static_cast<double>(exact[i]));
        const double allowed = error + 2.1 * half_ulp * size + (element == Element::bf16 ? 0 : subnormal);
        far += std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) > allowed;
    }
    return far;
}

double error_of(Agreement agreement) { return agreement == Agreement::fast ? 0x1p-10 : 0x1p-20; }

// What relative errors of dy count from. 1 - tanh^2 cancels where z = h + bias is large, and z and z^3
// multiply what is left of it.
double size_of_error(const KernelCase& kernel, const CaseValues& values, std::size_t at, std::size_t c,
                     float dy) {
    if (kernel.agreement == Agreement::exact) return std::abs(static_cast<double>(dy));
    const auto z = static_cast<double>(values.matrices[0][at] + values.bias[c]);
    return std::abs(static_cast<double>(values.matrices[1][at])) * (1 + std::abs(z * z * z));
}

const std::vector<Shape> kShapes = {padded(1, 1),    padded(16, 16),  padded(20, 300),  padded(33, 47),
                                    padded(64, 128), padded(65, 129), padded(128, 256), padded(200, 333)};

}  // namespace

TEST_CASE("every kernel with one scale stores core's bytes, their transpose, the amax and the counts") {
    NEEDS_GPU();
    for (const KernelCase& kernel : kernel_cases())
        for (const Shape s : kShapes)
            for (const float scale : {1.0F, 3.7F, 0x1p-9F})
                for (const bool with_stats : {false, true}) {
                    CAPTURE(std::string(kernel.name));
                    CAPTURE(s.rows);
                    CAPTURE(s.cols);
                    CAPTURE(scale);
                    if (kernel.scaling != ScaleMode::tensor || (!kernel.stores && with_stats)) continue;
                    CaseValues values = make_values(kernel, s);
                    const Launch launch(kernel, values, s, scale, with_stats);
                    const Values exact = kernel.reference(values, s);
                    const ScaleState state = launch.state();
                    const float amax_found = std::bit_cast<float>(state.amax_bits);
                    if (kernel.agreement == Agreement::exact)
                        CHECK(amax_found == amax(exact));
                    else
                        CHECK(std::abs(amax_found - amax(exact)) <=
                              error_of(kernel.agreement) * (1 + static_cast<double>(amax(exact))));
                    if (!kernel.stores) continue;
                    const bool scaled = bytes_of(kernel.payload) == 1;
                    const float used = scaled ? scale : 1.0F;
                    CHECK(state.scale_used == used);
                    CHECK(state.scale_inv == 1 / used);
                    const std::vector<std::uint8_t> expected = payload_of(exact, kernel.payload, s, scale),
                                                    found = launch.rows();
                    const Values found_values = values_of(found, kernel.payload, scale);
                    if (kernel.agreement == Agreement::exact)
                        CHECK(found == expected);
                    else
                        CHECK(far_from(found_values, values_of(expected, kernel.payload, scale),
                                       pad(exact, s, 0.0F), kernel.payload, scale,
                                       error_of(kernel.agreement) * (1 + static_cast<double>(amax(exact)))) ==
                              0);
                    if (kernel.transposed) {
                        const std::vector<std::uint8_t> transposed = launch.columns();
                        std::size_t wrong = 0;
                        for (int r = 0; r < s.padded_rows; ++r)
                            for (int c = 0; c < s.padded_cols; ++c)
                                wrong +=
                                    transposed[size_of(c, s.padded_rows) + static_cast<std::size_t>(r)] !=
                                    found[size_of(r, s.padded_cols) + static_cast<std::size_t>(c)];
                        CHECK(wrong == 0);
                    }
                    if (!with_stats || kernel.agreement != Agreement::exact) continue;
                    Values q = unpad(found_values, s);
                    if (scaled) {  // as the CPU dequantises: times the inverse
                        std::vector<std::uint8_t> codes = unpad(found, s);
                        decode(format_of(kernel.payload), codes, q);
                        for (float& x : q) x *= 1 / scale;
                    }
                    const CastStats stats =
                        measure_cast(exact, q, {&used, 1}, overflow_threshold(format_of(kernel.payload)));
                    CHECK(static_cast<std::int64_t>(state.underflow) == stats.underflow);
                    CHECK(static_cast<std::int64_t>(state.overflow) == stats.overflow);
                    check_sums(launch.stats_sum(), stats);
                }
}

TEST_CASE(
    "the optimiser's weights and moments equal the CPU's bit for bit, those in BF16 but for their rounding") {
    NEEDS_GPU();
    std::size_t cases = 0;
    // One code of BF16, and what sums of both signs that cancel leave of the rounding of their terms.
    const auto far = [](const Values& found, const Values& expected, const Values& before, const Values& g) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            const double terms =
                std::abs(static_cast<double>(before[i])) + std::abs(static_cast<double>(g[i]));
            count += !(std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) <=
                       0x1p-7 * std::abs(static_cast<double>(expected[i])) + 0x1p-22 * terms);
        }
        return count;
    };
    // Two million roots and quotients among them.
    std::vector<Shape> shapes = kShapes;
    shapes.push_back(padded(1024, 2048));
    for (const KernelCase& kernel : kernel_cases()) {
        if (kernel.updated_bytes == 0) continue;
        for (const Shape s : shapes) {
            CAPTURE(std::string(kernel.name));
            CAPTURE(s.rows);
            CAPTURE(s.cols);
            CaseValues values = make_values(kernel, s);
            const CaseValues before = values;
            const Launch launch(kernel, values, s, 2, false);
            const Values weights = kernel.reference(values, s);
            for (std::size_t i = 0; i < kernel.inputs.size(); ++i)
                if (kernel.agreement == Agreement::exact)
                    CHECK(launch.parameter(i) == values.matrices[i]);
                else
                    CHECK(far(launch.parameter(i), values.matrices[i], before.matrices[i],
                              before.matrices[1]) == 0);
            if (kernel.agreement != Agreement::exact)  // the payload is the new weights
                CHECK(far(unpad(values_of(launch.rows(), kernel.payload, 1), s), weights, before.matrices[0],
                          before.matrices[1]) == 0);
            CHECK(launch.finite() == 1);
            ++cases;
        }
    }
    CHECK(cases > 0);
}

TEST_CASE("an arm that is not alive keeps its weights and moments, a weight that is not finite is told") {
    NEEDS_GPU();
    const Shape s = padded(70, 140);
    for (const KernelCase& kernel : kernel_cases()) {
        if (kernel.updated_bytes == 0) continue;
        CAPTURE(std::string(kernel.name));
        CaseValues values = make_values(kernel, s);
        Launch launch(kernel, values, s, 2, false);
        std::vector<Values> before;
        for (std::size_t i = 0; i < kernel.inputs.size(); ++i) before.push_back(launch.parameter(i));
        launch.run(false, 0);
        for (std::size_t i = 0; i < kernel.inputs.size(); ++i) CHECK(launch.parameter(i) == before[i]);
        CHECK(launch.finite() == 1);
        values.matrices[1][77] = kNan;
        CHECK(Launch(kernel, values, s, 2, false).finite() == 0);
    }
}

TEST_CASE("column sums of dy and the loss are core's") {
    NEEDS_GPU();
    std::size_t cases = 0;
    for (const KernelCase& kernel : kernel_cases()) {
        const bool is_loss = kernel.name.starts_with("loss");
        if (!is_loss && kernel.name.find("dbias") == kernel.name.npos) continue;
        for (const Shape s : kShapes) {
            CAPTURE(std::string(kernel.name));
            CAPTURE(s.rows);
            CAPTURE(s.cols);
            CaseValues values = make_values(kernel, s);
            const Launch launch(kernel, values, s, 1, false);
            const Values dy = kernel.reference(values, s), sums = launch.bias_sums();
            double worst = 0;
            for (int c = 0; c < s.cols; ++c) {
                double sum = 0, size = 0;
                for (int r = 0; r < s.rows; ++r) {
                    const std::size_t at = size_of(r, s.cols) + static_cast<std::size_t>(c);
                    sum += static_cast<double>(dy[at]);
                    size += size_of_error(kernel, values, at, static_cast<std::size_t>(c), dy[at]);
                }
                const double error = std::abs(static_cast<double>(sums[static_cast<std::size_t>(c)]) - sum);
                worst = std::max(worst, error / (size + 1e-30));
            }
            // Sums of at most 64 FP32 values.
            CHECK(worst < 64 * 0x1p-24 + error_of(kernel.agreement));
            if (is_loss) {
                double expected = 0;
                for (std::size_t i = 0; i < dy.size(); ++i) {
                    const double error =
                        static_cast<double>(values.matrices[0][i]) +
                        static_cast<double>(values.bias[i % static_cast<std::size_t>(s.cols)]) -
                        static_cast<double>(values.matrices[1][i]);
                    expected += error * error;
                }
                CHECK(launch.loss_sum() == doctest::Approx(expected).epsilon(1e-6));
            }
            ++cases;
        }
    }
    CHECK(cases > 0);
}
