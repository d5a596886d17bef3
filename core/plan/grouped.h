// Grouped GEMMs, as the experts of a layer are: the recorded times of a GPU (`groups` of core/backend/gemm_grid.h, N = K = 4096,
// 8,192 rows in all groups together), and a lower bound of each that is drawn beside it. The bound is no prediction: recorded
// times are 4 % below to 43 % above it.
//
//   bound = max(time of one group of all rows, bytes / B),  B = bytes / time of 64 groups, the mean of its six products
//   bytes of fprop and dgrad: both operands and a result in BF16; of wgrad: both operands and a result in FP32
#pragma once

#include <string_view>
#include <vector>

#include "core/backend/gemm_grid.h"

namespace fp8lab::plan {

struct GroupedTime {
    const GridGroup* recorded = nullptr;
    double bound_ms = 0;
    double off_pct() const { return 100 * (recorded->median_ms / bound_ms - 1); }  // the recorded time
};

class GroupedGemms {
  public:
    // Of a grid that outlives it. Throws usage_error: the grid has no groups, or not one and 64 of them.
    explicit GroupedGemms(const GemmGrid& grid);

    const std::vector<GroupedTime>& times() const { return times_; }
    // Null where it was not recorded. product: fprop, dgrad, wgrad; kind: bf16 or fp8.
    const GroupedTime* find(int groups, std::string_view product, std::string_view kind) const;
    std::vector<int> groups() const;  // that were recorded, ascending
    // The time in BF16 divided by that in FP8; NaN where one of them was not recorded.
    double speedup(int groups, std::string_view product) const;
    double tb_s() const { return tb_s_; }  // B
    // The rows of a group at which the two terms of the bound are equal: with fewer the GPU waits for memory.
    double ridge_rows(std::string_view product, std::string_view kind) const;

  private:
    std::vector<GroupedTime> times_;
    double tb_s_ = 0;
};

}  // namespace fp8lab::plan
