// One arm of a comparison: a model under one recipe with its own optimiser state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/nn/loss.h"
#include "core/nn/model.h"
#include "core/nn/optimizer.h"
#include "core/nn/recipe_casts.h"
#include "core/nn/streams.h"
#include "core/nn/tasks.h"
#include "core/scaling/moment_storage.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/gradient_sum.h"
#include "core/trainer/loss_scaler.h"
#include "core/trainer/micro_batches.h"

namespace fp8lab {

class Arm {
  public:
    Arm(const TrainSpec& spec, const Recipe& recipe);

    // A step has two halves. The first, forward, loss and backward, takes nearly all of its time and changes nothing
    // that lasts, so that it may be given up (core/threads/ask.h) and done again.
    // Several micro-batches: loss, accuracy and gradients are their weighted means.
    void compute_gradients(std::span<const MicroBatch> parts, int step, std::optional<TensorId> watched);
    // The second is done to its end. An arm whose loss or weights become non-finite stops; its last record has loss
    // NaN.
    void update(int step, double lr);
    const std::optional<NonFinite>& stopped() const { return stopped_; }

    RecipeCasts& casts() { return casts_; }
    void set_recipe(const Recipe& recipe);
    void align_channel(int token) { model_->align_channel(token); }
    // Computes held-out loss and a sample, if the task has them. It may be given up too; keep() makes it the newest.
    std::optional<Evaluation> evaluate(const Task& task, int steps_done);
    void keep(std::optional<Evaluation> evaluation) {
        if (evaluation) evaluation_ = std::move(evaluation);
    }

    ArmSnapshot take();  // records since the last take(); for spiral also the decision grid

    ArmCheckpoint checkpoint() const;
    // Restores weights, moments and, where both have them, delayed scales. The shapes are those of this spec.
    void restore(const ArmCheckpoint& checkpoint);

  private:
    // `updates` before this one, which AdamW counts; less than `step` where steps were skipped.
    bool apply_update(int updates, int step, double lr);
    void store_moments(const OptimizerStep& how, int step);  // rounds what the recipe keeps in fewer bits
    // Of one micro-batch; adds its share to `loss_`. Returns false where its loss is not finite.
    bool compute_part(const MicroBatch& part, double share);
    std::vector<std::span<float>> gradients() const;
    bool stores_fp32() const { return casts_.recipe().master == MasterWeights::fp32; }
    // Of the E4M3 grids of the present weights, one per GEMM weight; empty: they have none.
    std::vector<float> scales_for_weights() const;
    void use_storage_scales(std::vector<float> scales);  // and rounds the weights; empty: no grid
    void store_weights(Rounding rounding, int step);  // to their E4M3 grid or to BF16, if the recipe says so
    // The random numbers with which what is kept of a weight is rounded: 0: to its grid, 1: m, 2: v, 3: to BF16.
    std::uint64_t update_stream(std::size_t parameter, int step, unsigned what) const {
        return stream(Draw::update, plan().ordinal(*plan().parameters[parameter].operand), step, what);
    }
    std::string first_nonfinite(bool loss_is_finite) const;
    const ModelPlan& plan() const { return model_->plan(); }
    std::span<float> value(std::size_t parameter) const { return model_->parameters()[parameter].value; }

    const TrainSpec& spec_;
    std::unique_ptr<Model<float>> model_;
    RecipeCasts casts_;
    std::vector<Moments> moments_;       // one per parameter
    std::vector<std::size_t> weights_;   // the parameters that a GEMM reads
    std::vector<float> storage_scales_;  // one per weight, with master=none only: their E4M3 grid
    Matrix<float> dy_;
    LossScaler scaler_;
    GradientSum sum_;                                // with several micro-batches
    LossValue loss_;                                 // of the first half
    double v_zero_pct_ = 0, large_updates_ppm_ = 0;  // StepRecord: of the newest update
    double gradients_ms_ = 0;
    std::vector<StepRecord> records_;
    std::optional<NonFinite> stopped_;
    std::optional<TensorView> watched_;
    std::optional<Evaluation> evaluation_;
};

}  // namespace fp8lab
