// The multilayer perceptron on the GPU (core/nn/models/mlp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/models/mlp/tensors.h"
#include "kernels/arm/arm.h"
#include "kernels/gemm/gemm.h"
#include "kernels/optimizer/parameters.h"

namespace fp8lab::cuda {

struct MlpLayer {
    int number = 1;  // 1-based
    Slot x, w, dy;
    Shape out;     // of the layer's output
    Memory h, da;  // outputs of fprop and dgrad
    Parameters master, m, v, dw;
    Buffer<float> b, mb, vb, db, bias_partials;
    Buffer<float> b_before;  // what the newest step used
    Memory sent_gradient;    // with several ranks, where dw is not in the format of the sum
    std::optional<WeightBlock> block;
    std::optional<GemmPlan> fprop, dgrad,
        wgrad;  // none: dgrad of the first layer; wgrad inside the optimiser
};

class MlpArm final : public CudaArm {
  public:
    // Throws Error{backend}: more than kMaxLayers layers, or as GemmPlan and Memory.
    MlpArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice, const Lt& lt,
           const StepRings& rings, cudaStream_t stream, const Preparation& preparation,
           const RankPlace& place = {});

    bool multiplies_in_update() const override;
    void enqueue(cudaStream_t stream, int steps, bool with_stats, const Mark& mark) override;
    std::string nonfinite_parameter() const override;
    // Of all ranks, which call it together.
    ArmCheckpoint checkpoint() const override;
    void restore(const ArmCheckpoint& checkpoint, int steps_done) override;

  private:
    void allocate();
    void allocate_other_x(const ArmMemory& plan);
    void make_plans(cudaStream_t stream, const Preparation& preparation);
    struct Events;
    struct Step;
    void cast_value(Slot& slot, const Step& step);
    int layer_count() const { return static_cast<int>(spec_.layers.size()) - 1; }
    int parts() const { return spec_.accumulate.micro_batches; }
    int rows() const { return spec_.batch / parts(); }  // of a micro-batch
    // Of the micro-batch whose launches are enqueued: its partial sums of the loss and of bias gradients.
    double* loss_partials() const;
    float* bias_partials(const MlpLayer& layer) const;
    Element gradient_in() const;
    bool cast_beside(const MlpLayer& layer) const;
    Slot& x_of(MlpLayer& layer, const Step& step);
    void forward(const Step& step);
    void loss(const Step& step);
    void finish_all_losses(const Step& step);
    void backward(Step& step);
    void update(Step& step);
    void add_gradient(MlpLayer& layer, const Step& step);
    void add_gradients(const Step& step);
    std::vector<bool> later_gradients() const;
    std::vector<bool> all_but_later_gradients() const;
    void record_now(const std::vector<bool>& chosen, const Step& step);
    BiasUpdates bias_updates() const;
    void optimise_biases(const Step& step);
    // Whether the gradients are finite, and the next loss scale. Waits for all of them.
    void update_loss_scale(const Step& step);
    const float* gradient_factor() const;
    const StepInput* inputs() const;  // of the updates
    int input_slots() const { return loss_scale_.size() > 0 ? 1 : rings_.input_slots; }
    void optimise(MlpLayer& layer, const Step& step, cudaStream_t stream);
    void optimise_beside(MlpLayer& layer, Step& step);
    void requantise_weights();
    Launch source_of(const Slot& slot, const ArmState* arm, cudaStream_t stream, When when) override;
    bool keeps(TensorId id) const override;
    // ---- several ranks
    void allocate_ranks(MlpLayer& layer, const ArmMemory& plan);
    const WeightBlock* block_of(TensorId id) const override;
    static SharedWeight shared(const MlpLayer& layer);
    bool casts_weights(const MlpLayer& layer) const;  // before their first GEMM
    void gather_weights(Step& step);
    void share_biases(const Step& step);
    void update_with_ranks(Step& step);
    Shape updated_shape(const MlpLayer& layer) const {
        return layer.block ? layer.block->shape : layer.w.shape;
    }
    static const float* bias(const MlpLayer& layer, When when);
    LossSource loss_source(const ArmState* arm, When when = When::now) const;
    // Slot with the memory of `plan`; planned_as: the layer under which it has it; 0: the network's input of the next
    // step.
    Slot make_layer_slot(const ArmMemory& plan, MlpTensor id, int rows, int cols, int planned_as);
    BatchRing ring(const float* base, int cols, const ArmState* arm, bool poisoned) const;

    const Lt& lt_;
    StepRings rings_;
    std::vector<std::unique_ptr<MlpLayer>> layers_;
    // The second buffer for x of the first layer where steps overlap: the x of a step is cast while the step
    // before still reads its own.
    std::optional<Slot> other_x_;
    Buffer<double> loss_partials_;
    Buffer<float2> row_stats_;
    Buffer<std::uint8_t> row_correct_;
    Buffer<float> gradient_factor_;  // 1 / micro-batches, where there are several
    Memory bucket_;                  // FP32 gradients of biases, summed over the ranks
    int micro_ = 0;                  // whose launches are enqueued, or were last
    struct Events {
        // The scales of the step are up to date, except those of dy in the backward pass; the next batch is
        // cast.
        Event scales;
        Event finished;  // the step
        std::vector<Event> forks;
        std::vector<Event> gathered;  // the weights of a layer
    };
    Stream side_;  // beside the trainer's
    Events events_;
};

}  // namespace fp8lab::cuda
