// One token of each of up to 8 sequences through a decoder-only transformer (core/nn/models/transformer/model.h) in one
// launch: what the kernel reads and writes. The caller owns all of it (decode_memory.h).
//
// The launch has one block of threads for each multiprocessor, and all of them wait for each other four or five times a layer.
// What bounds it is reading the weights. So each warp begins to read its weights of a matrix, into registers, before what they are
// multiplied with is there: while blocks wait for each other and while norms are computed, the memory goes on reading.
// Products are those of the tensor cores, 16 rows by 8 tokens, summed in FP32; weights in E4M3 and what is multiplied with
// them are widened to FP16, which holds both exactly (inputs in BF16 are multiplied by a power of two per token first; what is
// 2^-28 of the largest of them and less is rounded there).
//
// Residual stream, Q and logits: FP32. K and V are cast to the format of the cache. Inputs of matrices are cast once, from FP32 to
// BF16 or to E4M3 with the scale 448 / amax of the token or of all tokens.
// Sums have an order that depends on shapes, on the number of multiprocessors and on the length of the cache alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace fp8lab::cuda {

enum class DecodeWeights : int { bf16, e4m3 };
enum class DecodeInputs : int { bf16, e4m3_row, e4m3_tensor };  // E4M3: of weights in E4M3 only
enum class DecodeCache : int { bf16, e4m3 };

constexpr int kMostDecodeTokens = 8, kMostDecodeHead = 128;  // sequences of a launch; the width of a head
constexpr int kDecodeWarps = 8, kDecodeThreads = 32 * kDecodeWarps;
constexpr int kDecodeTileRows = 16, kDecodeBlockBytes = 2048;
constexpr int kDecodeStateBytes = 2048;          // what a block of threads knows, in shared memory
constexpr int kUnitHeads = 4;                    // of Q, that a block of threads takes at once in attention
constexpr int kSumStride = kDecodeTileRows + 4;  // of a token among the sums of a tile in shared memory
constexpr int block_k(DecodeWeights w) {
    return kDecodeBlockBytes / kDecodeTileRows / (w == DecodeWeights::bf16 ? 2 : 1);
}

// A matrix (rows, cols) in device memory: tiles of 16 rows, of each its blocks of 2 KiB along K, padded with zeros. Of a block
// the 16-byte pieces lie as the lanes of a warp want them: piece 32 (2 half + low) + 4 row + quarter is row + 8 low of the tile,
// bytes 64 half + 16 quarter and on.
//
// Tiles go to the blocks of threads in turns; there to 16 / k_warps groups of warps in turns. The warps of a group share K, of
// which x is in shared memory slice by slice, in parts.
struct DecodeMatrix {
    std::size_t at = 0;  // bytes, in a layer
    int scales_at = 0;   // in a layer
    int rows = 0, cols = 0, tiles = 0, blocks = 0;
    int slice = 0, part = 0;     // blocks
    int k_warps = 1, parts = 1;  // a power of two, of which so many have a part
    int x_stride = 0;            // bytes between tokens of x in shared memory
};
constexpr std::size_t piece_at(const DecodeMatrix& m, int row, int byte) {
    const std::size_t block =
        static_cast<std::size_t>(row / kDecodeTileRows) * static_cast<std::size_t>(m.blocks) +
        static_cast<std::size_t>(byte / 128);
    const int r = row % kDecodeTileRows, b = byte % 128;
    return block * kDecodeBlockBytes +
           static_cast<std::size_t>((32 * (2 * (b / 64) + r / 8) + 4 * (r % 8) + b % 64 / 16) * 16 + b % 16);
}

// qkv: q, k, v rows; gate_up: row 2 j is gate j, row 2 j + 1 is up j.
enum DecodeMatrixName : int { kQkv, kOut, kGateUp, kDown, kHead, kDecodeMatrices };

struct DecodeModel {  // device memory
    const std::uint8_t* weights = nullptr;
    const float *scales = nullptr,
                *gains = nullptr;  // scale_inv of each row; norm1, norm2 of each layer, norm
    std::size_t layer_bytes = 0;
    int layer_scales = 0;
    DecodeMatrix
        matrix[kDecodeMatrices];  // the head's `at` and `scales_at` are counted from behind the layers
    int layers = 0, batch = 0, d = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, capacity = 0;
    bool head = false;
    DecodeInputs inputs = DecodeInputs::bf16;
    const std::int32_t* length = nullptr;        // positions in the cache; this token's is the next one
    const float *cos = nullptr, *sin = nullptr;  // (capacity, head_size / 2)
    void *k = nullptr, *v = nullptr;             // (layers, batch, kv_heads, capacity, head_size)
    const float *k_scales = nullptr,
                *v_scales = nullptr;  // (layers, kv_heads): scale_inv of the cache; 1 in BF16
    float* stream = nullptr;          // (batch, d): the embedding, then the result
    float* qkv = nullptr;             // (batch, rows of qkv)
    // (batch, heads * head_size), (batch, ffn): room for FP32; in BF16 where inputs are (inputs.cuh).
    float *attended = nullptr, *hidden = nullptr;
    float* logits = nullptr;                               // (batch, rows of the head)
    float* partials = nullptr;                             // of attention: decode_partials()
    std::uint32_t *arrived = nullptr, *barrier = nullptr;  // (batch * heads), (2): zeros
    std::uint32_t* amaxes = nullptr;                       // (2, 8): zeros
};
// How shared memory is used: what a block knows, scales, this block's part of the residual stream, then x and the sums of products by part. Set by
// plan_decode().
struct DecodePlan {
    int blocks = 0;  // of threads
    int scales_bytes = 0, own_bytes = 0, bytes = 0;
    bool keeps_rows = false;  // of the stream, in FP32, while its norm is computed
};

struct DecodeDevice {  // multiprocessors() and shared_memory() of device.h
    int multiprocessors = 0, shared = 0;
};

// Floats of DecodeModel::partials.
std::size_t decode_partials(const DecodeModel& model, int blocks);
// Fills in tiles, blocks and shares of the matrices, whose rows and cols are set, `at`, `scales_at`, `layer_bytes` and
// `layer_scales`. Throws usage_error where a row is not a multiple of 16 bytes, a head is wider than kMostDecodeHead or not a
// multiple of 8, or where shared memory is too small.
DecodePlan plan_decode(DecodeModel& model, DecodeWeights weights, const DecodeDevice& device);
// One launch. The cache has room for *length + 1 positions.
void decode(const DecodeModel& model, const DecodePlan& plan, DecodeWeights weights, DecodeCache cache,
            cudaStream_t stream);

}  // namespace fp8lab::cuda
