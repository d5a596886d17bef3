#include "kernels/transformer/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/nn/ops/rope.h"
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

AttentionSizes sizes_of(const TransformerShape& s, int batch) {
    return {batch, static_cast<int>(s.context), static_cast<int>(s.heads), static_cast<int>(s.kv_heads),
            static_cast<int>(s.head_size())};
}

// Makes attention in BF16.
std::unique_ptr<Attention> attention_of(const TransformerShape& s, int batch) {
    return make_attention(
        sizes_of(s, batch),
        {Element::bf16, padded(static_cast<int>(s.d + 2 * s.key_cols())), padded(static_cast<int>(s.d))});
}

}  // namespace

AttentionBytes attention_bytes(const TrainSpec& spec, int batch) {
    return attention_of(transformer_shape(spec), batch)->bytes();
}

TransformerArm::TransformerArm(const TrainSpec& spec, const Recipe& recipe, const EngineChoice& choice,
                               const Lt& lt, const StepRings& rings, cudaStream_t stream,
                               const Preparation& preparation, const RankPlace& place, Sharing sharing)
    : CudaArm(spec, recipe, choice, place),
      shape_(transformer_shape(spec)),
      rows_(spec.batch * static_cast<int>(shape_.context)),
      lt_(lt),
      rings_(rings),
      sources_(plan_.tensors.size()),
      blocks_of_(plan_.tensors.size()) {
    first_micro_ = place.rank;
    check_sizes(shape_, engine_);
    // Before the memory is looked at: cuDNN takes some.
    if (engine_ != Engine::emulated) attention_ = attention_of(shape_, spec_.batch);
    std::size_t before = 0, after = 0, total = 0;
    check(cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
    memory_.emplace(ArmMemory(spec_, recipe_, engine_, spec_.batch,
                              attention_ ? attention_->bytes() : AttentionBytes{}, sharing));
    allocate();
    check(cudaMemGetInfo(&after, &total), "cudaMemGetInfo");
    memory_bytes_ = before > after ? before - after : 0;
    make_plans(stream, preparation);
    push_controls(stream);
    preparation.begin(fmt::format("{}: initial weights", recipe.base));
    initialise();
}
TransformerArm::~TransformerArm() = default;

AttentionSizes TransformerArm::attention_sizes() const { return sizes_of(shape_, spec_.batch); }

// in_place: what has the tensor's values already; null: a source computes them.
void TransformerArm::add_operand(Slot& slot, TensorId id, int rows, int cols, const void* in_place) {
    slot = make_slot(id, rows, cols);
    const bool weight = slot.tensor == TensorClass::w;
    const auto take = [&](ArmPart part) { return memory_->take(part, id.index + 1, slot.tensor); };
    if (slot.other) {
        give_sides(slot, in_place, take);
    } else {
        slot.value = take(ArmPart::value);
        slot.values = slot.value.get() ? slot.value.get() : in_place;
        slot.first = take(ArmPart::first);
        slot.second = take(ArmPart::second);
        slot.cast = slot.first.bytes() > 0;
        slot.has_second = slot.second.bytes() > 0;
        if (slot.scaling != ScaleMode::tensor) slot.scales = ScaleBuffers(slot.scaling, slot.shape);
        slot.stats = Buffer<CastSums>(take(ArmPart::stats));
    }
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
    const WeightBlock* const block = linear.weight->own();
    const bool gathered = block && block->gathered.bytes() > 0;
    const void* const weights = gathered ? block->gathered.get() : linear.weight->master.get();
    const bool in_bf16 =
        gathered ? block->as == Sent::bf16 : linear.weight->master.element() == Element::bf16;
    add_operand(linear.x, id(".x"), rows_, in, x ? x->get() : nullptr);
    add_operand(linear.w, id(".w"), out, in, weights);
    add_operand(linear.dy, id(".dy"), rows_, out, dy ? dy->get() : nullptr);
    blocks_of_[linear.w.id.index] = block;
    if (block) linear.gathered.emplace();
    if (in_bf16)
        sources_[linear.w.id.index] = [weights, shape = linear.w.shape](const ArmState*,
                                                                        cudaStream_t stream) {
            return [=](const CastTarget& target, Pass pass) {
                cast_matrix(weights, Element::bf16, shape, target, pass, stream);
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

void TransformerArm::add_norm(Norm& norm, int number, const std::string& gain) {
    norm.gain = &weights_.vector(gain);
    norm.inverse_rms = memory_->buffer<float>(ArmPart::inverse_rms, number);
    norm.stream = memory_->take(ArmPart::stream, number);
    norm.gradient = memory_->take(ArmPart::stream_gradient, number);
}

// gradient: of the stream behind the block.
void TransformerArm::allocate_block(Block& block, int number, const Memory& gradient) {
    const std::string name = std::to_string(number) + ".";
    const auto take = [&](ArmPart part) { return memory_->take(part, number); };
    const auto d = static_cast<int>(shape_.d), ffn = static_cast<int>(shape_.ffn),
               qkv = d + 2 * static_cast<int>(shape_.key_cols());
    block.qkv_out = take(ArmPart::qkv);
    block.dqkv = take(ArmPart::qkv_gradient);
    block.attended = take(ArmPart::attended);
    block.dattended = take(ArmPart::attended_gradient);
    block.gates = take(ArmPart::gates);
    block.da = take(ArmPart::gate_gradient);
    block.attention_kept = take(ArmPart::attention_kept);
    block.attention_forward = take(ArmPart::attention_scratch);
    block.attention_backward = memory_->take(ArmPart::attention_scratch, number, TensorClass::dy);
    const bool in_place =
        rotates_back_in_place(engine_, plan_.recipe_of(recipe_, *plan_.find(name + "qkv.dy")), rows_);
    add_linear(block.qkv, name + "qkv", qkv, d, nullptr, in_place ? &block.dqkv : nullptr);
    if (engine_ == Engine::emulated) add_attention(block, name + "attention.");
    add_linear(block.out, name + "out", d, d, &block.attended, &block.norm2.gradient);
    add_linear(block.gate_up, name + "gate_up", 2 * ffn, d);
    add_linear(block.down, name + "down", d, ffn, nullptr, &gradient);
    if (recipe_.act == SwigluForm::smooth) {
        block.channel_scales = Buffer<float>(take(ArmPart::channel_scales));
        block.scaled_down = Buffer<float>(take(ArmPart::scaled_weights));
        for (Slot* side = &block.down.w; side; side = side->other.get())
            side->values = block.scaled_down.get();
    }
    for (Slot* slot : {&block.qkv.x, &block.gate_up.x, &block.out.dy, &block.down.dy}) slot->of_norm = true;
    set_sources(block);
}

void TransformerArm::allocate() {
    constexpr int kAny = 16;
    const Element gradient = kept_in_ == Element::bf16 ? Element::bf16
                             : place_.several() && engine_ != Engine::emulated
                                 ? summed_in()
                                 : products_of(recipe_, engine_, kAny, kAny, kAny).wgrad.d;
    if (recipe_.act == SwigluForm::smooth && gradient != Element::f32)
        throw usage_error("--recipe", "act=smooth needs gradients in FP32 here: wgrad=fp32");
    for (const OperandSpec& tensor : plan_.tensors) {
        gradients_.push_back(tensor.tensor == TensorClass::dy);
        read_forward_.push_back(tensor.tensor != TensorClass::dy);
    }
    allocate_shared();
    weights_ = WeightList(
        plan_, {kept_in_, gradient, moment_element(recipe_.moment_m), moment_element(recipe_.moment_v)},
        *memory_, place_, [&](const ParameterSpec& p, int number) -> std::optional<WeightBlock> {
            if (!spec_.ranks.sharded()) return std::nullopt;
            const Shape whole = shape_of(static_cast<int>(p.shape[0]), static_cast<int>(p.shape[1]));
            return make_block(*p.operand, whole, [&](ArmPart part) { return memory_->take(part, number); });
        });
    embedding_ = &weights_.matrix("embedding");
    if (shape_.tied)
        head_gradient_ = Parameters(Element::f32, embedding_->shape, memory_->take(ArmPart::head_gradient));
    allocate_arm();
    const int blocks = static_cast<int>(shape_.blocks);
    add_norm(norm_, 2 * blocks + 1, "norm");
    for (int b = 1; b <= blocks; ++b) {
        auto& block = blocks_.emplace_back(std::make_unique<Block>());
        add_norm(block->norm1, 2 * b - 1, std::to_string(b) + ".norm1");
        add_norm(block->norm2, 2 * b, std::to_string(b) + ".norm2");
    }
    for (std::size_t b = 0; b < shape_.blocks; ++b)
        allocate_block(*blocks_[b], static_cast<int>(b) + 1,
                       b + 1 < shape_.blocks ? blocks_[b + 1]->norm1.gradient : norm_.gradient);
    add_linear(head_, "head", static_cast<int>(shape_.vocabulary), static_cast<int>(shape_.d));
    head_.x.of_norm = true;
    sources_[head_.x.id.index] = [this](const ArmState*, cudaStream_t stream) {
        return norm_source(norm_, head_.x.shape, stream);
    };
    sources_[head_.dy.id.index] = [this](const ArmState* arm, cudaStream_t stream) -> Launch {
        return
            [source = loss_source(arm), shape = head_.dy.shape, stream](const CastTarget& target, Pass pass) {
                cast_token_gradient(source, shape, target, pass, stream);
            };
    };
    // A step's: two a block, and the end of the updates; of several ranks one for each linear, and what has none.
    const std::size_t events = place_.several() ? 4 * shape_.blocks + 8 : 2 * shape_.blocks + 1;
    for (std::size_t i = 0; i < events; ++i) events_.emplace_back();
}

void TransformerArm::allocate_arm() {
    y_ = memory_->take(ArmPart::product);
    dx_ = memory_->take(ArmPart::product_gradient);
    logits_ = memory_->take(ArmPart::logits);
    row_stats_ = memory_->buffer<float2>(ArmPart::row_stats);
    row_loss_ = memory_->buffer<double>(ArmPart::row_loss);
    row_correct_ = memory_->buffer<std::uint8_t>(ArmPart::row_correct);
    channel_amax_ = memory_->buffer<std::uint32_t>(ArmPart::channel_amax);
    square_partials_ = memory_->buffer<double>(ArmPart::square_partials);
    clip_factor_ = memory_->buffer<float>(ArmPart::gradient_factor);
    if (place_.several()) clip_factor_.upload(std::vector<float>{1.0F / static_cast<float>(place_.count)});
    evaluation_states_ = memory_->buffer<ScaleState>(ArmPart::evaluation_states);
    evaluation_arm_ = memory_->buffer<ArmState>(ArmPart::evaluation_step);
    evaluation_results_ = memory_->buffer<StepResult>(ArmPart::evaluation_results);
    scratch_ = memory_->take(ArmPart::scratch);
    rotated_ = memory_->take(ArmPart::rotated);
    const RotaryTable<float> table(shape_.context, shape_.head_size());
    cos_ = memory_->buffer<float>(ArmPart::cosines);
    sin_ = memory_->buffer<float>(ArmPart::sines);
    cos_.upload(table.cos().values);
    sin_.upload(table.sin().values);
}

void TransformerArm::make_plans(cudaStream_t stream, const Preparation& preparation) {
    const auto plan = [&](Linear& linear, const std::string& name) {
        const Recipe recipe = plan_.recipe_of(recipe_, linear.x.id);
        LayerProducts products =
            products_of(recipe, engine_, linear.x.shape.padded_rows, padded(linear.in), padded(linear.out));
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
    const auto all = [&](const Parameters& part, const MatrixParameter& p) {
        return whole(part, p.shape, p.own(), side_.get());
    };
    ArmCheckpoint out{
        .recipe = recipe_text(recipe_), .parameters = weights_.read(all), .scales = scale_checkpoints()};
    if (recipe_.master != MasterWeights::none) return out;
    const std::vector<ScaleState> states = states_.download();
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
        if (const auto operand = plan_.parameters[i].operand)
            out.parameters[i].storage_scale = states[operand->index].scale;
    return out;
}

void TransformerArm::restore(const ArmCheckpoint& checkpoint, int steps_done) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    weights_.write(checkpoint.parameters, [&](const std::vector<float>& whole, const MatrixParameter& p) {
        return part_of(whole, p.own());
    });
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
        gather_weights(context);
        forward(context);
        loss(context);
        states_now_ = states_.get();
        evaluates_ = false;
        wait_for(place_, stream, "an evaluation");
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
    return out;
}

}  // namespace fp8lab::cuda
