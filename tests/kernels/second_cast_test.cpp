// A cast for one GEMM alone: the codes and scales that it has beside the other one's, which tests hold to core's.
#include <doctest/doctest.h>

#include "core/base/error.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

// What one launch leaves of the codes by rows and by columns, and of their scales.
struct Codes {
    std::vector<std::uint8_t> rows, columns;
    std::vector<float> row_scales, column_scales;
    CastSums sums;
    std::uint32_t amax_bits = 0;
};

Codes cast(const CastLaunch& launch, Shape s, Element element, ScaleMode scaling, bool rows, bool columns) {
    CastOutputs out(s, element, scaling, 3, true);
    if (!rows) out.target.rows = nullptr;
    if (!columns) out.target.columns = nullptr;
    if (scaling == ScaleMode::row) launch(out.target, Pass::amax_only);
    launch(out.target, Pass::cast);
    done();
    Codes codes{out.rows.download(), out.columns.download(), {}, {}, out.sums(), {}};
    codes.amax_bits = out.state.download()[0].amax_bits;
    if (scaling == ScaleMode::tensor) return codes;
    const Values scales = out.scales.scale_inv().download();
    const auto at = scales.begin() + static_cast<std::ptrdiff_t>(out.scales.columns_at());
    codes.row_scales.assign(scales.begin(), at);
    codes.column_scales.assign(at, scales.end());
    return codes;
}

}  // namespace

TEST_CASE("beside FP8 codes with one scale the same launch stores the values in BF16") {
    NEEDS_GPU();
    for (const Shape s : {padded(48, 80), padded(200, 300)}) {
        const Values exact = normals(size_of(s.rows, s.cols), 6, Element::f32, 0.3F);
        const OnDevice in(exact, s, Element::f32, 0);
        for (const Element element : {Element::e4m3, Element::e5m2})
            for (const auto& [rows, columns] : {std::pair{true, true}, {true, false}, {false, true}}) {
                CAPTURE(s.rows);
                CAPTURE(static_cast<int>(element));
                CastOutputs alone(s, element, ScaleMode::tensor, 3, false),
                    both(s, element, ScaleMode::tensor, 3, false);
                const OnDevice wide(s, Element::bf16);
                for (CastOutputs* out : {&alone, &both}) {
                    if (!rows) out->target.rows = nullptr;
                    if (!columns) out->target.columns = nullptr;
                }
                both.target.beside = wide.get();
                for (const CastOutputs* out : {&alone, &both})
                    cast_matrix(in.get(), Element::f32, s, out->target, Pass::cast, nullptr);
                done();
                CHECK(both.rows.download() == alone.rows.download());
                CHECK(both.columns.download() == alone.columns.download());
                CHECK(both.state.download()[0].amax_bits == alone.state.download()[0].amax_bits);
                CHECK(different(wide.all(), rounded(pad(exact, s, 0.0F))) == 0);
            }
    }
    const Shape s = padded(48, 80);
    const OnDevice in(normals(size_of(s.rows, s.cols), 7), s, Element::f32, 0), wide(s, Element::bf16);
    CastOutputs row(s, Element::e4m3, ScaleMode::row, 1, false),
        counted(s, Element::e4m3, ScaleMode::tensor, 1, true);
    for (CastOutputs* out : {&row, &counted}) {
        out->target.beside = wide.get();
        CHECK_THROWS_AS(cast_matrix(in.get(), Element::f32, s, out->target, Pass::cast, nullptr), Error);
    }
}

TEST_CASE("the codes of a cast for one GEMM are those of the cast for both") {
    NEEDS_GPU();
    for (const Shape s : {padded(48, 80), padded(200, 300)}) {
        const Values exact = normals(size_of(s.rows, s.cols), 5, Element::bf16, 0.3F);
        const OnDevice in(exact, s, Element::bf16, 0);
        const CastLaunch launch = [&](const CastTarget& target, Pass pass) {
            cast_matrix(in.get(), Element::bf16, s, target, pass, nullptr);
        };
        for (const Element element : {Element::e4m3, Element::e5m2})
            for (const ScaleMode scaling :
                 {ScaleMode::tensor, ScaleMode::row, ScaleMode::block128, ScaleMode::square128}) {
                CAPTURE(s.rows);
                CAPTURE(static_cast<int>(element));
                CAPTURE(static_cast<int>(scaling));
                const Codes both = cast(launch, s, element, scaling, true, true),
                            first = cast(launch, s, element, scaling, true, false),
                            second = cast(launch, s, element, scaling, false, true);
                const std::vector<std::uint8_t> untouched(both.rows.size(), 0xA5);
                CHECK(both.rows != untouched);
                CHECK(first.rows == both.rows);
                CHECK(first.columns == untouched);
                CHECK(first.row_scales == both.row_scales);
                CHECK(first.sums.noise == both.sums.noise);
                CHECK(second.columns == both.columns);
                CHECK(second.rows == untouched);
                CHECK(second.column_scales == both.column_scales);
                CHECK(second.sums.signal == doctest::Approx(both.sums.signal));
                CHECK(second.sums.noise > 0);
                CHECK(second.amax_bits == both.amax_bits);
            }
    }
}
