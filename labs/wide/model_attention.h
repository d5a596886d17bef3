// The probabilities of attention, cast four ways before they multiply the values: o = P v, P = exp(s - max) / Z.
//
// Scores s ~ N(0, sigma^2), 64 rows; with a sink the first score of a row is the row's max + sink. E = exp(s - max)
// in FP32, Z the sum of a row in FP32 (pairwise), P = E / Z. A cast is q = F(x S) / S to nearest even, saturating:
// of x = P with S = 1 ("norm1"), of x = E with S = 1, 256 or 448. FlashAttention-3 (arXiv 2407.08608)
// casts E with S = 256. A format whose smallest value is m gives 0 for x S <= m / 2, the tie included (numerics.md
// 1.3): E4M3 for s - max <= ln(2^-10 / S).
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab::wide {

inline constexpr int kRows = 64, kLeastKeys = 64, kMostKeys = 131'072;
inline constexpr int kMostOutputKeys = 8'192;  // with more keys the output is not computed
inline constexpr int kLowestBinade = -120;     // of p / max p; what lies lower is counted there

struct CastWay {
    std::string_view id, label, short_label;
    double scale;
    bool normalised;
};
inline constexpr std::array<CastWay, 4> kCasts = {{{"norm1", "P, normalised × 1", "normalised × 1", 1, true},
                                                   {"exp1", "exp(s − max) × 1", "exp(s − max) × 1", 1, false},
                                                   {"exp256", "exp(s − max) × 256", "× 256", 256, false},
                                                   {"exp448", "exp(s − max) × 448", "× 448", 448, false}}};
std::size_t cast_index(std::string_view id);  // of kCasts; 0 for another id

struct AttentionSpec {
    int keys = 8192;
    double sigma = 3, sink = 0;  // sink: natural logarithm, above the largest other score
    std::string format = "e4m3";
    bool sum_after = false;  // the row sum: of q instead of E
    int head = 64, seed = 2;
    bool operator==(const AttentionSpec&) const = default;
};

struct CastOutcome {                                              // NaN: not computed
    double zero_pct = std::numeric_limits<double>::quiet_NaN();   // of the keys
    double lost_pct = std::numeric_limits<double>::quiet_NaN();   // of the probability
    double output_db = std::numeric_limits<double>::quiet_NaN();  // SQNR of o over rows and head
};

struct Attention {
    AttentionSpec spec;
    std::array<CastOutcome, 4> casts = {};
    double log2_z = 0;         // mean over the rows
    double largest_pct = 0;    // what the largest key of a row holds, mean
    double sink_mass_pct = 0;  // what the first key holds, mean
    // Binades of p / max p: [0] is 2^kLowestBinade and below, the last but one [1/2, 1), the last the largest keys.
    std::vector<double> keys_pct, mass_pct;
    std::array<std::vector<double>, 4> lost_pct;  // of mass_pct: what the cast turns to 0

    double cut_log2(
        std::size_t cast) const;  // log2(p / max p) up to which the cast gives 0; of norm1 the mean
};

// What each cast loses at every power of two of keys.
struct SweepPoint {
    int keys = 0;
    std::array<double, 4> lost_pct = {};
};

// N(0, 1) of (seed, keys), 64 x keys: sigma only scales them. Those of one seed are kept: 64 MiB for all lengths.
class Normals {
  public:
    std::shared_ptr<const std::vector<float>> of(int seed, int keys);

  private:
    std::mutex mutex_;
    int seed_ = 0;
    std::vector<std::pair<int, std::shared_ptr<const std::vector<float>>>> kept_;
};

Attention attention_of(const AttentionSpec& spec, Normals& normals);
std::vector<SweepPoint> sweep_of(const AttentionSpec& spec,
                                 Normals& normals);  // 12 points, 64 to 131,072 keys

// The largest x S that becomes 0.
float zero_threshold(std::string_view format);

}  // namespace fp8lab::wide
