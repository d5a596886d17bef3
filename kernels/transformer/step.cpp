// The launches of one step, in order.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "kernels/device/random_fill.h"
#include "kernels/device/ranges.h"
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {
namespace {

// The columns [first, first + to.cols) of `from`, FP32.
void copy_columns(const void* from, Shape shape, int first, const Slot& to, cudaStream_t stream) {
    const auto pitch = [](int cols) { return static_cast<std::size_t>(cols) * sizeof(float); };
    check(cudaMemcpy2DAsync(const_cast<void*>(to.values), pitch(to.shape.padded_cols),
                            static_cast<const float*>(from) + first, pitch(shape.padded_cols),
                            pitch(to.shape.cols), static_cast<std::size_t>(shape.rows),
                            cudaMemcpyDeviceToDevice, stream),
          "columns");
}

HeadMatrix heads(const void* values, int stride, int first = 0) {
    return {static_cast<float*>(const_cast<void*>(values)) + first, stride};
}
float* values_of(const Slot& slot) { return static_cast<float*>(slot.value.get()); }
HeadMatrix heads(const Slot& slot) { return heads(slot.for_first(), slot.shape.padded_cols); }

}  // namespace

// Weights that the optimiser casts are ready, unless the aligned channel was put back since.
bool TransformerArm::recast(const Slot& weights) const {
    return !cast_by_optimiser(weights) || aligned() || recipe_.act == SwigluForm::smooth;
}

void TransformerArm::multiply(Linear& linear, void* y, const StepContext& step) {
    cast_unless_done(linear.x, step);
    if (linear.gathered && step.main != step.side)
        check(cudaStreamWaitEvent(step.main, linear.gathered->get()), "cudaStreamWaitEvent");
    if (casts_weights(linear)) cast_now(linear.w, step);
    watched(Part::gemm, step.main, [&] {
        linear.fprop->run(linear.x.for_first(), linear.w.for_first(), y, factors(linear.x, false),
                          factors(linear.w, false), step.main);
    });
    step.tell(Part::gemm);
    round_emulated(y, shape(linear.out), recipe_.out, step);
}

void TransformerArm::multiply_back(Linear& linear, void* dx, const StepContext& step) {
    cast_unless_done(linear.dy, step);
    watched(Part::gemm, step.main, [&] {
        linear.dgrad->run(linear.dy.for_first(), linear.w.for_second(), dx, factors(linear.dy, false),
                          factors(linear.w, true), step.main);
    });
    step.tell(Part::gemm);
    round_emulated(dx, shape(linear.in), recipe_.out, step);
    watched(Part::gemm, step.main, [&] {
        linear.wgrad->run(linear.dy.for_second(), linear.x.for_second(), linear.dw->get(),
                          factors(linear.dy, true), factors(linear.x, true), step.main);
    });
    step.tell(Part::gemm);
    round_emulated(linear.dw->get(), linear.w.shape, recipe_.wgrad, step);
    if (aligned()) hold_gradient(linear, step);
}

void TransformerArm::add(const Norm& from, const void* y, Norm& to, const Slot* reader,
                         const StepContext& step) {
    const auto cast = cast_with_norm(reader, step);
    add_and_measure(
        {from.stream.get(), y, out_, rounds(), to.stream.get(), to.inverse_rms.get(), to.gain->value.get()},
        shape(static_cast<int>(shape_.d)), step.main, cast ? &*cast : nullptr);
    step.tell(Part::norm);
}

void TransformerArm::norm_back(Norm& norm, const void* dy, const Memory* gradient, const Slot* reader,
                               const StepContext& step, const Memory* counters) {
    const auto cast = cast_with_norm(reader, step);
    norm_backward(
        {dy, norm.stream.get(), out_, norm.inverse_rms.get(), norm.gain->value.get(),
         gradient ? gradient->get() : nullptr, norm.gradient.get(), rounds(), norm.gain->partials.get(),
         counters ? static_cast<std::uint32_t*>(counters->get()) : nullptr},
        shape(static_cast<int>(shape_.d)), step.main, cast ? &*cast : nullptr);
    step.tell(Part::norm);
}

void TransformerArm::attend(Block& block, const StepContext& step) {
    const Shape qkv = shape(block.qkv.out);
    rotate_heads(block.qkv_out.get(), out_, qkv, rotary(), Turn::forward, rounds(), step.main);
    step.tell(Part::norm);
    if (block.casts) return attend_with_casts(block, step);
    attention_->forward(block.qkv_out.get(), block.attended.get(),
                        {block.attention_kept.get(), block.attention_forward.get()}, step.main);
    step.tell(Part::attention);
}

void TransformerArm::attend_with_casts(Block& block, const StepContext& step) {
    AttentionCasts& c = *block.casts;
    const Shape qkv = shape(block.qkv.out), d = shape(static_cast<int>(shape_.d));
    const AttentionSizes sizes = attention_sizes();
    copy_columns(block.qkv_out.get(), qkv, 0, c.q, step.main);
    copy_columns(block.qkv_out.get(), qkv, c.q.shape.cols, c.k, step.main);
    copy_columns(block.qkv_out.get(), qkv, c.q.shape.cols + c.k.shape.cols, c.v, step.main);
    for (Slot* slot : {&c.q, &c.k, &c.v}) cast_kept(*slot, step);
    attention_probabilities(heads(c.q), heads(c.k), Element::f32, sizes, values_of(c.p),
                            c.p.shape.padded_cols, step.main);
    step.tell(Part::attention);
    cast_kept(c.p, step);
    attention_output(static_cast<const float*>(c.p.for_first()), c.p.shape.padded_cols, heads(c.v),
                     Element::f32, sizes, rounds(), heads(block.attended.get(), d.padded_cols), step.main);
    step.tell(Part::attention);
}

void TransformerArm::attend_backward(Block& block, const StepContext& step) {
    if (block.casts) return attend_backward_with_casts(block, step);
    // The backward kernel of norm2 has cleared the counters.
    launch_cleared(block.attention_backward.get(), step.main, [&] {
        attention_->backward(block.qkv_out.get(), block.attended.get(), block.dattended.get(),
                             block.dqkv.get(), {block.attention_kept.get(), block.attention_backward.get()},
                             step.main);
    });
    step.tell(Part::attention);
}

void TransformerArm::attend_backward_with_casts(Block& block, const StepContext& step) {
    AttentionCasts& c = *block.casts;
    const AttentionSizes sizes = attention_sizes();
    const int stride = padded(block.qkv.out), p_stride = c.p.shape.padded_cols, k_at = c.q.shape.cols,
              v_at = k_at + c.k.shape.cols;
    cast_kept(c.dout, step);
    attention_value_gradient(static_cast<const float*>(c.p.for_first()), p_stride, heads(c.dout),
                             Element::f32, sizes, false, heads(block.dqkv.get(), stride, v_at), step.main);
    attention_score_gradient(values_of(c.p), p_stride, heads(c.dout), heads(c.v), Element::f32, sizes,
                             values_of(c.ds), step.main);
    step.tell(Part::attention);
    cast_kept(c.ds, step);
    const auto* const ds = static_cast<const float*>(c.ds.for_first());
    attention_query_gradient(ds, p_stride, heads(c.k), Element::f32, sizes, false,
                             heads(block.dqkv.get(), stride), step.main);
    attention_key_gradient(ds, p_stride, heads(c.q), Element::f32, sizes, false,
                           heads(block.dqkv.get(), stride, k_at), step.main);
    step.tell(Part::attention);
}

// Smooth-SwiGLU: one scale per channel before the cast, and the weights of down divided by it.
void TransformerArm::smooth(Block& block, const StepContext& step) {
    if (block.scaled_down.size() == 0) return;
    GateSource plain = gate_source(block);
    plain.channel_scales = nullptr;
    channel_scales(plain, block.down.x.shape, channel_amax_.get(), block.channel_scales.get(), step.main);
    unscale_columns(static_cast<const float*>(block.down.weight->master.get()), block.channel_scales.get(),
                    block.down.w.shape, block.scaled_down.get(), step.main);
    step.tell(Part::norm);
}

void TransformerArm::forward(const StepContext& step) {
    const Shape d = shape(static_cast<int>(shape_.d));
    cuda::gather(tokens(step.arm), static_cast<const float*>(embedding_->master.get()), d, out_, rounds(),
                 blocks_.front()->norm1.stream.get(), step.main);
    step.tell(Part::norm);
    forward_blocks(step, &head_.x);
    multiply(head_, logits_.get(), step);
}

void TransformerArm::forward_blocks(const StepContext& step, const Slot* behind) {
    Block& first = *blocks_.front();
    add(first.norm1, nullptr, first.norm1, &first.qkv.x, step);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        Block& block = *blocks_[b];
        Block* const next = b + 1 < blocks_.size() ? blocks_[b + 1].get() : nullptr;
        multiply(block.qkv, block.qkv_out.get(), step);
        attend(block, step);
        multiply(block.out, y_.get(), step);
        add(block.norm1, y_.get(), block.norm2, &block.gate_up.x, step);
        multiply(block.gate_up, block.gates.get(), step);
        smooth(block, step);
        multiply(block.down, y_.get(), step);
        add(block.norm2, y_.get(), next ? next->norm1 : norm_, next ? &next->qkv.x : behind, step);
    }
}

void TransformerArm::loss(const StepContext& step) {
    token_rows(loss_source(step.arm), shape(static_cast<int>(shape_.vocabulary)), row_stats_.get(),
               row_loss_.get(), row_correct_.get(), step.main);
    // The rows' terms are divided by the number of scored tokens already.
    finish_loss(row_loss_.get(), rows_, 1, row_correct_.get(), rows_,
                evaluates_ ? evaluation_results_.get() : results_.get(), step.arm, step.main);
    step.tell(Part::norm);
}

void TransformerArm::backward(const StepContext& step) {
    multiply_back(head_, dx_.get(), step);
    gradient_is_there(head_);
    norm_back(norm_, dx_.get(), nullptr, &blocks_.back()->down.dy, step);
    backward_blocks(step);
    clear_padding(*embedding_, step.main);
    const auto* const head = shape_.tied ? static_cast<const float*>(head_gradient_.get()) : nullptr;
    gather_backward(tokens(step.arm), blocks_.front()->norm1.gradient.get(), out_,
                    shape(static_cast<int>(shape_.d)), head, static_cast<float*>(embedding_->gradient.get()),
                    step.main);
    step.tell(Part::norm);
}

// gather_backward() leaves padded rows alone, and others have had the memory.
void TransformerArm::clear_padding(const MatrixParameter& parameter, cudaStream_t stream) const {
    const Shape s = parameter.shape;
    if (!memory().shares() || s.rows == s.padded_rows) return;
    const auto row = static_cast<std::size_t>(s.padded_cols) *
                     static_cast<std::size_t>(bytes_of(parameter.gradient.element()));
    check(cudaMemsetAsync(
              static_cast<std::byte*>(parameter.gradient.get()) + row * static_cast<std::size_t>(s.rows), 0,
              row * static_cast<std::size_t>(s.padded_rows - s.rows), stream),
          "padding");
}

void TransformerArm::backward_blocks(const StepContext& step) {
    const Memory* gradient = &norm_.gradient;
    for (std::size_t b = blocks_.size(); b-- > 0;) {
        Block& block = *blocks_[b];
        multiply_back(block.down, block.da.get(), step);
        if (block.scaled_down.size() > 0)
            unscale_columns(static_cast<const float*>(block.down.dw->get()), block.channel_scales.get(),
                            block.down.w.shape, static_cast<float*>(block.down.dw->get()), step.main);
        gradient_is_there(block.down);
        multiply_back(block.gate_up, dx_.get(), step);
        gradient_is_there(block.gate_up);
        norm_back(block.norm2, dx_.get(), gradient, &block.out.dy, step,
                  block.attention_backward.bytes() >= Counters::kBytes ? &block.attention_backward : nullptr);
        multiply_back(block.out, block.dattended.get(), step);
        gradient_is_there(block.out);
        attend_backward_beside_updates(block, step);
        if (block.qkv.dy.in_place()) {
            rotate_heads(block.dqkv.get(), out_, shape(block.qkv.out), rotary(), Turn::back, rounds(),
                         step.main);
            step.tell(Part::norm);
        }
        multiply_back(block.qkv, dx_.get(), step);
        // Where nothing else waits, these wait for the attention of the block before, if there is one.
        const bool now = !waiting_.linears.empty() || b == 0;
        gradient_is_there(block.qkv);
        if (now && (!clips() || place_.several())) update_beside(step);
        norm_back(block.norm1, dx_.get(), &block.norm2.gradient, b > 0 ? &blocks_[b - 1]->down.dy : nullptr,
                  step);
        gradient = &block.norm1.gradient;
    }
}

CudaArm::StepContext TransformerArm::on_main(const StepContext& step) {
    return {step.main, step.main, step.arm, step.with_stats, step.mark};
}
CudaArm::StepContext TransformerArm::on_side(const StepContext& step) {
    return {step.side, step.side, step.arm, step.with_stats, step.mark};
}

void TransformerArm::fill_block_inputs(cudaStream_t stream) {
    const std::size_t bytes =
        elements(shape(static_cast<int>(shape_.d))) * static_cast<std::size_t>(bytes_of(out_));
    fill_random(blocks_.front()->norm1.stream.get(), out_, bytes, 1, stream);
    fill_random(norm_.gradient.get(), out_, bytes, 2, stream);
}

void TransformerArm::enqueue_blocks(cudaStream_t stream, const Mark& mark) {
    const StepContext step{stream, mark ? stream : side_.get(), arm_.get(), false, &mark};
    begin_step();
    forward_blocks(step, nullptr);
    record_tensors(read_forward_, on_main(step));
    Slot& last = blocks_.back()->down.dy;
    if (cast_with_norm(&last, step)) cast_now(last, step);  // the norm behind it has no part in this
    backward_blocks(step);
    optimise_gains(step);
    join(step);
    record_tensors(gradients_, on_main(step));
    step.tell(Part::bookkeeping);
}

void TransformerArm::requantise_weights() {
    const StepContext step{nullptr, nullptr, arm_.get(), true, nullptr};
    const auto ready = [&](Linear& linear) {
        if (linear.weight->block) return send_block(shared(*linear.weight, &linear.w), step.main);
        if (recipe_.master == MasterWeights::none)
            quantize_storage(linear.w, linear.weight->master.get(), Rounding::nearest, step.arm, step.main);
        if (linear.w.cast && !recast(linear.w)) cast_now(linear.w, step);
    };
    for (Linear* linear : linears()) ready(*linear);
}

std::vector<TransformerLinear*> TransformerArm::linears() {
    std::vector<Linear*> out;
    for (const auto& block : blocks_)
        out.insert(out.end(), {&block->qkv, &block->out, &block->gate_up, &block->down});
    out.push_back(&head_);
    return out;
}

void TransformerArm::enqueue(cudaStream_t stream, int steps, bool with_stats, const Mark& mark) {
    const auto named = [](const char* name, const auto& part) {
        const Range range(name);
        part();
    };
    if (steps > kStepsPerLaunch)
        throw Error(ErrorKind::backend, "steps of a launch", fmt::format("{} are too many", steps));
    for (int i = 0; i < steps; ++i) {
        const bool last = i + 1 == steps;
        const StepContext step{stream, mark ? stream : side_.get(), arm_.get() + i, with_stats, &mark};
        begin_step();
        named("gather", [&] { gather_weights(step); });
        named("forward", [&] { forward(step); });
        named("loss", [&] { loss(step); });
        // Before the optimiser casts the next step's weights.
        record_or_share(read_forward_, step);
        named("backward", [&] { backward(step); });
        named("update", [&] { update(step); });
        if (place_.several()) record_or_share(gradients_, step);
        join(step);
        if (aligned()) hold_aligned(stream);
        if (!place_.several()) record_or_share(gradients_, step);
        finish_step(finite_.get(), results_.get(), step.arm, last ? arm_.get() : nullptr, stream, nullptr,
                    moment_counts_.get(), moment_results_.get());
        step.tell(Part::bookkeeping);
    }
}

}  // namespace fp8lab::cuda
