// A grid of products whose times follow a formula, in place of a recording: for tests of L9's arithmetic only. A
// product takes max(FLOP / 700 or 1300 TFLOP/s, bytes / 4.3 TB/s) + 6 us, a cast 3 or 5 bytes an element at
// 3.11 TB/s + 2.5 us; quartiles are 1 % below and above.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/gemm_grid.h"
#include "core/backend/recording.h"

namespace fp8lab::test {

struct SyntheticGpu {
    double bf16_tflops = 700, fp8_tflops = 1300, memory_tb_s = 4.3;
    double launch_ms = 0.006, cast_launch_ms = 0.0025, cast_tb_s = 3.11, spread = 0.01;

    GridTime timed(double ms) const {
        return {.median_ms = ms,
                .q1_ms = ms * (1 - spread),
                .q3_ms = ms * (1 + spread),
                .repeats = 20,
                .graph_ms = 0,
                .status = 0,
                .from = "",
                .words = "",
                .kernel = "synthetic"};
    }
    double product_ms(double rows, double columns, double contraction, bool fp8, double out_bytes) const {
        const double flop = 2 * rows * columns * contraction;
        const double bytes = (fp8 ? 1 : 2) * (rows + columns) * contraction + out_bytes * rows * columns;
        return 1000 *
                   std::max(flop / ((fp8 ? fp8_tflops : bf16_tflops) * 1e12), bytes / (memory_tb_s * 1e12)) +
               launch_ms;
    }
};

// Rows, columns and contraction of a layer's product.
inline std::array<int, 3> synthetic_shape(const std::string& product, int m, int n, int k) {
    if (product == "fprop") return {m, n, k};
    if (product == "dgrad") return {m, k, n};
    return {n, k, m};
}

inline GridPoint synthetic_point(const SyntheticGpu& gpu, const std::string& product, int m, int n, int k,
                                 const std::string& kind) {
    const auto [rows, columns, contraction] = synthetic_shape(product, m, n, k);
    const bool fp8 = kind != "bf16";
    GridPoint out;
    out.product = product, out.kind = kind, out.out = product == "wgrad" ? "f32" : "bf16";
    out.m = m, out.n = n, out.k = k;
    const int e = out.out == "f32" ? 4 : 2;
    // The rule of cuBLASLt's manual, so that some of the odd sizes are refused.
    if (fp8 && (contraction % 16 != 0 || columns * e % 16 != 0)) {
        out.status = 15, out.from = "heuristic", out.words = "CUBLAS_STATUS_NOT_SUPPORTED (15)";
        return out;
    }
    static_cast<GridTime&>(out) = gpu.timed(gpu.product_ms(rows, columns, contraction, fp8, e));
    return out;
}

inline GemmGrid synthetic_grid(const SyntheticGpu& gpu = {}) {
    GemmGrid grid;
    grid.device = "Synthetic GPU", grid.cublaslt = "13.1.0", grid.date = "2026-11-22", grid.command = "none";
    grid.facts = {{"GPU", "Synthetic GPU"}};
    grid.seconds = 1;
    const std::array<std::string, 3> products = {"fprop", "dgrad", "wgrad"};
    const std::array<std::pair<int, int>, 6> layers = {
        {{16384, 4096}, {3072, 768}, {4096, 1024}, {8192, 2048}, {4096, 4096}, {32768, 8192}}};
    for (const auto& [n, k] : layers)
        for (int m = 16; m <= 32768; m *= 2) {
            if (double(m) * n * k > 0x1p43) continue;
            for (const std::string& product : products)
                for (const char* kind : {"bf16", "tensor-fast", "tensor", "row", "block128"})
                    grid.points.push_back(synthetic_point(gpu, product, m, n, k, kind));
            for (const char* recipe : {"delayed", "current", "rowwise", "block128"})
                for (const char* what : {"x", "w", "dy"}) {
                    GridCast cast;
                    cast.what = what, cast.recipe = recipe;
                    cast.rows = *what == 'w' ? n : m, cast.cols = *what == 'd' ? n : k;
                    const bool twice = recipe[0] == 'c' || recipe[0] == 'r';
                    cast.bytes = (twice ? 5.0 : 3.0) * cast.rows * cast.cols;
                    static_cast<GridTime&>(cast) =
                        gpu.timed(cast.bytes / (gpu.cast_tb_s * 1e9) + gpu.cast_launch_ms);
                    cast.both_ms = 1.3 * cast.median_ms;
                    const bool known = std::ranges::any_of(grid.casts, [&](const GridCast& one) {
                        return one.what == cast.what && one.recipe == cast.recipe && one.rows == cast.rows &&
                               one.cols == cast.cols;
                    });
                    if (!known) grid.casts.push_back(cast);
                }
        }
    for (const int delta : {-1, 1})
        for (int which = 0; which < 3; ++which)
            for (const std::string& product : products)
                for (const char* kind : {"bf16", "fp8"}) {
                    std::array<int, 3> size = {4096, 4096, 4096}, wide = size;
                    size.at(static_cast<std::size_t>(which)) += delta;
                    wide.at(static_cast<std::size_t>(which)) = delta > 0 ? 4112 : 4096;
                    for (const auto& [m, n, k] : {size, wide}) {
                        GridAlign row;
                        static_cast<GridPoint&>(row) = synthetic_point(gpu, product, m, n, k, kind);
                        grid.align.push_back(row);
                    }
                }
    for (const int d : {1024, 2048, 4096, 8192})
        for (const int m : {128, 512, 2048, 8192})
            for (const char* kind : {"bf16", "fp8"}) {
                const bool fp8 = kind[0] == 'f';
                grid.qkv.push_back({d, m, kind, gpu.timed(3 * gpu.product_ms(m, d, d, fp8, 2)),
                                    gpu.timed(gpu.product_ms(m, 3 * d, d, fp8, 2))});
            }
    for (const int n : {1024, 2048, 4096, 8192})
        for (const auto& [kind, tflops, bytes] :
             std::vector<std::tuple<const char*, double, double>>{{"fp32", 50, 12},
                                                                  {"tf32", 400, 12},
                                                                  {"fp16", gpu.bf16_tflops, 6},
                                                                  {"bf16", gpu.bf16_tflops, 6},
                                                                  {"fp8-fast", gpu.fp8_tflops, 4},
                                                                  {"fp8", 0.9 * gpu.fp8_tflops, 4},
                                                                  {"fp8-16f", 0, 4},
                                                                  {"mxfp8", 0, 4.0625},
                                                                  {"nvfp4", 0, 3.125}}) {
            GridFormat row;
            row.kind = kind, row.n = n, row.bytes = bytes * n * n;
            if (tflops > 0)
                static_cast<GridTime&>(row) = gpu.timed(2.0 * n * n * n / tflops / 1e9 + gpu.launch_ms);
            else
                row.status = 15, row.from = "heuristic", row.words = "CUBLAS_STATUS_NOT_SUPPORTED (15)";
            grid.formats.push_back(row);
        }
    for (const char* kind : {"bf16", "fp8"}) {
        GridZeros row;
        row.kind = kind, row.n = 8192;
        row.random_ms = gpu.product_ms(8192, 8192, 8192, kind[0] == 'f', 2);
        static_cast<GridTime&>(row) = gpu.timed(0.85 * row.random_ms);
        grid.zeros.push_back(row);
        for (const int groups : {1, 4, 16, 64}) {
            GridGroup group;
            static_cast<GridPoint&>(group) = synthetic_point(gpu, "fprop", 8192 / groups, 4096, 4096, kind);
            group.groups = groups;
            static_cast<GridTime&>(group) =
                gpu.timed(groups * (group.median_ms - gpu.launch_ms) + gpu.launch_ms);
            grid.groups.push_back(group);
        }
    }
    for (const char* when : {"start", "end"}) {
        GridCeiling copy;
        static_cast<GridTime&>(copy) = gpu.timed(2 * 1.0737 / gpu.memory_tb_s);
        copy.what = "copy", copy.when = when;
        grid.ceilings.push_back(copy);
        for (const char* kind : {"bf16", "tensor-fast", "tensor"}) {
            GridCeiling product;
            static_cast<GridTime&>(product) = gpu.timed(gpu.product_ms(8192, 8192, 8192, kind[0] == 't', 2));
            product.what = kind, product.when = when;
            grid.ceilings.push_back(product);
        }
    }
    grid.host_copy = {1 << 30, 20, 20, 30};
    grid.roofs = roofs_of(grid);
    return grid;
}

// A step whose parts are known: the optimiser and the rest take the same in both arms.
inline RecordedStep synthetic_step(int k, int n, int m, double gemm_bf16 = 8, double gemm_fp8 = 4,
                                   double casts_bf16 = 0.5, double casts_fp8 = 0.5) {
    const auto arm = [](const char* recipe, double gemm, double casts) {
        RecordedArm out;
        out.recipe = recipe;
        out.median_ms = gemm + casts + 1.5;
        out.q1_ms = 0.99 * out.median_ms, out.q3_ms = 1.01 * out.median_ms;
        out.iqr_ms = out.q3_ms - out.q1_ms, out.tflops = 100;
        out.parts_ms = {
            {"GEMM", gemm}, {"casts", casts}, {"optimiser", 1.0}, {"bookkeeping", 0.1}, {"gaps", 0.4}};
        return out;
    };
    RecordedStep step;
    step.layers = {k, n, k}, step.batch = m;
    step.arms = {arm("bf16", gemm_bf16, casts_bf16), arm("delayed", gemm_fp8, casts_fp8)};
    return step;
}

inline Recording synthetic_recording(const std::string& id = "synthetic", const SyntheticGpu& gpu = {}) {
    Recording out;
    out.id = id, out.gpu = "Synthetic GPU " + id, out.driver = "1.2", out.cuda = "13.0",
    out.date = "2026-11-22", out.command = "none";
    out.steps = {synthetic_step(4096, 16384, 8192)};
    out.grid = synthetic_grid(gpu);
    return out;
}

}  // namespace fp8lab::test
