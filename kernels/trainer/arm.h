// One arm of a comparison on the GPU: a network with one recipe, its optimiser state and all buffers of a
// step, in device memory. enqueue() puts whole steps on a stream and never synchronises, so that they can be
// captured in a graph.
//
// Operands. BF16 and FP8 recipes cast the output of a GEMM directly to the operand of the next one. Emulated
// recipes (engine.h) keep values in FP32, quantise and dequantise them as core does (emulate.h), and multiply
// in FP32. All dimensions are padded with zeros to multiples of 16, which does not change any result. Operands that
// are rotated for wgrad (Recipe::rht) fill the padding of the batch: it is a part of the product.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/models/mlp/tensors.h"
#include "core/nn/trainer.h"
#include "core/train/checkpoint.h"
#include "core/train/preparation.h"
#include "kernels/casts/emulate.h"
#include "kernels/device/device.h"
#include "kernels/device/launch.h"
#include "kernels/gemm/engine.h"
#include "kernels/gemm/gemm.h"
#include "kernels/optimizer/parameters.h"
#include "kernels/scaling/scale_buffers.h"

namespace fp8lab::cuda {

// The buffers of batches and learning rates; shared by the arms of a run.
struct StepRings {
    const float *x = nullptr, *y = nullptr;  // data_slots batches
    int data_slots = 1;
    const StepInput* inputs = nullptr;
    int input_slots = 1;
    bool overlap = false;  // a launch has several steps, and they overlap
};

// One tensor of the network (x, w or dy of a layer) and the operands that its GEMMs read.
struct Slot {
    Shape shape;
    CastPlan plan;
    MlpTensor id;
    int index = 0;                 // into the scale states
    Memory value;                  // FP32; of x and dy, where emulated or before the cast to MX
    const void* values = nullptr;  // `value`, or the weights of the optimiser
    Memory first, second;  // fp8: rows and columns; bf16: rows; emulated: along the first and the second GEMM
    ScaleMode scaling = ScaleMode::tensor;
    ScaleBuffers scales;      // fp8 with many scales
    Buffer<float> scale_inv;  // fp8 with one scale; empty: in the scale state
    Buffer<CastSums> stats;
    bool cast = true;         // false: operands are `values` (recipe fp32; weights kept in BF16)
    bool has_second = false;  // second differs from first
    bool rotated = false;     // along the batch, for wgrad (Recipe::rht)
    void keep_values();
    const void* for_first() const { return cast ? first.get() : values; }
    const void* for_second() const { return has_second ? second.get() : for_first(); }
};

struct ArmLayer {
    int number = 1;  // 1-based
    Slot x, w, dy;
    Shape out;     // of the layer's output
    Memory h, da;  // outputs of fprop and dgrad
    Parameters master, m, v, dw;
    Buffer<float> b, mb, vb, db, bias_partials;
    Buffer<float> b_before;  // what the newest step used
    std::optional<GemmPlan> fprop, dgrad,
        wgrad;  // none: dgrad of the first layer; wgrad inside the optimiser
};

struct ArmRecord {  // of one step, as read back
    StepResult result;
    std::vector<TensorResult> tensors;
};

class CudaArm {
  public:
    CudaArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice, const Lt& lt,
            const StepRings& rings, cudaStream_t stream, const Preparation& preparation);

    Engine engine() const { return engine_; }
    const std::string& emulated_because() const { return emulated_because_; }
    const Recipe& recipe() const { return recipe_; }
    // Small batches: the weight gradient is a part of the optimiser's kernel (launch.h, WeightProduct).
    bool multiplies_in_update() const;
    std::size_t memory_bytes() const { return memory_bytes_; }

    // Enqueues `steps` steps, at most kStepsPerLaunch. `mark` (may be empty) is called after every launch
    // with its part, for the breakdown of the time.
    enum class Part { gemm, cast, optimiser, bookkeeping };
    using Mark = std::function<void(Part)>;
    void enqueue(cudaStream_t stream, int steps, bool with_stats, const Mark& mark = {});

    // They take effect with the next launch on the stream; graphs stay valid.
    void set_history(int length, cudaStream_t stream);
    void set_margin(int margin, cudaStream_t stream);
    void set_algo(AmaxAlgo algo, cudaStream_t stream);

    // Copies the records of steps [first, first + count) to page-locked memory; valid once the stream has
    // done the copy.
    void read_back(int first, int count, cudaStream_t stream);
    ArmRecord record(int step) const;

    // Histograms of the newest values. Waits for the stream.
    TensorView view(MlpTensor id, int step, cudaStream_t stream);

    std::string nonfinite_parameter() const;  // the first one that is not finite, weights before biases: "w2"
    ArmCheckpoint checkpoint() const;         // waits for the device
    void restore(const ArmCheckpoint& checkpoint, int steps_done);  // of the same shapes

  private:
    using Launch = std::function<void(const CastTarget&, Pass)>;
    void allocate();
    void initialise();
    void make_plans(cudaStream_t stream, const Preparation& preparation);
    struct Events;
    struct Step;
    void cast(Slot& slot, const Step& step, const Launch& launch);
    void cast_value(Slot& slot, const Step& step);
    void cast_emulated(Slot& slot, const Step& step);
    int layer_count() const { return static_cast<int>(spec_.layers.size()) - 1; }
    void round_emulated(void* product, Shape shape, OutType to, const Step& step);
    EmulatedCast emulated(const Slot& slot, Along along) const;
    bool scaled_from_itself(const Slot& slot) const;
    Element operand_element(const Slot& slot) const;
    Element gradient_in() const;
    bool cast_by_optimiser(const Slot& weights) const;
    bool cast_beside(const ArmLayer& layer) const;
    const float* scale_inv(const Slot& slot) const;
    const float* factors(const Slot& slot, bool second) const;
    Slot& x_of(ArmLayer& layer, const Step& step);
    void forward(const Step& step);
    void loss(const Step& step);
    void backward(Step& step);
    void update(Step& step);
    void record_tensors(TensorSet set, const Step& step);
    TensorSet later_gradients() const;
    void optimise_biases(const Step& step);
    void optimise(ArmLayer& layer, const Step& step, cudaStream_t stream);
    void optimise_beside(ArmLayer& layer, Step& step);
    void requantise_weights();
    void push_controls(cudaStream_t stream);
    void quantize_storage(ArmLayer& layer, Rounding rounding, const ArmState* arm, cudaStream_t stream);
    // Of the step that is running, or of the one that is done.
    enum class When { now, after };
    Launch source_of(const Slot& slot, const ArmState* arm, cudaStream_t stream, When when = When::now);
    static const float* bias(const ArmLayer& layer, When when);
    LossSource loss_source(const ArmState* arm, When when = When::now) const;
    ScaleState* state(const Slot& slot) const { return states_.get() + slot.index; }
    // `planned_as`: the layer under which `plan` has it; 0: the network's input of the next step.
    Slot make_slot(const ArmMemory& plan, MlpTensor id, int rows, int cols, int planned_as);
    BatchRing ring(const float* base, int cols, const ArmState* arm, bool poisoned) const;

    const TrainSpec& spec_;
    Recipe recipe_;
    Engine engine_;
    std::string emulated_because_;
    const Lt& lt_;
    StepRings rings_;
    Element kept_in_;  // weights and their moments
    Element out_;      // of fprop and dgrad
    std::vector<std::unique_ptr<ArmLayer>> layers_;
    // The second buffer for x of the first layer where steps overlap: the x of a step is cast while the step
    // before still reads its own.
    std::optional<Slot> other_x_;
    int tensors_ = 0;
    Buffer<ScaleState> states_;
    Buffer<float> history_;
    Buffer<ScaleControls> controls_;
    Buffer<ArmState> arm_;
    Buffer<std::int32_t> finite_;
    Buffer<StepResult> results_;
    Buffer<TensorResult> tensor_results_;
    Pinned<StepResult> host_results_;
    Pinned<TensorResult> host_tensors_;
    Pinned<ScaleControls> host_controls_;
    std::size_t next_control_ = 0;
    Buffer<double> loss_partials_;
    Buffer<float2> row_stats_;
    Buffer<std::uint8_t> row_correct_;
    Memory scratch_, rotated_;
    struct Events {
        // The scales of the step are up to date, except those of dy in the backward pass; the next batch is
        // cast.
        Event scales;
        Event finished;  // the step
        std::vector<Event> forks;
    };
    Stream side_;  // beside the trainer's
    Events events_;
    std::size_t memory_bytes_ = 0;
};

}  // namespace fp8lab::cuda
