// One arm of a comparison: a model under one recipe with its own optimiser state. With several ranks (rank_options.h) it computes
// them in turn, with one copy of the master weights and the moments.
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
#include "core/trainer/ranks/rank_gradients.h"
#include "core/trainer/ranks/rank_weights.h"
#include "core/trainer/teacher_network.h"

namespace fp8lab {

class Arm {
  public:
    Arm(const TrainSpec& spec, const Recipe& recipe);

    // A step has two halves. The first, forward, loss and backward, takes nearly all of its time and changes nothing
    // that lasts, so that it may be given up (core/threads/ask.h) and done again.
    // Several micro-batches: loss, accuracy and gradients are their weighted means. `parts`: those of rank 0, then of rank 1, ...
    void compute_gradients(std::span<const MicroBatch> parts, int step, std::optional<TensorId> watched);
    // The second is done to its end. An arm whose loss or weights become non-finite stops; its last record has loss
    // NaN.
    void update(int step, double lr);
    const std::optional<NonFinite>& stopped() const { return stopped_; }
    const Model<float>& model() const { return *model_; }

    // In every rank.
    template <class Change>
    void change_casts(const Change& change) {
        for (Rank& rank : ranks_) change(rank.casts);
    }
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
    // Of model mlp, copies of the weights in every kInstrumentSteps-th step, and how many of them the update then changed.
    std::vector<std::vector<float>> weights_before(int step) const;
    void count_moved(const std::vector<std::vector<float>>& before);
    void store_moments(const OptimizerStep& how, int step);  // rounds what the recipe keeps in fewer bits
    struct Rank {
        RecipeCasts casts;
        GradientSum sum;  // with several micro-batches
        LossValue loss;   // of the first half
        // With several ranks: the mean of its micro-batches, by parameter; and where it first found a value that is
        // not finite.
        std::vector<std::vector<float>> gradients = {};
        std::string nonfinite = {};
    };
    // Of one micro-batch; adds its share to the rank's loss. Returns false where its loss is not finite.
    bool compute_part(Rank& rank, const MicroBatch& part, double share);
    bool compute_micro_batch(std::span<const MicroBatch> parts, std::size_t micro);  // of every rank
    void gather_weights();
    void reduce_amaxes();
    void reduce_gradients();
    StepRecord end_step(int step);  // of all ranks
    std::vector<RankState> rank_states();
    bool several_ranks() const { return ranks_.size() > 1; }
    const RecipeCasts& casts() const { return ranks_.front().casts; }
    std::vector<RecipeCasts*> all_casts();
    std::vector<ScaleCheckpoint> delayed_scales(const RecipeCasts& casts) const;
    std::vector<std::span<float>> gradients() const;
    bool stores_fp32() const { return casts().recipe().master == MasterWeights::fp32; }
    // Of the E4M3 grids of the present weights, one per GEMM weight; empty: they have none.
    std::vector<float> scales_for_weights() const;
    void use_storage_scales(std::vector<float> scales);  // and rounds the weights; empty: no grid
    void store_weights(Rounding rounding, int step);  // to their E4M3 grid or to BF16, if the recipe says so
    // The random numbers with which what is kept of a weight is rounded: 0: to its grid, 1: m, 2: v, 3: to BF16.
    std::uint64_t update_stream(std::size_t parameter, int step, unsigned what) const {
        return stream(Draw::update, plan().ordinal(*plan().parameters[parameter].operand), step, what);
    }
    NonFinite cause(int step, bool loss_is_finite) const;
    std::string first_nonfinite(const Rank& rank, bool loss_is_finite) const;
    const ModelPlan& plan() const { return model_->plan(); }
    std::span<float> value(std::size_t parameter) const { return model_->parameters()[parameter].value; }

    const TrainSpec& spec_;
    std::unique_ptr<Model<float>> model_;
    std::unique_ptr<Collective> collective_;  // of several ranks
    std::vector<Rank> ranks_;
    RankWeights rank_weights_;
    RankGradients rank_gradients_;
    std::vector<Moments> moments_;       // one per parameter
    std::vector<std::size_t> weights_;   // the parameters that a GEMM reads
    std::vector<float> storage_scales_;  // one per weight, with master=none only: their E4M3 grid
    std::optional<TeacherNetwork> teacher_;
    Matrix<float> dy_;
    LossScaler scaler_;
    std::optional<TensorId> watch_;                  // of this step
    std::vector<float> moved_pct_;                   // by weights_, of the newest update; empty: not measured
    double v_zero_pct_ = 0, large_updates_ppm_ = 0;  // StepRecord: of the newest update
    double gradients_ms_ = 0;
    std::vector<StepRecord> records_;
    std::optional<NonFinite> stopped_;
    std::optional<TensorView> watched_;
    std::optional<Evaluation> evaluation_;
};

}  // namespace fp8lab
