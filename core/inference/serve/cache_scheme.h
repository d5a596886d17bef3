// The formats in which a server keeps keys and values ("KV cache"), and what shares a scale. Keys are cast behind the
// rotation, as they are kept.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "core/inference/kv_cache.h"
#include "core/nn/matrix.h"

namespace fp8lab {

// token, token_head: a scale of the K, or the V, of one token, or of one head of it, computed when it comes.
// tensor, head: a static scale of a block's K, or V, or of one head of it; from amaxes that were measured before.
// one: the scale is 1. blocks: those of the format, along the channels of a token.
enum class CacheScales { one, tensor, head, token, token_head, blocks };

struct CacheScheme {
    std::string_view id, label;
    CacheScales scales = CacheScales::one;
    const LowFormat* format = nullptr;
};

// bf16 | E4M3: one tensor head token token-head | nvfp4 mxfp4 int4-g32 | int8 (a scale per token and head).
std::span<const CacheScheme> cache_schemes();
// Throws usage_error with the ids that there are.
const CacheScheme& find_cache_scheme(std::string_view id, std::string_view where);
constexpr bool is_calibrated(const CacheScheme& scheme) {
    return scheme.scales == CacheScales::tensor || scheme.scales == CacheScales::head;
}

// x (tokens, heads * head size), K or V of one block. `amaxes`: per head, of tensor and head; what is larger saturates.
// NVFP4's tensor scale is that of all tokens of x. `stats` may be null.
Matrix<float> cast_for_cache(const Matrix<float>& x, const CacheScheme& scheme, std::size_t heads,
                             std::span<const float> amaxes, CastStats* stats = nullptr);

// Of one token, with the scales that come with it: FP32 of token and token_head, those of blocks. Static ones are not
// counted.
double cache_bytes_per_token(const KvShape& shape, const CacheScheme& scheme);

// Published shapes of attention that bytes are told of: 32 heads of K and V, 8 shared ones, and latent attention with 512 values
// and 64 of the rotated key (DeepSeek-V2). One layer.
struct CacheModel {
    std::string_view id, label;
    KvShape shape;
};
inline constexpr std::array kCacheModels = {
    CacheModel{"mha_32", "MHA, 32 heads", {.layers = 1, .heads = 32, .head_dim = 128}},
    CacheModel{"gqa_8", "GQA, 8 heads", {.layers = 1, .heads = 8, .head_dim = 128}},
    CacheModel{"mla", "MLA", {.layers = 1, .latent = 512 + 64}}};

}  // namespace fp8lab
