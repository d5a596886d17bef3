#include "kernels/transformer/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/nn/ops/rope.h"
#include "core/train/sample.h"
#include "kernels/arm/batches.h"

namespace fp8lab::cuda {
namespace {

std::size_t size(int n) { return static_cast<std::size_t>(n); }

// The kernels read eight elements of a row at once, and cuBLASLt takes FP8 in multiples of 16.
void check_sizes(const TransformerShape& s, Engine engine) {
    const std::size_t head = engine == Engine::emulated ? 2 : 16;
    for (const auto& [what, value, multiple] : {std::tuple{"--d", s.d, std::size_t{16}},
                                                {"--ffn", s.ffn, std::size_t{16}},
                                                {"the width of a head, d / heads,", s.head_size(), head},
                                                {"the width of K", s.key_cols(), std::size_t{8}}})
        if (value % multiple != 0)
            throw usage_error(
                what,
                fmt::format("{} is not a multiple of {}, which a GPU needs: --backend cpu", value, multiple));
}

}  // namespace

TransformerArm::TransformerArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice,
                               const Lt& lt, const StepRings& rings, cudaStream_t stream,
                               const Preparation& preparation)
    : CudaArm(spec, recipe, choice),
      shape_(transformer_shape(spec)),
      rows_(spec.batch * static_cast<int>(shape_.context)),
      lt_(lt),
      rings_(rings),
      sources_(plan_.tensors.size()) {
    check_sizes(shape_, engine_);
    std::size_t before = 0, after = 0, total = 0;
    check(cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
    allocate();
    check(cudaMemGetInfo(&after, &total), "cudaMemGetInfo");
    memory_bytes_ = before > after ? before - after : 0;
    make_plans(stream, preparation);
    push_controls(stream);
    preparation.begin(fmt::format("{}: initial weights", recipe.base));
    initialise();
}
TransformerArm::~TransformerArm() = default;

Memory TransformerArm::activations(int cols) const {
    Memory memory(elements(shape_of(rows_, cols)) * size(bytes_of(out_)));
    fill_zeros(memory.get(), memory.bytes());
    return memory;
}

AttentionSizes TransformerArm::attention_sizes() const {
    return {spec_.batch, static_cast<int>(shape_.context), static_cast<int>(shape_.heads),
            static_cast<int>(shape_.kv_heads), static_cast<int>(shape_.head_size())};
}

// in_place: what has the tensor's values already; null: a source computes them.
void TransformerArm::add_operand(Slot& slot, TensorId id, int rows, int cols, const void* in_place) {
    slot = make_slot(id, rows, cols);
    const std::size_t n = elements(slot.shape);
    const bool weight = slot.tensor == TensorClass::w;
    if (slot.engine == Engine::fp8) {
        slot.first = Memory(n);
        slot.second = Memory(n);
        slot.has_second = true;
        if (slot.scaling != ScaleMode::tensor) slot.scales = ScaleBuffers(slot.scaling, slot.shape);
        if (slot.scaling == ScaleMode::block32) {
            if (weight)
                slot.values = in_place;
            else
                slot.keep_values();
        }
    } else if (slot.engine == Engine::bf16) {
        // Weights in FP32 are cast, weights in BF16 are read where they are.
        slot.cast = !in_place || (weight && kept_in_ == Element::f32);
        slot.values = in_place;
        if (slot.cast) slot.first = Memory(2 * n);
    } else {
        slot.values = in_place;
        if (!in_place) slot.keep_values();
        slot.cast = slot.plan.format->name != "fp32";
        const bool one_cast = slot.plan.granularity == Granularity::tensor ||
                              (slot.plan.granularity == Granularity::block16 && slot.plan.square_blocks);
        slot.has_second = slot.cast && !one_cast;
        if (slot.cast) slot.first = Memory(4 * n);
        if (slot.has_second) slot.second = Memory(4 * n);
        for (const Memory* operand : {&slot.first, &slot.second})  // emulated casts leave the padding alone
            if (operand->bytes() > 0) fill_zeros(operand->get(), operand->bytes());
        const std::size_t scratch = emulation_scratch_bytes(slot.plan, slot.shape.padded_rows, cols);
        if (scratch > scratch_.bytes()) scratch_ = Memory(scratch);
        if (slot.rotated && 4 * n > rotated_.bytes()) rotated_ = Memory(4 * n);
    }
    slot.stats = Buffer<CastSums>(size(stats_blocks(slot.shape)));
    add_slot(slot);
    if (in_place)
        sources_[id.index] = [in_place, element = weight ? Element::f32 : out_, shape = slot.shape](
                                 const ArmState*, cudaStream_t stream) {
            return [=](const CastTarget& target, Pass pass) {
                cast_matrix(in_place, element, shape, target, pass, stream);
            };
        };
}

void TransformerArm::add_linear(Linear& linear, const std::string& gemm, int out, int in, const Memory* x,
                                const Memory* dy) {
    linear.in = in;
    linear.out = out;
    linear.weight = &weights_.matrix(shape_.tied && gemm == "head" ? "embedding" : gemm + ".w");
    linear.dw = shape_.tied && gemm == "head" ? &head_gradient_ : &linear.weight->gradient;
    const auto id = [&](const char* which) { return *plan_.find(gemm + which); };
    add_operand(linear.x, id(".x"), rows_, in, x ? x->get() : nullptr);
    add_operand(linear.w, id(".w"), out, in, linear.weight->master.get());
    add_operand(linear.dy, id(".dy"), rows_, out, dy ? dy->get() : nullptr);
    if (linear.weight->master.element() == Element::bf16)
        sources_[linear.w.id.index] = [weight = linear.weight](const ArmState*, cudaStream_t stream) {
            return [=](const CastTarget& target, Pass pass) {
                cast_matrix(weight->master.get(), Element::bf16, weight->shape, target, pass, stream);
            };
        };
}

void TransformerArm::add_attention(Block& block, const std::string& name) {
    AttentionCasts& casts = block.casts.emplace();
    const auto id = [&](const char* which) { return *plan_.find(name + which); };
    const int d = static_cast<int>(shape_.d), keys = static_cast<int>(shape_.key_cols()),
              scores = rows_ * static_cast<int>(shape_.heads), context = static_cast<int>(shape_.context);
    add_operand(casts.q, id("q"), rows_, d, nullptr);
    add_operand(casts.k, id("k"), rows_, keys, nullptr);
    add_operand(casts.v, id("v"), rows_, keys, nullptr);
    add_operand(casts.p, id("p"), scores, context, nullptr);
    add_operand(casts.ds, id("ds"), scores, context, nullptr);
    add_operand(casts.dout, id("do"), rows_, d, block.dattended.get());
    for (const Slot* slot : {&casts.q, &casts.k, &casts.v, &casts.p, &casts.ds})  // written beside the casts
        sources_[slot->id.index] = [values = slot->values, shape = slot->shape](const ArmState*,
                                                                                cudaStream_t stream) {
            return [=](const CastTarget& target, Pass pass) {
                cast_matrix(values, Element::f32, shape, target, pass, stream);
            };
        };
}

void TransformerArm::add_norm(Norm& norm, const std::string& gain) {
    norm.gain = &weights_.vector(gain);
    norm.inverse_rms = Buffer<float>(size(rows_));
    norm.stream = activations(static_cast<int>(shape_.d));
    norm.gradient = activations(static_cast<int>(shape_.d));
}

// gradient: of the stream behind the block.
void TransformerArm::allocate_block(Block& block, const std::string& name, const Memory& gradient) {
    const auto d = static_cast<int>(shape_.d), ffn = static_cast<int>(shape_.ffn),
               qkv = d + 2 * static_cast<int>(shape_.key_cols());
    block.qkv_out = activations(qkv);
    block.dqkv = activations(qkv);
    block.attended = activations(d);
    block.dattended = activations(d);
    block.gates = activations(2 * ffn);
    block.da = activations(ffn);
    add_linear(block.qkv, name + "qkv", qkv, d);
    if (engine_ == Engine::emulated)
        add_attention(block, name + "attention.");
    else
        block.attention = make_attention(attention_sizes(), {out_, padded(qkv), padded(d)});
    add_linear(block.out, name + "out", d, d, &block.attended, &block.norm2.gradient);
    add_linear(block.gate_up, name + "gate_up", 2 * ffn, d);
    add_linear(block.down, name + "down", d, ffn, nullptr, &gradient);
    if (recipe_.act == SwigluForm::smooth) {
        block.channel_scales = Buffer<float>(size(padded(ffn)));
        block.scaled_down = Buffer<float>(elements(block.down.w.shape));
        block.down.w.values = engine_ == Engine::fp8 ? nullptr : block.scaled_down.get();
    }
    set_sources(block);
}

void TransformerArm::allocate() {
    const auto d = static_cast<int>(shape_.d), vocabulary = static_cast<int>(shape_.vocabulary);
    constexpr int kAny = 16;
    const Element gradient =
        kept_in_ == Element::bf16 ? Element::bf16 : products_of(recipe_, engine_, kAny, kAny, kAny).wgrad.d;
    if (recipe_.act == SwigluForm::smooth && gradient != Element::f32)
        throw usage_error("--recipe", "act=smooth needs gradients in FP32 here: wgrad=fp32");
    for (const OperandSpec& tensor : plan_.tensors) {
        gradients_.push_back(tensor.tensor == TensorClass::dy);
        read_forward_.push_back(tensor.tensor != TensorClass::dy);
    }
    allocate_shared();
    weights_ = WeightList(plan_, {kept_in_, gradient, spec_.optimizer == OptimizerKind::adamw}, rows_);
    embedding_ = &weights_.matrix("embedding");
    if (shape_.tied) head_gradient_ = Parameters(Element::f32, embedding_->shape);
    y_ = activations(d);
    dx_ = activations(d);
    logits_ = activations(vocabulary);
    const std::size_t rows = size(rows_);
    row_stats_ = Buffer<float2>(rows);
    row_loss_ = Buffer<double>(rows);
    row_correct_ = Buffer<std::uint8_t>(rows);
    if (recipe_.act == SwigluForm::smooth)
        channel_amax_ = Buffer<std::uint32_t>(size(padded(static_cast<int>(shape_.ffn))));
    if (clips()) square_partials_ = Buffer<double>(weights_.square_partials());
    if (clips()) clip_factor_ = Buffer<float>(1);
    evaluation_states_ = Buffer<ScaleState>(size(tensors_));
    evaluation_arm_ = Buffer<ArmState>(1);
    evaluation_results_ = Buffer<StepResult>(kRecordSlots);
    const RotaryTable<float> table(shape_.context, shape_.head_size());
    cos_ = Buffer<float>(std::span<const float>(table.cos().values));
    sin_ = Buffer<float>(std::span<const float>(table.sin().values));
    add_norm(norm_, "norm");
    for (std::size_t b = 1; b <= shape_.blocks; ++b) {
        auto& block = blocks_.emplace_back(std::make_unique<Block>());
        add_norm(block->norm1, std::to_string(b) + ".norm1");
        add_norm(block->norm2, std::to_string(b) + ".norm2");
    }
    for (std::size_t b = 0; b < shape_.blocks; ++b)
        allocate_block(*blocks_[b], std::to_string(b + 1) + ".",
                       b + 1 < shape_.blocks ? blocks_[b + 1]->norm1.gradient : norm_.gradient);
    add_linear(head_, "head", vocabulary, d);
    sources_[head_.x.id.index] = [this](const ArmState*, cudaStream_t stream) {
        return norm_source(norm_, head_.x.shape, stream);
    };
    sources_[head_.dy.id.index] = [this](const ArmState* arm, cudaStream_t stream) -> Launch {
        return
            [source = loss_source(arm), shape = head_.dy.shape, stream](const CastTarget& target, Pass pass) {
                cast_token_gradient(source, shape, target, pass, stream);
            };
    };
    // Of each layer's update, and a few more.
    for (std::size_t i = 0; i < 6 * shape_.blocks + 8; ++i) forks_.emplace_back();
}

void TransformerArm::make_plans(cudaStream_t stream, const Preparation& preparation) {
    const auto plan = [&](Linear& linear, const std::string& name) {
        const Recipe recipe = plan_.recipe_of(recipe_, linear.x.id);
        LayerProducts products = products_of(recipe, linear.x.engine, linear.x.shape.padded_rows,
                                             padded(linear.in), padded(linear.out));
        products.wgrad.d = linear.dw->element();
        const auto choose = [&](std::optional<GemmPlan>& to, std::string_view product, const GemmSpec& spec) {
            preparation.begin(fmt::format("{}: {} of {}", recipe_.base, product, name));
            to.emplace(lt_, spec, stream);
        };
        choose(linear.fprop, "fprop", products.fprop);
        choose(linear.dgrad, "dgrad", products.dgrad);
        choose(linear.wgrad, "wgrad", products.wgrad);
    };
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const std::string name = std::to_string(b + 1) + ".";
        plan(blocks_[b]->qkv, name + "qkv");
        plan(blocks_[b]->out, name + "out");
        plan(blocks_[b]->gate_up, name + "gate_up");
        plan(blocks_[b]->down, name + "down");
    }
    plan(head_, "head");
}

std::string TransformerArm::nonfinite_parameter() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::string name = weights_.nonfinite();
    return name.empty() ? "update" : name;
}

ArmCheckpoint TransformerArm::checkpoint() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    ArmCheckpoint out{
        .recipe = recipe_text(recipe_), .parameters = weights_.read(), .scales = scale_checkpoints()};
    if (recipe_.master != MasterWeights::none) return out;
    const std::vector<ScaleState> states = states_.download();
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
        if (const auto operand = plan_.parameters[i].operand)
            out.parameters[i].storage_scale = states[operand->index].scale;
    return out;
}

void TransformerArm::restore(const ArmCheckpoint& checkpoint, int steps_done) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    weights_.write(checkpoint.parameters);
    std::vector<float> storage(size(tensors_), 0.0F);
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
        if (const auto operand = plan_.parameters[i].operand)
            storage[operand->index] = storage_scale(checkpoint.parameters[i]);
    restore_scales(checkpoint.scales, storage, steps_done);
    requantise_weights();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

Evaluation TransformerArm::evaluate(Batches& batches, int steps_done, cudaStream_t stream) {
    const int step = steps_done - 1;
    Evaluation out{.step = steps_done};
    if (!batches.stage_held_out(0, 0, step, stream)) return out;
    const ArmState now{step, 1};
    evaluation_arm_.upload(std::span(&now, 1));
    const auto evaluate_piece = [&] {
        check(cudaMemcpyAsync(evaluation_states_.get(), states_.get(), states_.size() * sizeof(ScaleState),
                              cudaMemcpyDeviceToDevice, stream),
              "scales");
        evaluates_ = true;
        states_now_ = evaluation_states_.get();
        const StepContext context{stream, stream, evaluation_arm_.get(), false, nullptr};
        forward(context);
        loss(context);
        states_now_ = states_.get();
        evaluates_ = false;
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        return evaluation_results_.download()[size(step % kRecordSlots)];
    };
    for (int i = 0; i < kHeldOutBatches; ++i) {
        double loss = 0, correct = 0, scored = 0;
        for (int piece = 0; batches.stage_held_out(i, piece, step, stream); ++piece) {
            const StepResult result = evaluate_piece();
            loss += result.loss * batches.scored(step);
            correct += result.correct;
            scored += batches.scored(step);
        }
        out.loss += loss / scored / kHeldOutBatches;
        out.accuracy += correct / scored / kHeldOutBatches;
    }
    if (batches.task().prompt().empty()) return out;
    const auto model = make_model(spec_);
    ArmCheckpoint weights;
    weights.parameters = weights_.read();
    set_parameters(*model, weights);
    add_sample(out, *model, batches.task(), spec_);
    return out;
}

}  // namespace fp8lab::cuda
