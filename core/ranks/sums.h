// The sums of a data-parallel training: element by element over arrays of N ranks, rounded where a real sum rounds. They
// are defined to the bit, so that ranks on a GPU can be compared with ranks on the CPU.
//
// Ring (NCCL's ring reduce-scatter; Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009): element i of n belongs to chunk floor(i N / n). The sum of chunk c starts with the value of rank
// c + 1 and goes round, c + 2, ..., N - 1, 0, ..., to rank c, which keeps it: N - 1 additions, one after the other.
// Tree: neighbours are added, 0 + 1, 2 + 3, ..., then the sums of two, 0 + 2, 4 + 6, ..., and so on; a rank without a
// partner is added in a later round.
// Wire: every rank's value is cast once; who keeps a chunk adds them in FP32, rank 0 first (a quantised all-to-all).
//
// An addition of a ring or a tree is rounded as NCCL's src/device/reduce_kernel.h does: fp32(a + b), bf16(a + b), and of
// 8 bits f8(half(a + b)), where f8 saturates and half overflows to Inf. All rounding is to nearest, ties to even. One rank:
// its values, cast.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/formats/format.h"

namespace fp8lab {

enum class Hops { ring, tree, wire };

// A row of the table of sums: what --sum names.
struct RankSum {
    std::string_view id;      // "e4m3-wire"
    std::string_view label;   // "E4M3 sent, FP32 sum", in menus
    std::string_view format;  // of what a rank sends: fp32, bf16, e4m3, e5m2
    Hops hops = Hops::ring;

    const FormatInfo& sent() const { return find_format(format); }
    // The format of the sum itself: FP32 of a wire, else that of what is sent.
    const FormatInfo& kept() const { return find_format(hops == Hops::wire ? "fp32" : format); }
    // Formats of 8 bits need one scale that all ranks share.
    bool is_scaled() const { return is_element(sent()); }
};

std::span<const RankSum> rank_sums();
// Throws usage_error(where, ...) with the ids that there are.
const RankSum& find_rank_sum(std::string_view id, std::string_view where = "--sum");

// What the values of all ranks are multiplied by before they are cast; `amax` is the largest |x| over the ranks. Ring and
// tree: max / (N amax), so that N equal addends fit; wire: max / amax. 1 where amax is 0 or not finite, and in formats of
// more than 8 bits.
float shared_scale(const RankSum& sum, float amax, int ranks);

// Casts what a rank sends: x * scale to sum.sent(), values as FP32. `in` and `out` may be the same memory.
void cast_to_send(const RankSum& sum, std::span<const float> in, float scale, std::span<float> out);

// The sum of arrays that cast_to_send() made, one per rank, all of one length; still multiplied by the scale. Throws
// usage_error when there is no rank, or lengths differ.
void add_ranks(const RankSum& sum, std::span<const std::span<const float>> ranks, std::span<float> out);

// All of it: casts the values of each rank with the shared scale of their amax, adds them, divides by the scale.
void sum_over_ranks(const RankSum& sum, std::span<const std::span<const float>> ranks, std::span<float> out);

// The distance of values from the truth; add() counts one element.
struct Distance {
    double error = 0, size = 0, along = 0;  // sums of (x - t)^2, t^2, x t
    void add(double value, double truth) {
        error += (value - truth) * (value - truth);
        size += truth * truth;
        along += value * truth;
    }
    Distance& operator+=(const Distance& other);
    // ||x - t|| / ||t|| and the projection of x on t, both per cent. NaN where t is 0.
    double error_pct() const;
    double kept_pct() const;
};
// Of `sum` from the sum of the ranks' values in float64, rank 0 first.
Distance distance_of_sum(std::span<const float> sum, std::span<const std::span<const float>> ranks);

}  // namespace fp8lab
