// A model: parameters, a forward and a backward pass. What it consists of is a ModelPlan. A recipe acts only through
// GemmCasts, on the operands and results of GEMMs; everything else is computed in T. T is float; double is the
// reference of the gradient tests.
//
// A new model is a folder under core/nn/models/ with a ModelEntry, and a line in core/nn/models.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/nn/matrix.h"
#include "core/nn/model_plan.h"
#include "core/nn/tasks.h"
#include "core/nn/tokens/kv_state.h"
#include "core/nn/train_spec.h"

namespace fp8lab {

template <class T>
class GemmCasts {
  public:
    virtual ~GemmCasts() = default;
    // The operand that the GEMM reads instead of `value`; `along` is K of this GEMM. The result is valid
    // until the end of the step or the next call for the same tensor. Of a fprop x is asked for before w.
    virtual const Matrix<T>& operand(TensorId id, Along along, const Matrix<T>& value) = 0;
    // Rounds what is kept in the type of activations: outputs of fprop and dgrad, of norms, the residual stream.
    virtual void round_output(Matrix<T>& result) = 0;
    virtual void round_gradient(Matrix<T>& result) = 0;  // of wgrad
    virtual SwigluForm swiglu() const { return SwigluForm::plain; }
    virtual int sum_bits() const { return 0; }  // Recipe::sum_bits
    // y (rows, out) is what fprop gave of the operands x (rows, K) and w (out, K), rounded: for StepRecord's instruments.
    virtual void note_product(TensorId, const Matrix<T>& /*x*/, const Matrix<T>& /*w*/,
                              const Matrix<T>& /*y*/) {}
    // The tensor has no rows in this step, and no GEMM reads it: its history of amaxes gets a 0.
    virtual void note_empty(TensorId) {}
    // Of the GEMM that reads the tensor, for a trace: "1.qkv".
    virtual std::string_view gemm_name(TensorId) const { return {}; }
};

// The scales of Smooth-SwiGLU follow from the tokens of a step and are folded into the weights of down. A pass without casts, or
// with weights that were cast before it, does without: the function is the same.
constexpr SwigluForm without_folds(SwigluForm form) {
    return form == SwigluForm::smooth ? SwigluForm::plain : form;
}

// No cast: every product is computed in type T. `form`: of the recipe that the model was trained with.
template <class T>
class NoCasts final : public GemmCasts<T> {
  public:
    explicit NoCasts(SwigluForm form = SwigluForm::plain) : form_(without_folds(form)) {}
    const Matrix<T>& operand(TensorId, Along, const Matrix<T>& value) override { return value; }
    void round_output(Matrix<T>&) override {}
    void round_gradient(Matrix<T>&) override {}
    SwigluForm swiglu() const override { return form_; }

  private:
    SwigluForm form_;
};

// The memory of one parameter, row-major; `gradient` is that of the last backward().
template <class T>
struct Parameter {
    std::span<T> value, gradient;
};

template <class T>
class Model {
  public:
    virtual ~Model() = default;
    virtual const ModelPlan& plan() const = 0;
    virtual std::span<const Parameter<T>> parameters() = 0;  // in the order of plan().parameters
    // Sets the parameters from the seed alone: every arm and backend starts with the same ones.
    virtual void initialise(std::uint64_t seed) = 0;
    // The outputs, (rows of the batch, outputs); valid until the next call.
    virtual const Matrix<T>& forward(const Batch& batch, GemmCasts<T>& casts) = 0;
    // The same with a cache, of a model of tokens: the logits of tokens that follow those of `state`, as many per sequence
    // as batch.context says, whose keys and values are added to it. Valid until the next call. backward() is of a
    // forward() after the last decode().
    //
    // Every row is computed by itself (ops/row_products.h), so a token has the same logits, byte for byte, whether the
    // tokens up to it come one by one, in parts, or all at once into an empty state. They are not those of forward() to
    // the byte, whose products are BLAS's.
    //
    // This holds without casts, and with casts that read a token's values alone: BF16, one scale per row or block along
    // K (rowwise, block128, mxfp*), and scales that are fixed beforehand (delayed ones in an evaluation). A scale of a
    // whole tensor that is computed at hand (current; NVFP4's tensor scale; SwigluForm::smooth) is that of the tokens of
    // one call. What is in the cache stays as it was cast when it came.
    //
    // Throws usage_error: a model without attention, a state of another model or number of sequences, or more tokens
    // than the context has. What is read beyond it is for the caller to say (core/trainer/sample.h).
    virtual const Matrix<T>& decode(const Batch& batch, GemmCasts<T>& casts, KvState<T>& state);
    // Fills the gradients from dloss/doutputs of the last forward().
    virtual void backward(const Matrix<T>& dy, GemmCasts<T>& casts) = 0;
    // A tensor of the last step, before its cast. Of class w: the parameter.
    virtual std::span<const T> values(TensorId id) const = 0;
    // Makes gate and up of channel 1 in block 1 read one token's direction, 300 long, and scales the weights of down so
    // that the model computes what it did for that token. These weights stay as they are from then on. Throws
    // usage_error where the model has no SwiGLU.
    virtual void align_channel(int token);
    // Before the first forward pass of a step, also of one that is done again because it was given up. Evaluations have none.
    virtual void begin_step(int /*step*/) {}
    virtual void after_update() {}  // called after each update of the parameters
    // A GEMM whose output in the last forward pass decided something and was not finite: an index into plan().gemms.
    virtual std::optional<std::uint16_t> undecided() const { return std::nullopt; }
};

// An option of a model: --name on the command line, TrainSpec::sizes[name].
struct ModelOption {
    std::string_view name, help;
    int fallback = 0, low = 1, high = 65536;
    std::span<const std::string_view> names = {};  // its values are words; kept is the place of one
    int parts = 1;  // kept are such parts of the value: 2000 of 0.002 with a million

    // Throws usage_error("--name", ...): no value of this option.
    int read(std::string_view text) const;
    std::string text(int value) const;
};

struct ModelEntry {
    std::string_view id;  // --model
    std::string_view summary;
    std::string_view task;  // what it trains on unless told otherwise
    bool tokens = false;    // batches are TokenBatch, not DenseBatch
    bool on_gpu = true;     // false: trained on the CPU only
    std::span<const ModelOption> options = {};
    void (*check)(const TrainSpec&) = [](const TrainSpec&) {};  // throws usage_error: sizes that do not fit
    ModelPlan (*plan)(const TrainSpec&);
    std::unique_ptr<Model<float>> (*make)(const TrainSpec&);  // all parameters zero
    // The same model in double: the reference of the tests.
    std::unique_ptr<Model<double>> (*make_reference)(const TrainSpec&);
};

std::span<const ModelEntry> models();
// Throws usage_error("--model", ...) with the ids that there are.
const ModelEntry& find_model(std::string_view id);

// The plan of the model of `spec`, and the model itself.
ModelPlan model_plan(const TrainSpec& spec);
std::unique_ptr<Model<float>> make_model(const TrainSpec& spec);

}  // namespace fp8lab
