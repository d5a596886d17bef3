// The parameters of a transformer on the device, in the order of ModelPlan::parameters.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/model_plan.h"
#include "core/trainer/checkpoint.h"
#include "kernels/arm/arm_buffers.h"
#include "kernels/arm/shared_weight.h"
#include "kernels/optimizer/parameters.h"
#include "kernels/ranks/place.h"

namespace fp8lab::cuda {

struct MatrixParameter {
    std::string name;
    Shape shape;
    Parameters master, m, v, gradient;
    std::size_t partials_at = 0;  // of the sums of squares of its gradient
    bool in_bucket = false;       // of several ranks: its gradient is in the bucket
    Memory sent_gradient;         // of several ranks, where the gradient is not in the format of their sum
    std::optional<WeightBlock> block;  // master, m and v are of this block
    const WeightBlock* own() const { return block ? &*block : nullptr; }
};

struct VectorParameter {  // a gain
    std::string name;
    int count = 0;
    Buffer<float> value, m, v, gradient, before, partials;
    std::size_t partials_at = 0;
    float* summed = nullptr;  // of several ranks: the place of its gradient in the bucket
};

// What the update reads: of one rank, or summed over the ranks.
inline const float* summed_gradient(const VectorParameter& p) {
    return p.summed ? p.summed : p.gradient.get();
}

struct WeightTypes {  // of matrices that a GEMM reads
    Element kept = Element::f32, gradient = Element::f32, m = Element::f32, v = Element::f32;
};

class WeightList {
  public:
    // The block of a matrix that only GEMMs read, parameter `number`; none: each rank has all of it.
    using Blocks = std::function<std::optional<WeightBlock>(const ParameterSpec&, int number)>;
    // What a checkpoint has of such a matrix, of the part of all ranks or of this one; and back.
    using Whole = std::function<std::vector<float>(const Parameters&, const MatrixParameter&)>;
    using Part = std::function<std::vector<float>(const std::vector<float>&, const MatrixParameter&)>;

    WeightList() = default;
    WeightList(const ModelPlan& plan, const WeightTypes& types, const ArmBuffers& memory,
               const RankPlace& place, const Blocks& blocks);
    MatrixParameter& matrix(std::string_view name);
    VectorParameter& vector(std::string_view name);
    std::vector<MatrixParameter*> matrices();
    std::vector<VectorParameter*> vectors();
    // Partial sums of squares: those of all ranks' blocks, of so many for each rank, then the others.
    std::size_t partials_of_blocks() const { return partials_of_blocks_; }
    // The gradients of what is not read by GEMMs alone, in the order of the plan; of several ranks.
    const Memory& bucket() const { return bucket_; }

    std::vector<ParameterCheckpoint> read(const Whole& whole) const;
    void write(const std::vector<ParameterCheckpoint>& values, const Part& part);
    std::string nonfinite() const;  // matrices that a GEMM reads first; empty: none

  private:
    struct Entry {
        bool read_by_gemm = false;
        std::unique_ptr<MatrixParameter> matrix;
        std::unique_ptr<VectorParameter> vector;
    };
    Memory bucket_part(std::size_t count);
    void place_partials(const RankPlace& place);

    std::vector<Entry> entries_;
    Memory bucket_;
    std::size_t bucket_used_ = 0, partials_of_blocks_ = 0;
};

}  // namespace fp8lab::cuda
