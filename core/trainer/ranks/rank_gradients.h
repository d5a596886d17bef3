// The mean of the gradients of all ranks.
#pragma once

#include <span>
#include <vector>

#include "core/nn/model_plan.h"
#include "core/nn/ranks/rank_options.h"
#include "core/ranks/collective.h"

namespace fp8lab {

// Defined to the bit, so that other implementations can be compared: a matrix that only GEMMs read is cast with
// shared_scale() of its amax over the ranks and summed by one reduce_scatter(), whose blocks are those of its owners (zero1) or
// ceil(n / ranks) elements (none), padded with zeros; all other parameters are one array in the order of the plan, padded to a
// multiple of the ranks, which is summed in FP32. The mean is (sum * (1 / scale)) / ranks, in FP32.
class RankGradients {
  public:
    RankGradients(const Ranks& ranks, const ModelPlan& plan);

    // gradients[r][p]: of rank r and parameter p; mean[p]. Both in the order of the plan.
    using Gradients = std::span<const std::span<const std::vector<float>>>;
    void reduce(Collective& collective, Gradients gradients, std::span<const std::span<float>> mean);
    // Of the newest sums of matrices from the sums of the same gradients in float64.
    const Distance& distance() const { return distance_; }

  private:
    std::vector<float> scales(Collective& collective, Gradients gradients) const;  // one per matrix
    void reduce_matrix(Collective& collective, Gradients gradients, std::size_t parameter, float scale,
                       std::span<float> mean);
    void reduce_others(Collective& collective, Gradients gradients, std::span<const std::span<float>> mean);
    // sent[r]: of each rank, ranks() blocks of n elements on the grid of the sum. Returns the sum, decoded.
    std::vector<float> sum_of(Collective& collective, const RankSum& sum,
                              const std::vector<std::vector<float>>& sent) const;

    const ModelPlan plan_;
    const Ranks ranks_;
    const RankSum& sum_;
    std::vector<std::size_t> matrices_, others_;  // parameters
    Distance distance_;
};

}  // namespace fp8lab
