// Casts with one scale per row or block, compared with core/scaling: codes, scales in the layout of cuBLASLt,
// statistics.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>

#include "core/scaling/block_scales.h"
#include "kernels/gemm/engine.h"
#include "tests/kernels/case_launch.h"
#include "tests/kernels/gemm_reference.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

CastPlan plan_of(const KernelCase& kernel, const ScaleControls& controls) {
    CastPlan plan;
    plan.format = &format_of(kernel.payload);
    plan.granularity = kernel.scaling == ScaleMode::row       ? Granularity::row
                       : kernel.scaling == ScaleMode::block32 ? Granularity::block32
                                                              : Granularity::block128;
    plan.square_blocks = kernel.scaling == ScaleMode::square128;
    plan.scaled = true;
    plan.pow2 = controls.pow2 != 0;
    plan.margin = controls.margin;
    return plan;
}

// The payload for one of the two GEMMs: m rows of k elements that lie along its contraction.
struct Payload {
    std::vector<std::uint8_t> codes;
    std::vector<float> scale_inv;  // as cuBLASLt reads them
    fp8lab::test::Operand layout;  // knows where the scale of an element lies
    bool mx = false;
    float scale_inv_of(int o, int i) const {
        if (!mx) return scale_inv[layout.scale_at(o, i)];
        // Tiles of 128 rows x 4 blocks, 512 bytes each, those of a row side by side (cuBLAS manual, "1D block
        // scaling factors layout").
        const int tiles_across = (layout.k + 127) / 128, tile = o / 128 * tiles_across + i / 128;
        const int in_tile = o % 32 * 16 + o % 128 / 32 * 4 + i / 32 % 4;
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(scale_inv.data());
        return decode(find_format("e8m0"), bytes[tile * 512 + in_tile]);
    }
};
bool same(float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); }

Payload payload_of(const Launch& launch, const KernelCase& kernel, Shape s, Along along) {
    const bool by_rows = along == Along::cols;
    Payload out;
    out.codes = by_rows ? launch.rows() : launch.columns();
    const std::vector<float> all = launch.scales().scale_inv().download();
    const auto border = all.begin() + static_cast<std::ptrdiff_t>(launch.scales().columns_at());
    out.scale_inv = by_rows ? std::vector(all.begin(), border) : std::vector(border, all.end());
    out.layout.outer = by_rows ? s.padded_rows : s.padded_cols;
    out.layout.k = by_rows ? s.padded_cols : s.padded_rows;
    out.mx = kernel.scaling == ScaleMode::block32;
    out.layout.mode = kernel.scaling == ScaleMode::row        ? ScaleMode::row
                      : kernel.scaling == ScaleMode::block128 ? ScaleMode::block128
                                                              : ScaleMode::square128;
    return out;
}

struct Differences {
    std::size_t codes = 0, scales = 0, padding = 0;
};

// Against the scales of core's blocks and core's codes under them. `exact` is (s.rows, s.cols).
Differences differences(const Payload& found, const CastPlan& plan, const Values& exact, Shape s,
                        Along along) {
    const auto rows = static_cast<std::size_t>(s.rows), cols = static_cast<std::size_t>(s.cols);
    const BlockGrid grid = block_grid(plan, rows, cols, along);
    const BlockScales scales = block_scales(plan, exact, cols, grid);
    Differences out;
    for (int o = 0; o < found.layout.outer; ++o)
        for (int i = 0; i < found.layout.k; ++i) {
            const std::uint8_t code = found.codes[size_of(o, found.layout.k) + static_cast<std::size_t>(i)];
            const auto r = static_cast<std::size_t>(along == Along::cols ? o : i),
                       c = static_cast<std::size_t>(along == Along::cols ? i : o);
            if (r >= rows || c >= cols) {
                // Beside a NaN the whole block is NaN, its padding too.
                out.padding += code != 0 && !(found.mx && std::isnan(found.scale_inv_of(o, i)));
                continue;
            }
            const std::size_t block = r / grid.height * grid.across + c / grid.width;
            const float scaled = exact[r * cols + c] * scales.scale[block];
            out.codes += code != encode(*plan.format, scaled, plan.rounding, plan.overflow);
            out.scales += !same(found.scale_inv_of(o, i), scales.scale_inv[block]);
        }
    return out;
}

// Elements that are further from what they stand for than rounding and `error` explain.
std::size_t far_from(const Payload& found, const CastPlan& plan, const Values& exact, Shape s, Along along,
                     double error) {
    std::size_t far = 0;
    for (int o = 0; o < found.layout.outer; ++o)
        for (int i = 0; i < found.layout.k; ++i) {
            const int r = along == Along::cols ? o : i, c = along == Along::cols ? i : o;
            if (r >= s.rows || c >= s.cols) continue;
            const double scale_inv = static_cast<double>(found.scale_inv_of(o, i)),
                         x = static_cast<double>(exact[size_of(r, s.cols) + static_cast<std::size_t>(c)]);
            const std::uint8_t code = found.codes[size_of(o, found.layout.k) + static_cast<std::size_t>(i)];
            const double q = static_cast<double>(decode(*plan.format, code)) * scale_inv;
            const double allowed = error + 1.01 * unit_roundoff(*plan.format) * std::abs(x) +
                                   min_subnormal(*plan.format) * scale_inv;
            far += std::abs(q - x) > allowed;
        }
    return far;
}

// `along`: of the codes that are counted.
void check_statistics(const Launch& launch, const CastPlan& plan, const Values& exact, Shape s, Along along) {
    QuantizeRequest request{
        .rows = static_cast<std::size_t>(s.rows), .cols = static_cast<std::size_t>(s.cols), .along = along};
    Values q(exact.size());
    const CastStats stats = quantize(plan, exact, q, request).stats;
    const ScaleState state = launch.state();
    CHECK(static_cast<std::int64_t>(state.underflow) == stats.underflow);
    CHECK(static_cast<std::int64_t>(state.overflow) == stats.overflow);
    check_sums(launch.stats_sum(), stats);
}

const std::vector<Shape> kShapes = {padded(1, 1),     padded(16, 16),   padded(33, 47),   padded(64, 128),
                                    padded(65, 129),  padded(128, 256), padded(200, 333), padded(333, 200),
                                    padded(700, 130), padded(129, 650)};

}  // namespace

TEST_CASE("row and block casts store core's codes both ways, with core's scales where cuBLASLt reads them") {
    NEEDS_GPU();
    std::size_t cases = 0;
    for (const KernelCase& kernel : kernel_cases())
        for (const Shape s : kShapes)
            for (const ScaleControls& controls :
                 {ScaleControls{}, ScaleControls{.margin = 2, .pow2 = 1}, ScaleControls{.margin = -1}})
                for (const bool with_stats : {false, true}) {
                    if (kernel.scaling == ScaleMode::tensor) continue;
                    CAPTURE(std::string(kernel.name));
                    CAPTURE(s.rows);
                    CAPTURE(s.cols);
                    CAPTURE(controls.margin);
                    CaseValues values = make_values(kernel, s);
                    const Launch launch(kernel, values, s, 3, with_stats, controls);
                    const Values exact = kernel.reference(values, s);
                    const CastPlan plan = plan_of(kernel, controls);
                    const float amax_found = std::bit_cast<float>(launch.state().amax_bits);
                    CHECK(launch.state().scale_used == 1);
                    CHECK(launch.state().scale_inv == 1);
                    for (const Along along : {Along::cols, Along::rows}) {
                        const Payload found = payload_of(launch, kernel, s, along);
                        if (kernel.agreement == Agreement::exact) {
                            const Differences wrong = differences(found, plan, exact, s, along);
                            CHECK(wrong.codes == 0);
                            CHECK(wrong.scales == 0);
                            CHECK(wrong.padding == 0);
                            CHECK(amax_found == amax(exact));
                        } else if (controls.margin >= 0) {  // below, the largest values saturate
                            const double error = 0x1p-10 * (1 + static_cast<double>(amax(exact)));
                            CHECK(std::abs(amax_found - amax(exact)) <= error);
                            CHECK(far_from(found, plan, exact, s, along, error) == 0);
                        }
                    }
                    if (with_stats && kernel.agreement == Agreement::exact)
                        check_statistics(launch, plan, exact, s, Along::cols);
                    ++cases;
                }
    CHECK(cases > 500);
}

TEST_CASE("of a tensor that only the transposed product takes, the statistics are those of its columns") {
    NEEDS_GPU();
    std::size_t cases = 0;
    for (const KernelCase& kernel : kernel_cases())
        for (const Shape s : kShapes) {
            if (kernel.scaling == ScaleMode::tensor || !kernel.transposed) continue;
            CAPTURE(std::string(kernel.name));
            CAPTURE(s.rows);
            CAPTURE(s.cols);
            CaseValues values = make_values(kernel, s);
            const Launch launch(kernel, values, s, 3, true, {}, false);
            const Values exact = kernel.reference(values, s);
            const CastPlan plan = plan_of(kernel, {});
            CHECK(launch.rows() == std::vector<std::uint8_t>(launch.rows().size(), 0xA5));
            if (kernel.agreement == Agreement::exact) {
                CHECK(differences(payload_of(launch, kernel, s, Along::rows), plan, exact, s, Along::rows)
                          .codes == 0);
                check_statistics(launch, plan, exact, s, Along::rows);
            } else {
                const CastSums sums = launch.stats_sum();
                CHECK(sums.signal > 0);
                CHECK(sums.noise < 0.01 * sums.signal);
            }
            ++cases;
        }
    CHECK(cases >= 100);
}

TEST_CASE("a NaN has no say in the scale of its row or block, an Inf makes it 1, and so do zeros") {
    NEEDS_GPU();
    const Shape s = padded(200, 333);
    std::size_t cases = 0;
    for (const KernelCase& kernel : kernel_cases()) {
        if (kernel.scaling == ScaleMode::tensor || kernel.inputs.size() != 1 ||
            kernel.agreement != Agreement::exact || kernel.name.starts_with("ReLU"))
            continue;
        CAPTURE(std::string(kernel.name));
        CaseValues values = make_values(kernel, s);
        Values& in = values.matrices[0];
        for (std::size_t i = 0; i < in.size(); ++i) {
            const std::size_t r = i / 333, c = i % 333;
            if (r == 7 || c == 9 || (r < 128 && c >= 128 && c < 256)) in[i] = 0;
            if (i % 401 == 5) in[i] = kNan;
            if (i % 1009 == 6 && r > 150) in[i] = i % 2 ? kInf : -kInf;
        }
        const Launch launch(kernel, values, s, 1, false);
        const CastPlan plan = plan_of(kernel, {});
        for (const Along along : {Along::cols, Along::rows}) {
            const Differences wrong = differences(payload_of(launch, kernel, s, along), plan, in, s, along);
            CHECK(wrong.codes == 0);
            CHECK(wrong.scales == 0);
            CHECK(wrong.padding == 0);
        }
        CHECK(
            std::isnan(std::bit_cast<float>(launch.state().amax_bits)));  // the record of the tensor says so
        ++cases;
    }
    CHECK(cases >= 6);
}

TEST_CASE("a tensor with one scale per row, cast again, gives the same codes and scales") {
    NEEDS_GPU();
    const Shape s = padded(65, 129);
    for (const KernelCase& kernel : kernel_cases()) {
        if (kernel.scaling != ScaleMode::row) continue;
        CAPTURE(std::string(kernel.name));
        Launch launch(kernel, make_values(kernel, s), s, 1, false);
        const auto codes = launch.rows();
        const auto scale_inv = launch.scales().scale_inv().download();
        launch.run(false, 1);
        CHECK(launch.rows() == codes);
        CHECK(launch.scales().scale_inv().download() == scale_inv);
    }
}

TEST_CASE("a recipe whose products this GPU refuses is emulated, with the refusal as the reason") {
    const Refusal takes_all = [](const GemmSpec&) { return std::string(); };
    const Refusal ada = [](const GemmSpec& spec) {
        return spec.a_scale == ScaleMode::tensor ? std::string() : "no algorithm for " + to_string(spec);
    };
    for (const std::string recipe :
         {"rowwise", "block128", "mxfp8", "rowwise:bwd=e4m3", "block128:bwd=e5m2", "mxfp8:bwd=e5m2"}) {
        CAPTURE(recipe);
        CHECK(choose_engine(parse_recipe(recipe), takes_all).engine == Engine::fp8);
        CHECK(choose_engine(parse_recipe(recipe), takes_all).reason.empty());
        const EngineChoice refused = choose_engine(parse_recipe(recipe), ada);
        CHECK(refused.engine == Engine::emulated);
        CHECK(refused.reason.find("no algorithm for nt 256x256x256") == 0);
    }
    for (const std::string recipe : {"delayed", "current", "unscaled"})
        CHECK(choose_engine(parse_recipe(recipe), ada).engine == Engine::fp8);
    CHECK(choose_engine(parse_recipe("bf16"), ada).engine == Engine::bf16);
    for (const std::string recipe :
         {"fp32", "mxfp8:mxrule=floor", "mxfp6-e2m3", "nvfp4", "int8", "rowwise:round=stochastic",
          "block128:overflow=nonsaturate", "rowwise:fwd=e5m2", "block128:master=none", "current:bwd=bf16"}) {
        CAPTURE(recipe);
        const EngineChoice choice = choose_engine(parse_recipe(recipe), takes_all);
        CHECK(choice.engine == Engine::emulated);
        CHECK_FALSE(choice.reason.empty());
    }
}
