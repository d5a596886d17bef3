// The KV cache of a transformer: its bytes, and what a format costs the output of attention.
#pragma once

#include <string_view>

#include "core/inference/format.h"

namespace fp8lab {

struct KvShape {
    int layers = 32, heads = 8, head_dim = 128;  // heads: those that K and V have
    // Of latent attention (MLA: DeepSeek-V2, arXiv 2405.04434, section 2.1): the values that a token has in a layer instead
    // of K and V, 512 + 64 in DeepSeek-V3. 0: K and V.
    int latent = 0;
};
// 2 (K and V) x layers x heads x head_dim x bits / 8; layers x latent x bits / 8. Bits per value with its share of the
// scales of blocks, groups and rows, of which head_dim or the latent values are one; a scale per tensor is not counted.
double kv_bytes_per_token(const KvShape& shape, const LowFormat& format);

// The number of whole tokens that fit.
double kv_tokens(double bytes, double bytes_per_token);

// One head: 2,048 keys, 64 queries, K and V from N(0, 1), four channels of K `outlier` times as large; queries from
// N(0, sharpness^2), divided by the length that the outliers add to K. K and V are rounded to BF16, the reference. All
// keys are one tensor in K's and in V's cast; its blocks run along the channels.
struct KvCase {
    int outlier = 8, sharpness = 3, seed = 1;
    bool operator==(const KvCase&) const = default;
};
// |o - o_bf16| / |o_bf16| of the output in percent, with K, with V, or with both in the format.
struct KvError {
    double k_pct = 0, v_pct = 0, both_pct = 0;
};
KvError kv_error(const KvCase& kv, const LowFormat& format);

}  // namespace fp8lab
