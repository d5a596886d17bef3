#include "core/nn/memory/cpu_memory.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/models/moe/model.h"
#include "core/nn/models/transformer/model.h"
#include "core/nn/tasks.h"
#include "core/scaling/side_cast.h"

namespace fp8lab {
namespace {

constexpr double kFloat = sizeof(float);

double parameter_elements(const TrainSpec& spec) {
    double n = 0;
    for (const ParameterSpec& p : model_plan(spec).parameters) n += static_cast<double>(p.elements());
    return n;
}

// Values, gradients and, with AdamW, two moments. A tied head has a gradient of its own.
double state_bytes(const TrainSpec& spec) {
    const double copies = spec.optimizer == OptimizerKind::adamw ? 4 : 2;
    double n = copies * parameter_elements(spec);
    if (spec.model != "mlp" && spec.sizes.at("tie") == 1)
        n += static_cast<double>(spec.vocabulary) * spec.sizes.at("d");
    return kFloat * n;
}

// Elements of the tensors that a step holds, and of the operands of its GEMMs in the order of ModelPlan::tensors.
struct Held {
    double forward = 0, backward = 0;
    std::vector<double> operands;
};

// `rows` of the forward pass; the backward pass has `trained` of them.
Held mlp_held(const TrainSpec& spec, double rows, double trained) {
    Held held;
    const std::size_t layers = spec.layers.size() - 1;
    double widest = 0;
    for (std::size_t l = 0; l < layers; ++l) {
        const double in = spec.layers[l], out = spec.layers[l + 1];
        const bool last = l + 1 == layers;
        held.forward += rows * (in + (last ? 0 : out));  // x, and the slope of the activation
        held.backward += trained * out;
        held.operands.insert(held.operands.end(), {rows * in, in * out, trained * out});
        widest = std::max(widest, out);
    }
    held.forward += rows * widest;
    held.backward += trained * spec.layers.back();
    return held;
}

// A linear layer of so many rows.
void add_linear(Held& held, double rows, double trained, double out, double in) {
    held.operands.insert(held.operands.end(), {rows * in, in * out, trained * out});
}

// What a gated MLP holds besides its input, the gradient of its output and those of its inputs.
void add_gated_mlp(Held& held, double rows, double trained, double d, double f) {
    held.forward += rows * 4 * f;
    held.backward += trained * 3 * f;
    add_linear(held, rows, trained, 2 * f, d);  // gate_up
    add_linear(held, rows, trained, d, f);      // down
}

// `feed_forward` adds what is between the second norm of a block and the residual stream.
template <class AddFeedForward>
Held decoder_held(const TransformerShape& s, double rows, double trained,
                  const AddFeedForward& feed_forward) {
    Held held;
    const auto d = static_cast<double>(s.d), k = static_cast<double>(s.key_cols()),
               v = static_cast<double>(s.vocabulary);
    const double scores = static_cast<double>(s.heads * s.context);  // of a row
    for (std::size_t b = 0; b < s.blocks; ++b) {
        // Two norms and what they give, q k v together and apart, the probabilities, what attention and the block give.
        held.forward += rows * (2 * d + 2 * d + 2 * (d + 2 * k) + scores + 2 * d);
        held.backward += trained * (7 * d + (d + 2 * k) + (d + 2 * k) + scores);
        add_linear(held, rows, trained, d + 2 * k, d);  // qkv
        held.operands.insert(held.operands.end(), {rows * d, rows * k, rows * k, rows * scores,
                                                   trained * scores, trained * d});  // q k v p ds do
        add_linear(held, rows, trained, d, d);                                       // out
        feed_forward(held);
    }
    held.forward += rows * (3 * d + v);
    held.backward += trained * (2 * d + 2 * v);
    add_linear(held, rows, trained, v, d);
    return held;
}

Held transformer_held(const TrainSpec& spec, double rows, double trained) {
    const TransformerShape s = transformer_shape(spec);
    return decoder_held(s, rows, trained, [&](Held& held) {
        add_gated_mlp(held, rows, trained, static_cast<double>(s.d), static_cast<double>(s.ffn));
    });
}

// The tokens of all experts together are `active` times those of the batch. An expert has more in some steps than in others,
// and a vector that grows by a few rows has room for twice as many.
Held moe_held(const TrainSpec& spec, double rows, double trained) {
    const MoeShape s = moe_shape(spec);
    const auto d = static_cast<double>(s.d), f = static_cast<double>(s.ffn),
               e = static_cast<double>(s.experts),
               k = static_cast<double>(s.active) * (s.active < s.experts ? 2 : 1);
    return decoder_held(s, rows, trained, [&](Held& held) {
        held.forward += rows * (e + 2 * d + k * (2 * d + 4));
        held.backward += trained * (e + k * (2 * d + 1));
        add_linear(held, rows, trained, e, d);
        for (std::size_t i = 0; i < s.experts; ++i) add_gated_mlp(held, rows * k / e, trained * k / e, d, f);
        if (s.shared > 0) {
            held.forward += rows * d;
            held.backward += trained * d;
            add_gated_mlp(held, rows, trained, d, static_cast<double>(s.shared) * f);
        }
    });
}

Held held_by(const TrainSpec& spec, double rows, double trained) {
    if (spec.model == "mlp") return mlp_held(spec, rows, trained);
    return spec.model == "moe" ? moe_held(spec, rows, trained) : transformer_held(spec, rows, trained);
}

// In the first layer of an MLP no GEMM reads dy along its columns, nor w along its rows.
bool reads(const TrainSpec& spec, std::uint16_t tensor, TensorClass of, Along along) {
    return spec.model != "mlp" || tensor > 2 || of == TensorClass::x ||
           (along == Along::cols) == (of == TensorClass::w);
}

// Whether ranks get the cast of a weight instead of casting it.
bool sends_casts(const TrainSpec& spec, const ModelPlan& plan, TensorId id, const Recipe& here) {
    const auto weight = std::ranges::find(plan.parameters, std::optional(id), &ParameterSpec::operand);
    return spec.ranks.sharded() && weight != plan.parameters.end() && plan.only_gemms_read(*weight) &&
           is_element(sent_format(spec.ranks, here));
}

// A tensor that the recipe casts has its cast beside it: one for both GEMMs, or one for each where they are different ones.
// What is rotated before, one at a time.
double cast_bytes(const TrainSpec& spec, const ModelPlan& plan, const Held& held, const Recipe& recipe) {
    double n = 0, rotated = 0;
    for (std::uint16_t i = 0; i < plan.tensors.size(); ++i) {
        const Recipe here = plan.recipe_of(recipe, {i});
        const TensorClass tensor = plan.tensors[i].tensor;
        const bool split = is_split(here, tensor);
        if (sends_casts(spec, plan, {i}, here)) continue;
        for (const Along along : {Along::cols, Along::rows}) {
            if (split ? !reads(spec, i, tensor, along) : along == Along::rows) continue;
            const SideCast cast = side_cast(here, tensor, along);
            if (cast.plan.format->name != "fp32") n += held.operands[i];
            if (cast.rotated && (!split || along == Along::rows))
                rotated = std::max(rotated, held.operands[i]);
        }
    }
    return kFloat * (n + rotated);
}

// The sums of the gradients, in FP32 and in float64, and the casts of weights that are kept, one for each GEMM.
double accumulation_bytes(const TrainSpec& spec, const ModelPlan& plan, const Held& held,
                          const Recipe& recipe) {
    const Accumulation& a = spec.accumulate;
    const bool cut = a.micro_batches > 1;
    double bytes = cut ? (kFloat + sizeof(double)) * parameter_elements(spec) : 0;
    if (a.weights == WeightCache::each || (a.weights == WeightCache::once && !cut)) return bytes;
    for (std::uint16_t i = 0; i < plan.tensors.size(); ++i) {
        if (plan.tensors[i].tensor != TensorClass::w) continue;
        const Recipe here = plan.recipe_of(recipe, {i});
        if (sends_casts(spec, plan, {i}, here)) continue;
        for (const Along along : {Along::cols, Along::rows})
            if (reads(spec, i, TensorClass::w, along) &&
                is_element(*side_cast(here, TensorClass::w, along).plan.format))
                bytes += kFloat * held.operands[i];
    }
    return bytes;
}

// The gradients of each of several ranks, and what it has gathered of the weights: codes, and their values, which all share
// unless each divides by a scale of its own.
double rank_bytes(const TrainSpec& spec, const ModelPlan& plan, const Recipe& recipe) {
    const double count = spec.ranks.count;
    if (spec.ranks.count == 1) return 0;
    double bytes = count * kFloat * parameter_elements(spec);
    for (const ParameterSpec& p : plan.parameters) {
        if (!spec.ranks.sharded() || !plan.only_gemms_read(p)) continue;
        const FormatInfo& sent = sent_format(spec.ranks, plan.recipe_of(recipe, *p.operand));
        const bool own = is_element(sent) && spec.ranks.weight_scale == WeightScale::own;
        bytes +=
            static_cast<double>(p.elements()) * (count * storage_bytes(sent) + (own ? count : 1) * kFloat);
    }
    return bytes;
}

// A network of its own for each arm, with a gradient for each weight, and its forward pass.
double teacher_bytes(const TrainSpec& spec, double trained) {
    if (spec.teacher.empty()) return 0;
    return kFloat * (2 * parameter_elements(spec) + held_by(spec, trained, 0).forward);
}

// Rows of a batch: samples, or tokens.
double rows_of(const TrainSpec& spec, double batch) {
    return batch * (spec.model == "mlp" ? 1 : spec.sizes.at("context"));
}

}  // namespace

double cpu_training_bytes(const TrainSpec& spec) {
    const ModelPlan plan = model_plan(spec);
    const bool tokens = spec.model != "mlp";
    // Data that are not trained on come in batches of their own size.
    const int ranks = spec.ranks.count, parts = ranks * spec.accumulate.micro_batches;
    const double trained = rows_of(spec, spec.batch / parts),
                 rows = tokens ? std::max(trained, rows_of(spec, static_cast<double>(kHeldOutSequences)))
                               : trained;
    const Held held = held_by(spec, rows, trained);
    // The batch, and its parts.
    double bytes = tokens ? 0 : kFloat * spec.batch * (spec.layers.front() + spec.layers.back());
    if (parts > 1) bytes *= 2;
    if (spec.task == TaskKind::noise)
        bytes += kFloat * spec.batch * (spec.layers.front() + spec.layers.back());
    for (const Recipe& recipe : spec.arms)
        bytes +=
            state_bytes(spec) + teacher_bytes(spec, trained) + kFloat * (held.forward + held.backward) +
            ranks * (cast_bytes(spec, plan, held, recipe) + accumulation_bytes(spec, plan, held, recipe)) +
            rank_bytes(spec, plan, recipe);
    return bytes;
}

double checkpoint_bytes(const TrainSpec& spec) {
    // The values of each arm; of one at a time the tensors and the bytes of its file.
    const double values = (spec.optimizer == OptimizerKind::adamw ? 3 : 1) * parameter_elements(spec);
    return kFloat * values * (static_cast<double>(spec.arms.size()) + 2);
}

double instrument_bytes(const TrainSpec& spec) {
    if (find_model(spec.model).tokens) return 0;
    return kFloat * parameter_elements(spec) * static_cast<double>(spec.arms.size());
}

double cpu_inference_bytes(const TrainSpec& spec, std::size_t rows) {
    const auto count = static_cast<double>(rows);
    const Held held = held_by(spec, count, 0);
    double n = held.forward;
    for (const double elements : held.operands) n += elements;
    return kFloat * (2 * parameter_elements(spec) + n);
}

}  // namespace fp8lab
