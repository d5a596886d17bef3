#include "core/inference/serve/cache_scheme.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/inference/lowering.h"
#include "core/nn/ops/columns.h"
#include "core/scaling/recipe.h"

namespace fp8lab {
namespace {

// The same values, a row for each head of a token.
Matrix<float> by_heads(Matrix<float> x, std::size_t heads) {
    x.rows *= heads, x.cols /= heads;
    return x;
}

const LowFormat& unscaled() {
    static const LowFormat kFormat{
        .id = "e4m3", .label = "E4M3", .activations = cast_plan(parse_recipe("unscaled"), TensorClass::x)};
    return kFormat;
}

}  // namespace

std::span<const CacheScheme> cache_schemes() {
    static const std::vector<CacheScheme> kSchemes = [] {
        const auto format = [](const char* id) { return &find_low_format(id, "cache"); };
        return std::vector<CacheScheme>{
            {"bf16", "BF16", CacheScales::one, format("bf16")},
            {"one", "E4M3, scale 1", CacheScales::one, &unscaled()},
            {"tensor", "E4M3, calibrated per tensor", CacheScales::tensor, format("e4m3")},
            {"head", "E4M3, calibrated per head", CacheScales::head, format("e4m3")},
            {"token", "E4M3, per token", CacheScales::token, format("e4m3-row")},
            {"token-head", "E4M3, per token and head", CacheScales::token_head, format("e4m3-row")},
            {"nvfp4", "NVFP4", CacheScales::blocks, format("nvfp4")},
            {"mxfp4", "MXFP4", CacheScales::blocks, format("mxfp4")},
            {"int4-g32", "INT4, groups of 32", CacheScales::blocks, format("int4-g32")},
            {"int8", "INT8, per token and head", CacheScales::token_head, format("int8-row")},
        };
    }();
    return kSchemes;
}

const CacheScheme& find_cache_scheme(std::string_view id, std::string_view where) {
    const auto hit = std::ranges::find(cache_schemes(), id, &CacheScheme::id);
    if (hit != cache_schemes().end()) return *hit;
    throw unknown_name(std::string(where), "cache", id, cache_schemes(),
                       [](const CacheScheme& scheme) { return scheme.id; });
}

Matrix<float> cast_for_cache(const Matrix<float>& x, const CacheScheme& scheme, std::size_t heads,
                             std::span<const float> amaxes, CastStats* stats) {
    if (is_calibrated(scheme) && amaxes.size() != heads)
        throw usage_error("cache", "a calibrated scale needs an amax for each head");
    switch (scheme.scales) {
        case CacheScales::tensor:
            return lowered_input(x, *scheme.format, std::ranges::max(amaxes), stats);
        case CacheScales::token_head: {
            Matrix<float> out = lowered_input(by_heads(x, heads), *scheme.format, 0, stats);
            out.rows = x.rows, out.cols = x.cols;
            return out;
        }
        case CacheScales::head: {
            Matrix<float> out(x.rows, x.cols), part;
            for (std::size_t h = 0; h < heads; ++h) {
                take_columns(x, h * (x.cols / heads), x.cols / heads, part);
                CastStats own;
                put_columns(lowered_input(part, *scheme.format, amaxes[h], stats ? &own : nullptr),
                            h * (x.cols / heads), out);
                if (stats) *stats += own;
            }
            return out;
        }
        default:
            return lowered_input(x, *scheme.format, 0, stats);
    }
}

double cache_bytes_per_token(const KvShape& shape, const CacheScheme& scheme) {
    KvShape rows = shape;  // what has scales of its own
    if (scheme.scales != CacheScales::token_head)
        rows.heads = 1, rows.head_dim = shape.heads * shape.head_dim;
    return kv_bytes_per_token(rows, *scheme.format);
}

}  // namespace fp8lab
