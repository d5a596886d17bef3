// How the matrices of a model are shared among warps, and how shared memory is used.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "kernels/infer/decode.h"

namespace fp8lab::cuda {
namespace {

constexpr int kOwn = 4096;  // static shared memory, and what the driver keeps
// What x and the sums of products may have of shared memory; the ring has the rest.
constexpr double kMostX = 0.3, kMostSums = 0.14;
constexpr int kUnitHeads = 4;

int up(int a, int b) { return (a + b - 1) / b; }

int tiles_of(const DecodeMatrix& m, int blocks) { return up(m.tiles, blocks); }

// All of x in one slice where it fits. K among as many warps as it feeds: tiles are few, and so the warps are equally busy.
void share(DecodeMatrix& m, DecodeWeights weights, int batch, const DecodeDevice& device, bool in_slices) {
    m.tiles = up(m.rows, kDecodeTileRows);
    m.blocks = up(m.cols, block_k(weights));
    int slices = 1;
    while (in_slices && up(m.blocks, slices) * block_k(weights) * 2 * batch > kMostX * device.shared &&
           slices < m.blocks)
        ++slices;
    m.slice = up(m.blocks, slices);
    const int tiles = tiles_of(m, device.multiprocessors);
    const auto busy = [&](int k_warps) {  // blocks of the warp with the most
        return up(tiles, kDecodeWarps / k_warps) * up(m.slice, k_warps);
    };
    m.k_warps = 1;
    for (int k_warps = 2; k_warps <= kDecodeWarps; k_warps *= 2)
        if (busy(k_warps) <= busy(m.k_warps) &&
            tiles * k_warps * kDecodeTileRows * batch * 4 <= kMostSums * device.shared)
            m.k_warps = k_warps;
    m.part = up(m.slice, m.k_warps);
}

}  // namespace

std::size_t decode_partials(const DecodeModel& model, int blocks) {
    const int pairs = model.batch * model.kv_heads * up(model.heads / model.kv_heads, kUnitHeads);
    return static_cast<std::size_t>(std::max(pairs, blocks)) * kUnitHeads *
           static_cast<std::size_t>(model.head_size + 2);
}

DecodePlan plan_decode(DecodeModel& model, DecodeWeights weights, const DecodeDevice& device) {
    if (model.batch < 1 || model.batch > kMostDecodeTokens)
        throw usage_error(
            "batch", fmt::format("{} sequences; a launch takes 1 to {}", model.batch, kMostDecodeTokens));
    if (model.head_size % 8 != 0 || model.head_size > kMostDecodeHead)
        throw usage_error("heads", fmt::format("a head of {} is not a multiple of 8 up to {}",
                                               model.head_size, kMostDecodeHead));
    DecodePlan plan;
    plan.blocks = device.multiprocessors;
    std::size_t at = 0;
    int scales_at = 0, x_k = 0, scales = 0;
    const int per_piece = weights == DecodeWeights::bf16 ? 8 : 16;
    for (int i = 0; i < kDecodeMatrices; ++i) {
        if (i == kHead) {
            model.layer_bytes = at;
            model.layer_scales = scales_at;
            if (!model.head) break;
            at = 0, scales_at = 0;
        }
        DecodeMatrix& m = model.matrix[i];
        if (m.cols % per_piece != 0)
            throw usage_error("width",
                              fmt::format("rows of {} values are not a multiple of {}", m.cols, per_piece));
        share(m, weights, model.batch, device, i == kOut || i == kDown);
        m.at = at, m.scales_at = scales_at;
        at += static_cast<std::size_t>(m.tiles) * static_cast<std::size_t>(m.blocks) * kDecodeBlockBytes;
        scales_at += m.rows;
        x_k = std::max(x_k, m.slice * block_k(weights));
        const int tiles = tiles_of(m, plan.blocks);
        plan.sums_bytes = std::max(plan.sums_bytes, tiles * m.k_warps * kDecodeTileRows * model.batch * 4);
        scales = std::max(scales, tiles * kDecodeTileRows * 4);
    }
    plan.x_stride = up(x_k * 2, 128) * 128 + (weights == DecodeWeights::bf16 ? 64 : 16);
    plan.x_bytes = up(model.batch * plan.x_stride, 128) * 128;
    const int attention = 8 * (model.head_size * 2 + 16) + kDecodeWarps * 64 * 4 +
                          kDecodeWarps * kUnitHeads * (model.head_size + 2) * 4;
    // Scales lie behind what attention uses: they are fetched while it may still run.
    plan.sums_bytes = std::max(plan.sums_bytes, attention - plan.x_bytes);
    const int rest = plan.x_bytes + plan.sums_bytes + scales;
    plan.depth =
        std::min(kMostDecodeDepth, (device.shared - kOwn - rest) / (kDecodeWarps * kDecodeBlockBytes));
    if (plan.depth < 1)
        throw usage_error(
            "shape",
            fmt::format("{} tokens of {} values need {} bytes of shared memory; {} are there", model.batch,
                        x_k, rest, device.shared - kOwn - kDecodeWarps * kDecodeBlockBytes));
    plan.bytes = kDecodeWarps * plan.depth * kDecodeBlockBytes + rest;
    return plan;
}

}  // namespace fp8lab::cuda
