// The times of a source for one layer: products, roofs, the sweep over M, one step, and what else the
// recording has. Times in ms; NaN where nothing was measured.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "labs/speed/model_source.h"

namespace fp8lab::speed {

// How many times as fast as BF16. The quartiles of a ratio are those of its two times, crossed:
// bf16.q1 / fp8.q3 and bf16.q3 / fp8.q1.
struct Ratio {
    double value, q1, q3;
};
Ratio ratio_of(const GridTime& bf16, const GridTime& fp8, double fp8_more_ms = 0, double more_q1_ms = 0,
               double more_q3_ms = 0);

double iqr_pct(const GridTime& time);       // of the median; NaN where it did not run
inline constexpr double kNoisyPct = 10;     // from here on a ratio is called noisy
inline constexpr double kLaunchMs = 0.015;  // below it a product is mostly its launch

// FLOP per byte with every operand counted once (compulsory traffic): 2MNK / (e_A |A| + e_B |B| + e_D |D| +
// 4 x number of scales). e = 2 bytes in BF16, 1 in FP8; the result has `out_bytes`.
double intensity(std::string_view product, const Layer& layer, bool fp8, std::string_view recipe,
                 int out_bytes);

// One product of a layer in both formats.
struct Product {
    std::string name;
    Layer layer, fp8_layer;      // fp8_layer: padded, where that is on
    std::array<int, 3> shape{};  // rows, columns, contraction
    int groups = 1;
    std::optional<GridPoint> bf16, fp8;
    double ai_bf16 = 0, ai_fp8 = 0;

    bool ran(bool fp8) const;
    double ms(bool fp8) const;
    double tflops(bool fp8) const;
    double ai(bool of_fp8) const { return of_fp8 ? ai_fp8 : ai_bf16; }
    Ratio ratio() const;
    int status() const { return fp8 ? fp8->status : 0; }
};

struct SweepPoint {
    int m = 0;
    double bf16_ms = 0;
    Ratio alone, with_casts;
};
struct Sweep {
    std::vector<SweepPoint> points;  // by M
    // The smallest M from which on FP8 with its casts is never slower than BF16; the smallest at which it is 1.5
    // times as fast. NaN where there is none.
    double crossover_m = 0, m_at_1_5 = 0;
};

// Parts of a step of the network K-N-K, in ms.
struct StepBar {
    std::string recipe;
    double median_ms = 0, q1_ms = 0, q3_ms = 0;
    double gemm = 0, casts = 0, optimizer = 0, rest = 0;  // rest: bookkeeping and gaps
    double sum() const { return gemm + casts + optimizer + rest; }
};
// One step in BF16 and in the recipe, and the speed-up by Amdahl's law (1967):
// f = GEMM_bf16 / step_bf16, r = GEMM_bf16 / GEMM_fp8, speed-up 1 / (1 - f + f / r), at best 1 / (1 - f).
struct StepOutcome {
    const RecordedStep* found = nullptr;    // of this layer; null: there is none
    const RecordedStep* nearest = nullptr;  // then another one of this recipe; null: none at all
    StepBar bf16, fp8;
    bool applies = false;        // the parts of both bars add up to 0.9 to 1.15 of their medians
    double parts_over_step = 0;  // of the bar that is farther from 1
    double speedup = 0, speedup_q1 = 0, speedup_q3 = 0;
    double share = 0, ratio = 0;                                      // f and r
    double amdahl = 0, amdahl_casts = 0, error_pct = 0, ceiling = 0;  // error: prediction / measurement - 1
};

struct QkvPoint {
    int m = 0;
    double bf16_gain_pct = 0, fp8_gain_pct = 0;  // three products' time / that of the one of 3d, minus 1
};
// A cell of the table of refusals: a product of 4096^3 with one of M, N and K one more.
struct AlignCell {
    std::string product;
    char dimension = 'M';
    std::optional<GridPoint> fp8;
    bool refused() const { return fp8 && fp8->status != 0; }
};
struct FormatRow {
    std::string kind, label;
    std::optional<GridFormat> time;  // empty: not recorded
    // What chapter 19 of a course prints for this format at 4096^3; 0: nothing.
    double printed_tflops = 0, printed_mb = 0;
};

struct Outcome {
    Params params;
    bool recorded = false;
    std::string gpu, date;  // empty: no times at all
    std::array<Product, 3> products;
    Product notebook, middle;  // fprop of kNotebook and kMiddle
    // The next token of one sequence, with weights in BF16 and in E4M3 (inputs and cache in BF16); null: not recorded.
    const RecordedInfer *token_bf16 = nullptr, *token_fp8 = nullptr;
    Roofs roofs, over_roofs;
    const Datasheet* sheet = nullptr;
    std::vector<int> all_m;                       // with times, at this N and K
    std::vector<std::pair<int, int>> all_layers;  // (N, K)
    std::optional<GridCast> x, w;
    Ratio with_casts{};  // of fprop
    Sweep sweep, over_sweep;
    std::string over_gpu;
    StepOutcome step;
    std::vector<QkvPoint> qkv;     // by M, d = K
    std::vector<AlignCell> align;  // nine, rows of kProducts, columns M N K; empty: not recorded
    std::vector<FormatRow> formats;
    double zeros_gain_pct = 0;  // BF16 at 8192^3: zeros against random numbers
    double drift_pct = 0;
    double cast_ms() const;    // of what `casts` counts
    double waste_pct() const;  // what padding adds to M N K
    int refused() const;       // of the three products
    bool any_time() const;     // of the three products
};

// FLOP per byte of what has to be read, and TFLOP/s.
inline double intensity_of(const RecordedInfer& run) {
    return token_flop(run.of) / (weight_bytes(run.of) + cache_bytes(run.of));
}
inline double tflops_of(const RecordedInfer& run) { return token_flop(run.of) / run.median_ms / 1e9; }
const RecordedInfer* token_of(const Source& source, ServedWeights weights);

// `over`: an empty source where nothing is laid over.
Outcome outcome_of(const Params& params, const Source& source, const Source& over);

}  // namespace fp8lab::speed
