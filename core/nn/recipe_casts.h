// Applies a recipe to one model: casts the operands of its GEMMs, keeps the delayed scales, and writes the
// records.
//
// With one scale per tensor, a tensor is cast once per step for both GEMMs that read it. Rows and blocks run
// along K, so there each GEMM gets a cast of its own; records describe the first (x, w: fprop; dy: dgrad, or
// wgrad in layer 1, which has no dgrad). Where Recipe::inputs make the two casts different ones, each GEMM has its own
// plan, scale and history, and the record has the SQNR of the second cast too. Weights in 16x16 blocks are cast once, for fprop and dgrad.
//
// Each rank of a data-parallel training (rank_options.h) has casts and scales of its own.
//
// Of a step with several micro-batches (Accumulation) the records are of all casts of a tensor together: the largest
// amax, shares over all elements. Weights are cast in the first one, unless it says otherwise.
//
// With rht, x and dy of wgrad are padded with rows of zeros to a multiple of 16, rotated along the batch with
// Transformer Engine's signs, with rht=bf16 rounded to BF16, and cast. The padding is kept, so that the rotations cancel in the product; a record
// of dy of layer 1 describes the rotated tensor with its padding.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/trainer.h"
#include "core/scaling/delayed.h"

namespace fp8lab {

class RecipeCasts final : public GemmCasts<float> {
  public:
    // first_micro: of the micro-batches of all ranks, the number of this rank's first one. Stochastic rounding of x and dy
    // draws other numbers in each; weights are rounded alike in all ranks.
    RecipeCasts(const Recipe& recipe, ModelPlan plan, std::uint64_t seed, Accumulation accumulate = {},
                int first_micro = 0);

    const Recipe& recipe() const { return recipe_; }
    // Call between steps. A tensor with delayed scaling before and after, in the same format, keeps its
    // history.
    void set_recipe(const Recipe& recipe);
    void set_history(int length);
    void set_margin(int margin);
    void set_algo(AmaxAlgo algo);

    // master=none: the weight is stored with a constant scale, which per-tensor casts use too. 0: none.
    void fix_scale(TensorId weight, float scale) { state(weight).fixed_scale = scale; }

    // What a rank got of a weight from those who own its rows: operands are cast from `values` instead of the parameter. Is it
    // the result of the recipe's own cast, operands are `values` as they are; amax, scale and stats are of that cast.
    // `values` must last until the next call; without them the parameter is cast.
    struct Gathered {
        const Matrix<float>* values = nullptr;
        bool is_cast = false;
        float amax = 0, scale = 1;
        CastStats stats = {};
    };
    void use_gathered(TensorId weight, Gathered gathered) { state(weight).gathered = std::move(gathered); }
    // Of a weight with one scale per tensor, the scale of a cast now: delayed, or of this amax.
    float scale_for(TensorId weight, float amax) const;
    // As the cast of element `first` of the weight on would be done.
    CastOptions cast_options(TensorId weight, float scale, std::size_t first) const;

    // A step that was not ended has changed no scale.
    void begin_step(int step, std::optional<TensorId> watched);
    // Before each micro-batch of the step but the first.
    void begin_micro(int micro);
    // The amaxes of x and dy that delayed scales will be fed with, in a fixed order. Ranks replace them by their largest, at
    // the end of a step, or with AmaxOf::each of each micro-batch.
    std::vector<float> activation_amaxes() const;
    void replace_activation_amaxes(std::span<const float> amaxes);
    // Before end_step(): the records of this step are then of the casts of both, with the scale of the larger amax.
    void add_records_of(const RecipeCasts& other);
    // From here to the next begin_step() operands are cast with the current scales, without records and amaxes.
    void begin_evaluation() {
        evaluates_ = true;
        open_ = false;
    }
    const Matrix<float>& operand(TensorId id, Along along, const Matrix<float>& value) override;
    void round_output(Matrix<float>& result) override { round(result, recipe_.out); }
    void round_gradient(Matrix<float>& result) override { round(result, recipe_.wgrad); }
    SwigluForm swiglu() const override { return recipe_.act; }
    int sum_bits() const override { return recipe_.sum_bits; }
    void note_product(TensorId w_id, const Matrix<float>& x, const Matrix<float>& w,
                      const Matrix<float>& y) override;
    void note_empty(TensorId id) override;
    std::string_view gemm_name(TensorId id) const override { return plan_.gemm(id).name; }
    // Feeds this step's amaxes to the delayed scales. The order is that of ModelPlan::tensors; a tensor that was not
    // cast in this step has NaN.
    std::vector<TensorRecord> end_step();
    std::vector<TensorRecord> records() const;  // of this step so far

    bool became_nonfinite(TensorId id) const { return state(id).nonfinite; }  // by the cast of this step
    const std::optional<TensorView>& watched() const { return view_; }        // of this step

    // For checkpoints. Whether the GEMMs that read a tensor have casts of their own.
    bool is_split(TensorId id) const { return state(id).split; }
    // The scale of the cast along K of that GEMM; of a tensor that is not split the one that there is. Without delayed
    // scaling this is nullptr, and restore_delayed() does nothing.
    const DelayedScale* delayed(TensorId id, Along along = Along::cols) const {
        const State& s = state(id);
        return is_delayed(s, s.side(along)) ? &s.side(along).delayed : nullptr;
    }
    void restore_delayed(TensorId id, Along along, float scale, int scale_age, std::vector<float> history);
    // With WeightCache::stale: the cast of a weight that the GEMM with this K has read since the first step. Empty: there is
    // none yet, or the tensor is no weight.
    const Matrix<float>& kept(TensorId id, Along along) const;
    void restore_kept(TensorId id, Along along, Matrix<float> cast);

  private:
    struct PowerSums {  // for the kurtosis
        double square = 0, fourth = 0, n = 0;
        void add(std::span<const float> values);
        void add(const PowerSums& other) { square += other.square, fourth += other.fourth, n += other.n; }
        float kurtosis() const { return static_cast<float>(fourth / square * n / square); }
    };
    struct Side {  // one cast, for one GEMM or for both
        CastPlan plan;
        DelayedScale delayed;
        DelayedScale
            rolling;  // with AmaxOf::each, during a step, so that a step that is not ended changes nothing
        bool delayed_scale = false, rotated = false;  // rotated: along the batch
        bool casted = false, casted_before = false;   // in this micro-batch; in an earlier one of this step
        bool empty = false;                           // in a micro-batch of this step it had no rows
        float scale_amax = 0;                         // of this step, for the delayed scale
        int saturated = 0;                            // casts of this step in which an element saturates
        CastStats stats;                              // of this step, as the next
        PowerSums powers;
        TensorRecord record;
        Matrix<float> cast;
        bool seen() const { return casted || casted_before; }
    };
    struct State {
        std::array<Side, 2> sides;  // by Along; not split: both use the first
        bool split = false;
        float fixed_scale = 0;
        bool nonfinite = false;                                             // in this step
        float product_error_pct = std::numeric_limits<float>::quiet_NaN();  // of this step
        // What the GEMMs read of a weight that is not cast again, by Along.
        std::array<Matrix<float>, 2> kept;
        Gathered gathered;
        Side& side(Along along) { return sides[split && along == Along::rows ? 1 : 0]; }
        const Side& side(Along along) const { return sides[split && along == Along::rows ? 1 : 0]; }
        bool casted() const { return sides[0].casted || sides[1].casted; }
        bool seen() const { return sides[0].seen() || sides[1].seen(); }
    };
    State& state(TensorId id) { return states_[id.index]; }
    const State& state(TensorId id) const { return states_[id.index]; }
    static bool is_delayed(const State& s, const Side& side) {
        return side.delayed_scale && s.fixed_scale == 0;
    }
    // Whether the cast of a weight outlasts the micro-batch, and whether it is there. As in Transformer Engine, only casts to
    // 8 bits and less do.
    bool keeps(TensorId id, Along along) const;
    bool has_kept(TensorId id, Along along) const;
    DelayedScale& in_use(Side& side) const {
        return open_ && accumulate_.amax == AmaxOf::each ? side.rolling : side.delayed;
    }
    const Matrix<float>& cast(TensorId id, Along along, const Matrix<float>& value);
    void note_amax(Side& side, const Matrix<float>& in, float amax);
    void set_side(Side& side, TensorId id, Along along, const Recipe& here);
    const Matrix<float>& rotated(const Matrix<float>& value);
    static void round(Matrix<float>& result, OutType to);
    QuantizeRequest request_of(TensorId id, Along along, const Matrix<float>& in) const;
    void cast_rowwise(TensorId id, const Matrix<float>& value);
    void note(TensorId id, Side& side, const Matrix<float>& value, const QuantizeResult& result);
    void describe(Side& side, float scale) const;  // the record of side.stats
    const Matrix<float>& read_gathered(TensorId id, Along along, const Matrix<float>& value);
    void watch(TensorId id, const Side& side, const Matrix<float>& value, const Matrix<float>& cast);

    ModelPlan plan_;
    Recipe recipe_;
    std::uint64_t seed_;
    Accumulation accumulate_;
    int first_micro_ = 0;
    int step_ = 0, micro_ = 0;
    bool evaluates_ = false, open_ = false;  // open: a step has begun and has not ended
    std::optional<TensorId> watched_;
    std::optional<TensorView> view_;
    std::vector<State> states_;
    Matrix<float> rotated_;
};

}  // namespace fp8lab
