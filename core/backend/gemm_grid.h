// What `bench gemm --grid` measures of one GPU: products of linear layers over M, N and K in BF16 and FP8, the
// casts before them, and what cuBLASLt refuses. It is one result of a recording (recording.h), and what lab L9
// reads.
//
// A layer is x (m, k), w (n, k), dy (m, n): m = batch x sequence, n = out_features, k = in_features. m, n and k
// in everything below are the layer's. Its products, contraction last:
//   fprop  m x n x k  to BF16        dgrad  m x k x n  to BF16        wgrad  n x k x m  to FP32
// Kinds of a product; operands are in memory in their type already, FP8 transposed where cuBLASLt wants it:
//   bf16         all operands BF16
//   tensor-fast  x and w E4M3, dy E5M2, one scale per tensor, fast accumulation
//   tensor       the same with promoted accumulation
//   row          one scale per row and column; fast accumulation in fprop only, as in recipe rowwise
//   block128     E4M3 throughout, 1x128 scales and 128x128 of w
// fp8 (where not every kind is measured): tensor-fast in fprop, tensor in dgrad and wgrad.
// Times are medians over samples of at least 0.2 ms on random data, which alternate with the other kinds of the same
// product. Operands that fit in the cache are in the cache.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8lab {

class JsonMember;

// The time of one launch, or why there is none.
struct GridTime {
    double median_ms = 0, q1_ms = 0, q3_ms = 0;  // q: quartiles; all 0 where it did not run
    int repeats = 0;                             // samples
    double graph_ms =
        0;               // median inside a CUDA graph; 0: not measured (large products, where it is the same)
    int status = 0;      // cuBLASLt's; 0: it ran
    std::string from;    // what refused: "heuristic" or "matmul"; empty where it ran
    std::string words;   // the refusal: "CUBLAS_STATUS_NOT_SUPPORTED (15)"
    std::string kernel;  // the name that a profiler shows, at most kLongestKernel bytes; empty: not known
    bool ran() const { return status == 0 && median_ms > 0; }
};
inline constexpr std::size_t kLongestKernel = 80;

struct GridPoint : GridTime {
    std::string product, kind, out;  // out: "bf16" or "f32"
    int m = 0, n = 0, k = 0;
    double flop() const { return 2.0 * m * n * k; }
    double tflops() const { return median_ms > 0 ? flop() / median_ms / 1e9 : 0; }
};
// A cast from BF16 to FP8, contiguous rows only. both_ms: with the transposed copy as well.
struct GridCast : GridTime {
    std::string what, recipe;  // "x" "w" "dy"; "delayed" "current" "rowwise" "block128"
    int rows = 0, cols = 0;
    double bytes = 0;  // read and written, of rows only
    double both_ms = 0;
};
// A product whose m, n or k is one off 4096, or what it is padded to. kind: bf16 or fp8.
struct GridAlign : GridPoint {};
// x (m, d) times three weights (d, d), and times the one of (3d, d): fprop.
struct GridQkv {
    int d = 0, m = 0;
    std::string kind;  // bf16 or fp8
    GridTime three, one;
};
// n x n x n in: fp32 tf32 fp16 bf16 fp8-fast fp8 fp8-16f (16-bit accumulation) mxfp8 nvfp4
struct GridFormat : GridTime {
    std::string kind;
    int n = 0;
    double bytes = 0;  // of A, B and D in memory, with their scales
    double tflops() const { return median_ms > 0 ? 2.0 * n * n * n / median_ms / 1e9 : 0; }
};
// A product n x n x n with operands that are 0, alternating with random operands.
struct GridZeros : GridTime {
    std::string kind;  // bf16 or fp8
    int n = 0;
    double random_ms = 0;
};
// Copies between pinned host memory and the GPU. both: up and down at the same time, until the later one is done.
struct GridHostCopy {
    double bytes = 0;                            // of one direction
    double up_ms = 0, down_ms = 0, both_ms = 0;  // 0: not measured
};
// `groups` products in one call, m rows in each (a strided batch). kind: bf16 or fp8.
struct GridGroup : GridPoint {
    int groups = 1;
};

struct GridRoof {
    double tflops = 0;
    std::string product;  // which point it is
    int m = 0, n = 0, k = 0;
};
struct GridRoofs {
    double memory_tb_s = 0;  // copy of 1 GiB, read and written bytes
    GridRoof bf16, fp8;      // the fastest of the whole grid
};
inline constexpr int kCeilingSize = 8192;
inline constexpr double kCopyMovedBytes = 2.0 * (1 << 30);
// A ceiling, the copy or 8192^3, measured once at the start and once at the end. what: "copy" or a kind.
struct GridCeiling : GridTime {
    std::string what, when;  // when: "start" or "end"
};
// What the GPU's sensors said during the grid; 0: it has none that can be read.
struct GridClocks {
    double sm_mhz_low = 0, sm_mhz_median = 0, sm_mhz_high = 0, memory_mhz = 0;
    double power_w = 0, power_limit_w = 0, hottest_c = 0;  // power: the median
    std::string slowed_by;                                 // "power cap, heat"; empty: nothing
};
struct GridSkipped {
    std::string what, why;  // "points 32768x8192, M=32768"; "the time limit of 180 s"
};

struct GemmGrid {
    std::string device, cublaslt, date, command;
    std::vector<std::pair<std::string, std::string>> facts;  // as DeviceInfo has them
    double seconds = 0;                                      // what it took
    double drift_pct = 0;  // the ceiling that changed most from start to end, signed
    std::vector<GridSkipped> skipped;
    GridClocks clocks;
    GridRoofs roofs;
    std::vector<GridCeiling> ceilings;
    std::vector<GridPoint> points;
    std::vector<GridCast> casts;
    std::vector<GridAlign> align;
    std::vector<GridQkv> qkv;
    std::vector<GridFormat> formats;
    std::vector<GridZeros> zeros;
    GridHostCopy host_copy;
    std::vector<GridGroup> groups;

    // The product, or null where it was not measured.
    const GridPoint* point(std::string_view product, int m, int n, int k, std::string_view kind) const;
    const GridAlign* aligned(std::string_view product, int m, int n, int k, std::string_view kind) const;
    // The cast of the tensor `what` of that layer; null where it was not measured.
    const GridCast* cast(std::string_view what, std::string_view recipe, int m, int n, int k) const;
    std::vector<int> recorded_m(int n, int k) const;           // ascending
    std::vector<std::pair<int, int>> recorded_layers() const;  // (n, k), in the order of the grid
};

// The fastest products of `grid`, and its memory ceiling.
GridRoofs roofs_of(const GemmGrid& grid);

// The JSON of the result, one line per element, numbers with 4 significant digits. gemm_grid_of() throws input_error
// with the path of the member ("results[3].points[7].median_ms"): it is missing or of the wrong type, names an
// unknown product, kind or recipe, or is a time of 0.
std::string gemm_grid_json(const GemmGrid& grid, std::string_view header = "");
GemmGrid gemm_grid_of(const JsonMember& result);

}  // namespace fp8lab
