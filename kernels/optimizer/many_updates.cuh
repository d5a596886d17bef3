// One launch that updates several matrices, or some of their tiles.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/optimizer/optimizer.cuh"

namespace fp8lab::cuda {

template <class T, int kRows>
struct StoredGradient {
    using Raw = Packed<T>;
    static constexpr int kAhead = kRows;
    const T* g;
    __device__ void prepare() {}
    __device__ Raw fetch(int r, int c, Shape s) const {
        return fetch8(g + static_cast<std::size_t>(r) * s.padded_cols + c);
    }
    __device__ void values(const Raw& raw, int, int, Eight& v) const { unpack(raw, v); }
};

// The most matrices that one launch updates; they are stored and cast alike.
constexpr int kMostUpdatesAtOnce = 8;
template <class Source>
struct ManyUpdates {
    Source source[kMostUpdatesAtOnce];
    Shape shape[kMostUpdatesAtOnce];
    TileTarget target[kMostUpdatesAtOnce];
    unsigned behind[kMostUpdatesAtOnce];  // tiles of all matrices up to this one
};
// What a launch does: some of the tiles of matrices, in at most `blocks` blocks; 0: one a tile.
struct Share {
    TileRange tiles;
    unsigned blocks;
};

template <class Source, class Out, Gather kGather>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<Source>)
    update_kernel(const __grid_constant__ ManyUpdates<Source> many, TileRange tiles) {
    __shared__ __align__(16) std::uint32_t transposed[kTransposedWords];
    wait_for_the_kernel_before();
    int at = 0;
    for (unsigned tile = tiles.first + blockIdx.x; tile < tiles.last; tile += gridDim.x) {
        while (tile >= many.behind[at]) ++at;
        const Shape s = many.shape[at];
        const auto across = static_cast<unsigned>(tiles_across(s));
        const unsigned place = tile - (at > 0 ? many.behind[at - 1] : 0);
        if (Out::kBytes == 1 && tile >= tiles.first + gridDim.x)
            __syncthreads();  // the tile before is stored
        cast_tile<Source, Out, kGather>(many.source[at], s, many.target[at],
                                        {place % across, place / across, across}, transposed);
    }
}

inline unsigned tiles_of(const WeightUpdate& update) {
    return static_cast<unsigned>(tiles_across(update.shape) * tiles_down(update.shape));
}

template <class Source, class Out, Gather kGather>
void launch_updates(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream) {
    ManyUpdates<Source> many{};
    unsigned tiles = 0;
    for (std::size_t i = 0; i < updates.size(); ++i) {
        const auto& [source, shape, target] = updates[i];
        many.source[i] = {source, {static_cast<decltype(Source::gradient.g)>(source.g)}};
        many.shape[i] = shape;
        many.target[i] = tile_target(target);
        many.behind[i] = tiles += tiles_of(updates[i]);
    }
    const unsigned count = share.tiles.last - share.tiles.first;
    const auto kernel = update_kernel<Source, Out, kGather>;
    if (share.blocks > 0)
        launch_beside("update of weights", kernel, dim3(std::min(share.blocks, count)), kThreads, stream,
                      many, share.tiles);
    else
        launch("update of weights", kernel, dim3(count), kThreads, stream, many, share.tiles);
}
template <class Source, class Out>
void launch_updates_to(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream) {
    if (updates.front().target.stats_partials)
        launch_updates<Source, Out, Gather::stats>(updates, share, stream);
    else
        launch_updates<Source, Out, Gather::plain>(updates, share, stream);
}

// Updates that round what they leave (Rounded::any()), all alike. Of moments in 8 bits whose groups run across rows: one, whole.
void update_rounded(std::span<const WeightUpdate> updates, const Share& share, cudaStream_t stream);
inline bool has_groups_across_rows(const WeightUpdate& update) {
    const Rounded& kept = update.source.rounded;
    return (bytes_of(kept.m.element) == 1 || bytes_of(kept.v.element) == 1) &&
           update.shape.cols % kTileCols != 0;
}

}  // namespace fp8lab::cuda
