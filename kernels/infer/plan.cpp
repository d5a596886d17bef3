// How the matrices of a model are shared among warps, and how shared memory is used.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "kernels/infer/decode.h"

namespace fp8lab::cuda {
namespace {

int up(int a, int b) { return (a + b - 1) / b; }

// Q twice, probabilities, and the results of the warps or the shares of all ranges (attention_units.cuh).
int attention_bytes(int head_size, int blocks) {
    const int results = kDecodeWarps * kUnitHeads * (head_size + 2), shares = 2 * kUnitHeads * blocks;
    return 2 * kUnitHeads * (head_size * 2 + 16) + kDecodeWarps * 16 * kUnitHeads * 4 +
           std::max(results, shares) * 4;
}

// All of x in one slice where it fits. K among as many warps as it feeds: tiles are few, and so the warps are equally busy.
// Returns the bytes of x and sums of products.
int share(DecodeMatrix& m, DecodeWeights weights, int batch, const DecodeDevice& device, int room,
          bool in_slices) {
    m.tiles = up(m.rows, kDecodeTileRows);
    m.blocks = up(m.cols, block_k(weights));
    const auto x_stride = [&](int slices) {
        return up(up(m.blocks, slices) * block_k(weights) * 2, 128) * 128 +
               (weights == DecodeWeights::bf16 ? 64 : 16);
    };
    const int tiles = up(m.tiles, device.multiprocessors);
    const auto sums = [&](int k_warps) { return tiles * k_warps * batch * kSumStride * 4; };
    int slices = 1;
    while (in_slices && slices < m.blocks && batch * x_stride(slices) + sums(1) > room) ++slices;
    m.slice = up(m.blocks, slices);
    m.x_stride = x_stride(slices);
    const int x = batch * m.x_stride;
    const auto busy = [&](int k_warps) {  // blocks of the warp with the most
        return up(tiles, kDecodeWarps / k_warps) * up(m.slice, k_warps);
    };
    m.k_warps = 1;
    for (int k_warps = 2; k_warps <= kDecodeWarps; k_warps *= 2)
        if (busy(k_warps) <= busy(m.k_warps) && x + sums(k_warps) <= room) m.k_warps = k_warps;
    m.part = up(m.slice, m.k_warps);
    m.parts = up(m.slice, m.part);
    return x + std::max(sums(m.k_warps), in_slices ? 0 : m.cols * 4);  // or the gains of a norm
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
    const int matrices = model.head ? kDecodeMatrices : static_cast<int>(kHead);
    for (int i = 0; i < matrices; ++i)
        plan.scales_bytes =
            std::max(plan.scales_bytes,
                     up(up(model.matrix[i].rows, kDecodeTileRows), plan.blocks) * kDecodeTileRows * 4);
    plan.scales_bytes = up(plan.scales_bytes, 128) * 128;
    plan.own_bytes =
        up(up(up(model.d, kDecodeTileRows), plan.blocks) * kDecodeTileRows * model.batch * 4, 128) * 128;
    const int room = device.shared - kDecodeStateBytes - plan.scales_bytes - plan.own_bytes;
    int most = attention_bytes(model.head_size, plan.blocks);
    std::size_t at = 0;
    int scales_at = 0;
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
        most = std::max(most, share(m, weights, model.batch, device, room, i == kOut || i == kDown));
        m.at = at, m.scales_at = scales_at;
        at += static_cast<std::size_t>(m.tiles) * static_cast<std::size_t>(m.blocks) * kDecodeBlockBytes;
        scales_at += m.rows;
    }
    if (most > room)
        throw usage_error("shape", fmt::format("{} tokens of {} values need {} bytes of shared memory; {} "
                                               "are there",
                                               model.batch, model.d, most, room));
    // Behind x of a matrix that reads a norm: the gains, then the rows.
    const DecodeMatrix& wide = model.matrix[kGateUp];
    const int with_rows = model.batch * wide.x_stride + (1 + model.batch) * model.d * 4;
    plan.keeps_rows = with_rows <= room;
    if (plan.keeps_rows) most = std::max(most, with_rows);
    plan.bytes = kDecodeStateBytes + plan.scales_bytes + plan.own_bytes + most;
    return plan;
}

}  // namespace fp8lab::cuda
