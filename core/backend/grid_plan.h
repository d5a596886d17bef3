// What `bench gemm --grid` measures, in its order: the most wanted first, so that the time limit cuts the
// least important. Pure data; kernels/bench/grid.cpp measures it.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

struct GridOptions {
    double seconds = 300;  // nothing new is begun after that; what is missing is listed in `skipped`
    int repeats = 40;      // samples; three fifths of it for products above 8 ms
};
// Called between measurements with what comes next and the share that is done, 0 to 1. Returns false to stop:
// what was measured is kept.
using GridProgress = std::function<bool(const std::string& what, double done)>;

inline constexpr std::array<std::string_view, 3> kGridProducts = {"fprop", "dgrad", "wgrad"};
inline constexpr std::array<std::string_view, 5> kGridKinds = {"bf16", "tensor-fast", "tensor", "row",
                                                               "block128"};
// Where not every kind is measured.
inline constexpr std::array<std::string_view, 2> kGridTwoKinds = {"bf16", "fp8"};
// The kinds of the ceilings, beside the copy.
inline constexpr std::array<std::string_view, 3> kGridCeilings = {"bf16", "tensor-fast", "tensor"};
// The recipes whose casts are measured: RecipeList::gemm_grid, delayed current rowwise block128.
const std::vector<std::string_view>& grid_recipes();

struct GridLayer {  // x (m, k), w (n, k)
    int m = 0, n = 0, k = 0;
    bool operator==(const GridLayer&) const = default;
};
// The layers: M = 2^4 ... 2^15 for six (N, K), M N K <= 2^43.
std::vector<GridLayer> grid_layers();

struct GridTensor {
    std::string_view what;  // "x", "w" or "dy"
    int rows = 0, cols = 0;
    bool operator==(const GridTensor&) const = default;
};
// The tensors of all layers, each once: the w of a layer is the same at every M.
std::vector<GridTensor> grid_tensors();

// The products 4096^3 with M, N or K one more and one less, then those that they are padded to (multiples of 16).
std::vector<GridLayer> grid_alignments();

struct GridFused {
    int d = 0, m = 0;
};
std::vector<GridFused> grid_qkv();
inline constexpr std::array kGridFormatSizes = {1024, 2048, 4096, 8192};
inline constexpr std::array<std::string_view, 9> kGridFormats = {
    "fp32", "tf32", "fp16", "bf16", "fp8-fast", "fp8", "fp8-16f", "mxfp8", "nvfp4"};
inline constexpr std::array kGridGroups = {1, 4, 16, 64};
inline constexpr int kGridGroupRows = 8192, kGridGroupWidth = 4096;  // rows of all groups; N and K

// The next multiple of 16, which FP8 needs.
constexpr int padded_to_16(int v) { return (v + 15) / 16 * 16; }

// The number of samples of work that takes `ms`, and of launches in one sample, which lasts at least 0.2 ms.
int grid_samples(int repeats, double ms);
int grid_launches(double ms);

}  // namespace fp8lab
