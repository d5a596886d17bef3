#include "core/scaling/code_layouts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/base/error.h"
#include "core/formats/codec.h"
#include "core/scaling/block_scales.h"
#include "core/scaling/nvfp4.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

constexpr std::array kCodeLayouts = {
    CodeLayout{"e4m3-tensor", "e4m3", Granularity::tensor, "F32"},
    CodeLayout{"e4m3-row", "e4m3", Granularity::row, "F32"},
    CodeLayout{"e4m3-block128", "e4m3", Granularity::block128, "F32"},
    CodeLayout{"mxfp8", "e4m3", Granularity::block32, "F8_E8M0"},
    CodeLayout{"nvfp4", "e2m1", Granularity::block16, "F8_E4M3", true},
    CodeLayout{"mxfp4", "e2m1", Granularity::block32, "F8_E8M0"},
};

// Scales as they multiply before and after the cast; of NVFP4 the latter without the global scale.
struct LayoutScales {
    BlockGrid grid = {};
    std::vector<float> before = {}, after = {};
    float global = 1;
};

// To nearest with 21 significant bits: the product with 448 is then exact.
float rounded(float scale) {
    constexpr std::uint32_t kHalf = 4, kDropped = 7;
    if (!std::isnormal(scale)) return scale;
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(scale) + kHalf) & ~kDropped);
}

// As the layout stores them.
void round_scales(const CodeLayout& layout, LayoutScales& scales) {
    if (layout.has_global) scales.global = rounded(scales.global);
    if (layout.scales != "F32") return;
    for (float& scale : scales.after) scale = rounded(scale);
}

LayoutScales scales_for(const CodeLayout& layout, std::span<const float> matrix, std::size_t rows,
                        std::size_t cols, float tensor_amax) {
    const CastPlan plan = layout.plan();
    const QuantizeRequest request{.rows = rows, .cols = cols, .tensor_amax = tensor_amax};
    LayoutScales out{.grid = block_grid(plan, rows, cols, Along::cols)};
    if (layout.granularity == Granularity::tensor && tensor_amax >= 0) {
        // The scale of a whole is that of a matrix with its amax alone.
        const std::array<float, 1> whole = {tensor_amax};
        BlockScales scales = block_scales(plan, whole, 1, block_grid(plan, 1, 1, Along::cols), request);
        out.before = std::move(scales.scale), out.after = std::move(scales.scale_inv);
        round_scales(layout, out);
        return out;
    }
    BlockScales scales = block_scales(plan, matrix, cols, out.grid, request);
    out.before = std::move(scales.scale), out.after = std::move(scales.scale_inv);
    if (layout.has_global) {
        out.global = scales.tensor_scale;
        out.after = nvfp4_rounded_scales(block_amaxes(matrix, cols, out.grid, false), out.global);
    }
    round_scales(layout, out);
    return out;
}

}  // namespace

CastPlan CodeLayout::plan() const {
    return {.format = &find_format(format),
            .granularity = granularity,
            .square_blocks = granularity == Granularity::block128,
            .scaled = true};
}

std::size_t CodeLayout::block() const {
    return granularity == Granularity::block16 ? 16 : granularity == Granularity::block32 ? 32 : 1;
}

std::size_t CodeLayout::scale_rows(std::size_t rows) const {
    return block_grid(plan(), rows, 1, Along::cols).down;
}

std::size_t CodeLayout::scale_cols(std::size_t cols) const {
    return block_grid(plan(), 1, cols, Along::cols).across;
}

std::span<const CodeLayout> code_layouts() { return kCodeLayouts; }

const CodeLayout& find_code_layout(std::string_view name, std::string_view where) {
    const auto found = std::ranges::find(kCodeLayouts, name, &CodeLayout::name);
    if (found == kCodeLayouts.end())
        throw unknown_name(std::string(where), "layout", name, kCodeLayouts,
                           [](const CodeLayout& each) { return each.name; });
    return *found;
}

CodedMatrix cast_to_layout(const CodeLayout& layout, std::span<const float> matrix, std::size_t rows,
                           std::size_t cols, float tensor_amax) {
    if (matrix.size() != rows * cols)
        throw usage_error("cast_to_layout", "the matrix must have rows x cols elements");
    LayoutScales scales = scales_for(layout, matrix, rows, cols, tensor_amax);
    CodedMatrix out{.codes = std::vector<std::uint8_t>(matrix.size()), .global = scales.global};
    const FormatInfo& format = find_format(layout.format);
    const BlockGrid& grid = scales.grid;
    constexpr std::size_t kGrain = 16384;  // elements that are worth a thread
    parallel_for(rows, 1 + kGrain / std::max<std::size_t>(cols, 1), [&](std::size_t begin, std::size_t end) {
        std::vector<float> scaled(cols);
        for (std::size_t r = begin; r < end; ++r) {
            const float* const own = scales.before.data() + r / grid.height * grid.across;
            const float* const row = matrix.data() + r * cols;
            for (std::size_t c = 0, block = 0; c < cols; ++block)
                for (const std::size_t stop = std::min(cols, c + grid.width); c < stop; ++c)
                    scaled[c] = row[c] * own[block];
            encode(format, scaled, std::span(out.codes).subspan(r * cols, cols));
        }
    });
    out.scales = std::move(scales.after);
    if (layout.scales != "F32") {
        const bool e8m0 = layout.scales == "F8_E8M0";
        out.scale_codes.resize(out.scales.size());
        encode(find_format(e8m0 ? "e8m0" : "e4m3"), out.scales, out.scale_codes,
               {.rounding = e8m0 ? Rounding::toward_zero : Rounding::nearest});  // exact
    }
    return out;
}

void decode_layout(const CodeLayout& layout, const CodedMatrix& coded, std::size_t cols,
                   std::span<float> out) {
    decode(find_format(layout.format), coded.codes, out);
    if (cols == 0) return;
    const std::size_t rows = out.size() / cols;
    const BlockGrid grid = block_grid(layout.plan(), rows, cols, Along::cols);
    parallel_for(rows, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r)
            for (std::size_t c = 0; c < cols; ++c) {
                float& value = out[r * cols + c];
                value *= coded.scales[r / grid.height * grid.across + c / grid.width];
                if (layout.has_global) value /= coded.global;
            }
    });
}

std::vector<std::uint8_t> pack_fp4(std::span<const std::uint8_t> codes) {
    constexpr unsigned kBits = 4;
    if (codes.size() % 2 != 0) throw usage_error("pack_fp4", "an odd number of codes");
    std::vector<std::uint8_t> out(codes.size() / 2);
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<std::uint8_t>(codes[2 * i] | codes[2 * i + 1] << kBits);
    return out;
}

}  // namespace fp8lab
