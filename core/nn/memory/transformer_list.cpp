// The allocations of kernels/transformer/arm.cpp, and the phases of kernels/transformer/step.cpp that use them.
#include <algorithm>
#include <string>
#include <utility>

#include "core/nn/memory/lists.h"
#include "core/nn/models/transformer/model.h"
#include "core/scaling/side_cast.h"

namespace fp8lab::cuda {
namespace {

// The order of a step's work. Blocks count from 0, and have as many phases in each direction.
struct Phases {
    static constexpr int kOfBlock = 7;
    int blocks;
    // Forward: qkv, attention, out, add, gate_up, down, add. Backward: down, gate_up, norm2, out, attention, qkv, norm1.
    enum Forward { qkv, attend, out, add1, gate_up, down, add2 };
    enum Backward { down_back, gate_up_back, norm2_back, out_back, attend_back, qkv_back, norm1_back };
    int forward(int block, Forward at) const { return kOfBlock * block + at; }
    int head() const { return kOfBlock * blocks; }  // and the loss
    int head_back() const { return head() + 1; }
    int norm_back() const { return head() + 2; }
    int backward(int block, Backward at) const { return head() + 3 + kOfBlock * (blocks - 1 - block) + at; }
    int embedding() const { return head() + 3 + kOfBlock * blocks; }
    int end() const { return embedding() + 1; }  // the updates are done
};

class TransformerList : public ListMaker {
  public:
    TransformerList(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch,
                    const AttentionBytes& attention);

  private:
    struct Operand {
        int rows, cols;
        int first, last;        // the first GEMM that reads it, and the last
        bool in_place = false;  // it is what another kernel left
        int norm = -1;          // the phase of the norm whose kernel may cast it; -1: none does
    };
    struct Values {  // of x or dy, as above
        bool in_place = false;
        int norm = -1;
    };
    void add_operand(TensorId id, const Operand& how);
    void add_sides(TensorId id, const Operand& how, const Recipe& recipe);
    void add_emulated(TensorId id, const Operand& how, const CastPlan& plan, bool rotated);
    void add_linear(const std::string& gemm, int out, int in, int forward, int backward, Values x, Values dy);
    void add_block(int block, const AttentionBytes& attention);
    void add_attention_casts(int block);
    void add_norm(int number, const std::string& gain, Life stream, Life gradient, int backward);
    void add_parameters();
    void add_arm();
    void add_activations(ArmPart part, int cols, int layer, Life life) {
        add(part, result_ * elements(rows_, cols), layer, TensorClass::x, life);
    }
    int d() const { return static_cast<int>(shape_.d); }
    int ffn() const { return static_cast<int>(shape_.ffn); }
    int vocabulary() const { return static_cast<int>(shape_.vocabulary); }
    int parameter(std::string_view name) const {  // 1-based
        const auto found = std::ranges::find(plan_.parameters, name, &ParameterSpec::name);
        return static_cast<int>(found - plan_.parameters.begin()) + 1;
    }

    const TrainSpec& spec_;
    const Recipe& recipe_;
    const Engine engine_;
    const TransformerShape shape_;
    const ModelPlan plan_;
    const Phases at_;
    const int rows_;  // tokens of a batch
    const std::uint64_t result_;
    std::vector<int> backward_;  // by parameter: the phase that computes its gradient
    std::uint64_t scratch_ = 0, rotated_ = 0;
};

TransformerList::TransformerList(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch,
                                 const AttentionBytes& attention)
    : spec_(spec),
      recipe_(recipe),
      engine_(engine),
      shape_(transformer_shape(spec)),
      plan_(transformer_plan(shape_)),
      at_{static_cast<int>(shape_.blocks)},
      rows_(batch * static_cast<int>(shape_.context)),
      result_(engine == Engine::emulated || recipe.out == OutType::fp32 ? 4 : 2),
      backward_(plan_.parameters.size(), at_.embedding()) {
    using enum Phases::Forward;
    using enum Phases::Backward;
    const int last = at_.blocks - 1;
    // The first stream and the last gradient are what a measurement of the blocks alone begins with.
    add_norm(2 * at_.blocks + 1, "norm", {at_.forward(last, add2), at_.norm_back()}, {}, at_.norm_back());
    for (int b = 0; b < at_.blocks; ++b) add_block(b, attention);
    add_activations(ArmPart::product, d(), 0, {at_.forward(0, out), at_.forward(last, add2)});
    add_activations(ArmPart::product_gradient, d(), 0, {at_.head_back(), at_.backward(0, norm1_back)});
    add_activations(ArmPart::logits, vocabulary(), 0, {at_.head(), at_.head_back()});
    add_linear("head", vocabulary(), d(), at_.head(), at_.head_back(), {.norm = at_.forward(last, add2)}, {});
    add_parameters();
    add_arm();
}

void TransformerList::add_norm(int number, const std::string& gain, Life stream, Life gradient,
                               int backward) {
    add_activations(ArmPart::stream, d(), number, stream);
    add_activations(ArmPart::stream_gradient, d(), number, gradient);
    add(ArmPart::inverse_rms, sizeof(float) * size(rows_), number);
    backward_[size(parameter(gain) - 1)] = backward;
}

void TransformerList::add_block(int block, const AttentionBytes& attention) {
    using enum Phases::Forward;
    using enum Phases::Backward;
    const std::string name = std::to_string(block + 1) + ".";
    const int number = block + 1, qkv_cols = d() + 2 * static_cast<int>(shape_.key_cols());
    const auto f = [&](Phases::Forward at) { return at_.forward(block, at); };
    const auto b = [&](Phases::Backward at) { return at_.backward(block, at); };
    add_norm(2 * block + 1, name + "norm1",
             block == 0 ? Life{} : Life{at_.forward(block - 1, add2), b(norm1_back)},
             {b(norm1_back), block == 0 ? at_.embedding() : at_.backward(block - 1, norm2_back)},
             b(norm1_back));
    add_norm(2 * block + 2, name + "norm2", {f(add1), b(norm2_back)}, {b(norm2_back), b(norm1_back)},
             b(norm2_back));
    add_activations(ArmPart::qkv, qkv_cols, number, {f(qkv), b(attend_back)});
    add_activations(ArmPart::qkv_gradient, qkv_cols, number, {b(attend_back), b(qkv_back)});
    add_activations(ArmPart::attended, d(), number, {f(attend), b(attend_back)});
    add_activations(ArmPart::attended_gradient, d(), number, {b(out_back), b(attend_back)});
    add_activations(ArmPart::gates, 2 * ffn(), number, {f(gate_up), b(gate_up_back)});
    add_activations(ArmPart::gate_gradient, ffn(), number, {b(down_back), b(gate_up_back)});
    add_linear(name + "qkv", qkv_cols, d(), f(qkv), b(qkv_back),
               {.norm = block == 0 ? f(qkv) : at_.forward(block - 1, add2)},
               {.in_place = rotates_back_in_place(
                    engine_, plan_.recipe_of(recipe_, *plan_.find(name + "qkv.dy")), rows_)});
    if (engine_ == Engine::emulated) {
        add_attention_casts(block);
    } else {
        const auto of = [&](ArmPart part, std::uint64_t bytes, TensorClass tensor, Life life) {
            add(part, bytes, number, tensor, life);
        };
        const int forward = f(attend), backward = b(attend_back);
        of(ArmPart::attention_kept, attention.kept, TensorClass::x, {forward, backward});
        of(ArmPart::attention_scratch, attention.forward, TensorClass::x, {forward, forward});
        // The backward kernel of norm2 clears the counters of attention (kernels/device/graph.h).
        of(ArmPart::attention_scratch, attention.backward, TensorClass::dy, {b(norm2_back), backward});
    }
    add_linear(name + "out", d(), d(), f(out), b(out_back), {.in_place = true},
               {.in_place = true, .norm = b(norm2_back)});
    add_linear(name + "gate_up", 2 * ffn(), d(), f(gate_up), b(gate_up_back), {.norm = f(add1)}, {});
    add_linear(name + "down", d(), ffn(), f(down), b(down_back), {},
               {.in_place = true,
                .norm = block + 1 == at_.blocks ? at_.norm_back() : at_.backward(block + 1, norm1_back)});
    if (recipe_.act != SwigluForm::smooth) return;
    add(ArmPart::channel_scales, sizeof(float) * size(padded(ffn())), number);
    add(ArmPart::scaled_weights, sizeof(float) * elements(d(), ffn()), number);
}

void TransformerList::add_attention_casts(int block) {
    const std::string name = std::to_string(block + 1) + ".attention.";
    const int forward = at_.forward(block, Phases::attend),
              backward = at_.backward(block, Phases::attend_back), keys = static_cast<int>(shape_.key_cols()),
              scores = rows_ * static_cast<int>(shape_.heads), context = static_cast<int>(shape_.context);
    const auto of = [&](const char* which, int rows, int cols, bool in_place = false) {
        const bool gradient = which[0] == 'd';
        add_operand(*plan_.find(name + which),
                    {rows, cols, gradient ? backward : forward, backward, in_place});
    };
    of("q", rows_, d());
    of("k", rows_, keys);
    of("v", rows_, keys);
    of("p", scores, context);
    of("ds", scores, context);
    of("do", rows_, d(), true);
}

void TransformerList::add_linear(const std::string& gemm, int out, int in, int forward, int backward,
                                 Values x, Values dy) {
    const auto id = [&](const char* which) { return *plan_.find(gemm + which); };
    add_operand(id(".x"), {rows_, in, forward, backward, x.in_place, x.norm});
    add_operand(id(".w"), {out, in, forward, backward, true});
    add_operand(id(".dy"), {rows_, out, backward, backward, dy.in_place, dy.norm});
    if (shape_.tied && gemm == "head")
        add(ArmPart::head_gradient, sizeof(float) * elements(out, in), 0, TensorClass::x,
            {backward, at_.embedding()});
    else
        backward_[size(parameter(gemm + ".w") - 1)] = backward;
}

void TransformerList::add_operand(TensorId id, const Operand& how) {
    const Recipe recipe = plan_.recipe_of(recipe_, id);
    const TensorClass tensor = plan_.tensor(id).tensor;
    const CastPlan plan = cast_plan(recipe, tensor);
    const int layer = id.index + 1;
    const std::uint64_t n = elements(how.rows, how.cols);
    const bool weight = tensor == TensorClass::w;
    // The optimiser casts weights for the next step.
    Life life = weight ? Life{} : Life{how.first, how.last},
         now = weight ? Life{} : Life{how.first, how.first};
    const auto of = [&](ArmPart part, std::uint64_t bytes, Life during) {
        add(part, bytes, layer, tensor, during);
    };
    if (is_split(recipe, tensor)) return add_sides(id, how, recipe);
    of(ArmPart::stats, stats_blocks(how.rows, how.cols) * kCastSumsBytes, {});
    if (engine_ == Engine::emulated) return add_emulated(id, how, plan, recipe.rht && !weight);
    if (gemm_engine(engine_, recipe_of_gemm(recipe, gemm_of(tensor, Along::cols))) == Engine::bf16) {
        const bool narrow =  // weights that are kept in BF16 are read where they are
            weight && spec_.state == StateType::bf16 && !(shape_.tied && plan_.gemm(id).name == "head");
        if (how.norm >= 0) life.first = how.norm;
        if (weight ? !narrow : !how.in_place) of(ArmPart::first, 2 * n, life);
        return;
    }
    const ScaleMode mode = scale_mode_of(plan);
    if (how.norm >= 0 && mode == ScaleMode::tensor && how.cols <= kWidestCastNorm)
        life.first = now.first = how.norm;
    of(ArmPart::first, n, now);    // fprop of x, dgrad of dy
    of(ArmPart::second, n, life);  // wgrad
    add_scales(mode, how.rows, how.cols, layer, tensor);
    if (mode == ScaleMode::block32 && !weight) of(ArmPart::value, 4 * n, now);
}

// A cast of its own for each GEMM; the norm's kernel may do the first.
void TransformerList::add_sides(TensorId id, const Operand& how, const Recipe& recipe) {
    const TensorClass tensor = plan_.tensor(id).tensor;
    const bool weight = tensor == TensorClass::w;
    for (const Along along : {Along::cols, Along::rows}) {
        const bool first = along == Along::cols;
        Side side{.engine = gemm_engine(engine_, recipe_of_gemm(recipe, gemm_of(tensor, along))),
                  .plan = side_cast(recipe, tensor, along).plan,
                  .along = along,
                  .in_place = how.in_place && !weight};
        if (!weight) {
            side.value = {how.first, how.first};
            side.operand = {how.first, first ? how.first : how.last};
            const bool by_norm =
                side.engine == Engine::bf16 ||
                (scale_mode_of(side.plan) == ScaleMode::tensor && how.cols <= kWidestCastNorm);
            if (first && how.norm >= 0 && by_norm) side.operand.first = how.norm;
        }
        add_side(side, how.rows, how.cols, id.index + 1, tensor);
    }
}

// Emulated casts leave the padding alone: what has some has its own memory.
void TransformerList::add_emulated(TensorId id, const Operand& how, const CastPlan& plan, bool rotated) {
    const TensorClass tensor = plan_.tensor(id).tensor;
    const bool whole = how.rows == padded(how.rows) && how.cols == padded(how.cols);
    const Life life = tensor == TensorClass::w || !whole ? Life{} : Life{how.first, how.last};
    const std::uint64_t n = elements(how.rows, how.cols);
    const auto of = [&](ArmPart part) { add(part, 4 * n, id.index + 1, tensor, life); };
    // 16x16 blocks are the same along both dimensions: one cast.
    const bool one_cast = plan.granularity == Granularity::tensor ||
                          (plan.granularity == Granularity::block16 && plan.square_blocks);
    if (!how.in_place) of(ArmPart::value);
    const bool cast = plan.format->name != "fp32";
    if (cast) of(ArmPart::first);
    if (cast && !one_cast) of(ArmPart::second);
    scratch_ = std::max(scratch_, emulation_scratch_bytes(plan, padded(how.rows), how.cols));
    if (rotated) rotated_ = std::max(rotated_, 4 * n);
}

void TransformerList::add_parameters() {
    const std::uint64_t narrow = spec_.state == StateType::bf16 ? 2 : 4,
                        gradient = gradient_bytes(spec_, recipe_, engine_);
    const bool moments = spec_.optimizer == OptimizerKind::adamw;
    const int ranks = spec_.ranks.count;
    std::uint64_t partials = 0, bucket = 0;
    const auto squares = [](std::uint64_t n) { return (n + kSquaresOfBlock - 1) / kSquaresOfBlock; };
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
        const ParameterSpec& p = plan_.parameters[i];
        const int number = static_cast<int>(i) + 1, cols = static_cast<int>(p.shape.back());
        const auto of = [&](ArmPart part, std::uint64_t bytes, Life life = {}) {
            add(part, bytes, number, TensorClass::x, life);
        };
        const Life computed = {backward_[i], at_.end()};
        if (p.shape.size() == 2) {
            const int rows = static_cast<int>(p.shape.front());
            const bool wide = p.name == "embedding";  // it is gathered in FP32
            const bool cut = spec_.ranks.sharded() && !wide;
            const std::uint64_t each = cut ? block_rows(size(rows), ranks) : size(rows);
            const int own = static_cast<int>(each);
            const std::uint64_t n = elements(rows, cols), owned = elements(own, cols);
            of(ArmPart::master, (wide ? 4 : narrow) * owned);
            if (!wide) of(ArmPart::weight_gradient, gradient * n, computed);
            if (wide && ranks == 1) of(ArmPart::weight_gradient, 4 * n, computed);
            const auto moment = [&](const FormatInfo* format) {
                if (wide && !(format && p.operand)) return 4 * n;
                return moment_bytes(spec_, p.operand ? format : nullptr, own, cols);
            };
            if (moments) of(ArmPart::m, moment(recipe_.moment_m));
            if (moments) of(ArmPart::v, moment(recipe_.moment_v));
            if (wide) bucket += n;
            if (!wide && ranks > 1)
                add_ranked(spec_,
                           {recipe_, plan_.recipe_of(recipe_, *p.operand), engine_, rows, cols, computed},
                           number);
            partials += cut ? size(ranks) * squares(each * size(padded(cols))) : squares(n);
        } else {
            const std::uint64_t bytes = sizeof(float) * size(padded(cols));
            of(ArmPart::bias, bytes);
            of(ArmPart::bias_gradient, bytes);
            of(ArmPart::bias_before, bytes);
            if (moments) of(ArmPart::bias_m, bytes);
            if (moments) of(ArmPart::bias_v, bytes);
            // The update reads all of them, also where the blocks alone are measured.
            of(ArmPart::bias_partials, size(strips_of(rows_, cols)) * bytes,
               p.name == "norm" ? Life{} : computed);
            bucket += size(padded(cols));
            partials += squares(size(padded(cols)));
        }
    }
    add_bucket(spec_, bucket, {at_.embedding(), at_.end()});
    if (spec_.clip > 0) add(ArmPart::square_partials, sizeof(double) * partials);
    if (spec_.clip > 0 || ranks > 1) add(ArmPart::gradient_factor, sizeof(float));
}

void TransformerList::add_arm() {
    const std::size_t casts = plan_.tensors.size() + split_tensors(plan_, recipe_), rows = size(rows_),
                      angles = sizeof(float) * shape_.context * shape_.head_size() / 2;
    add_shared(spec_, plan_, recipe_);
    add(ArmPart::row_stats, 2 * sizeof(float) * rows);
    add(ArmPart::row_loss, sizeof(double) * rows);
    add(ArmPart::row_correct, rows);
    if (recipe_.act == SwigluForm::smooth)
        add(ArmPart::channel_amax, sizeof(std::uint32_t) * size(padded(ffn())));
    add(ArmPart::evaluation_states, casts * kScaleStateBytes);
    add(ArmPart::evaluation_step, kArmStateBytes);
    add(ArmPart::evaluation_results, kRecordSlots * kStepResultBytes);
    add(ArmPart::cosines, angles);
    add(ArmPart::sines, angles);
    add(ArmPart::scratch, scratch_);
    add(ArmPart::rotated, rotated_);
}

}  // namespace

AttentionBytes materialised_attention(const TrainSpec& spec, int batch) {
    const TransformerShape shape = transformer_shape(spec);
    const std::uint64_t p = sizeof(float) * size(batch) * shape.heads * shape.context *
                            size(padded(static_cast<int>(shape.context)));
    return {.kept = p, .forward = 0, .backward = p};
}

AttentionBytes flash_attention(const TrainSpec& spec, int batch) {
    const TransformerShape shape = transformer_shape(spec);
    const std::uint64_t tokens = size(batch) * shape.context, rows = sizeof(float) * tokens * shape.heads;
    return {.kept = rows, .forward = 0, .backward = rows + sizeof(float) * tokens * shape.d};
}

std::vector<Allocation> transformer_list(const TrainSpec& spec, const Recipe& recipe, Engine engine,
                                         int batch, const AttentionBytes& attention) {
    return std::move(TransformerList(spec, recipe, engine, batch, attention).list);
}

}  // namespace fp8lab::cuda
