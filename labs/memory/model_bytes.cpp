#include "labs/memory/model_bytes.h"

#include <algorithm>
#include <numeric>

namespace fp8lab::memory {
namespace {

// id, label, kind, layers, hidden, ffn, heads, KV heads, vocabulary
const std::array kModels = {
    ModelShape{"seed7b", "7B, exactly 7 × 10^9", Kind::llama, 32, 4096, 11008, 32, 32, 32000, false, 7e9},
    ModelShape{"llama2-7b", "Llama 2 7B", Kind::llama, 32, 4096, 11008, 32, 32, 32000},
    ModelShape{"llama3-8b", "Llama 3 8B", Kind::llama, 32, 4096, 14336, 32, 8, 128256},
    ModelShape{"llama3-70b", "Llama 3 70B", Kind::llama, 80, 8192, 28672, 64, 8, 128256},
    ModelShape{"gpt-7b", "GPT 7B", Kind::gpt, 32, 4096, 16384, 32, 32, 50257},
    ModelShape{"gpt3-175b", "GPT-3 175B", Kind::gpt, 96, 12288, 49152, 96, 96, 50257},
};

constexpr double kPositions = 2048;  // learned positions of the GPT kind

double scores_bytes(const ModelShape& model, const Load& load) {
    return load.scores ? 5 * model.heads * load.sequence : 0;
}

// Bytes per token of what a layer keeps without its attention scores, and how many of them are FP8.
struct LayerParts {
    double all = 0, fp8 = 0;
};
LayerParts parts_of(const ModelShape& model, Inputs inputs, const Load& load) {
    const double h = model.hidden, f = model.ffn;
    const bool fp8 = inputs != Inputs::bf16;
    const double width = inputs == Inputs::fp8 ? 1 : 2;  // of an input of a linear
    const double attended = model.heads * model.head_dim();
    const double linears = h + attended + h + f;  // QKV, projection, FC1, FC2
    const double norms = 2 * h + 2 * h, q = 2 * attended;
    const double kv = 2 * 2 * model.kv_heads * model.head_dim();
    const double nonlinear = model.kind == Kind::gpt ? 2 * f : 2 * f + 2 * f;  // GELU; SwiGLU's gate and up
    const double masks = model.kind == Kind::gpt ? h + h : 0;                  // of dropout, 1 byte each
    // Flash attention keeps the log-sum-exp. The projection's input is its output O, which its backward pass
    // reads in 16 bits.
    const double flash = load.scores ? 0 : 4 * model.heads + (fp8 ? 2 * attended : 0);
    return {norms + width * linears + q + kv + nonlinear + masks + flash, fp8 ? width * linears : 0};
}

double share(bool sharded, double gpus) { return sharded ? 1 / gpus : 1; }

// The part of a state that one GPU keeps.
double kept_share(Row row, const Load& load) {
    const bool optimiser = row == Row::master || row == Row::m || row == Row::v,
               gradient = row == Row::gradients || row == Row::accumulator;
    return share(load.zero >= (optimiser ? 1 : gradient ? 2 : 3), load.gpus);
}

}  // namespace

double ModelShape::parameters() const {
    if (fixed_parameters > 0) return fixed_parameters;
    if (counted) return counted->parameters;
    const double h = hidden, f = ffn;
    if (kind == Kind::gpt)
        return vocabulary * h + kPositions * h + layers * (4 * h * h + 2 * h * f + 9 * h + f) + 2 * h;
    return (tied ? 1 : 2) * vocabulary * h +
           layers * (2 * h * h + 2 * h * h * kv_heads / heads + 3 * h * f + 2 * h) + h;
}

std::span<const ModelShape> models() { return kModels; }

const ModelShape* find_model(std::string_view id) {
    const auto found = std::ranges::find(kModels, id, &ModelShape::id);
    return found == kModels.end() ? nullptr : &*found;
}

double layer_bytes(const ModelShape& model, Inputs inputs, const Load& load) {
    if (load.recompute == Recompute::full) return 2 * model.hidden;
    const double scores = load.recompute == Recompute::none ? scores_bytes(model, load) : 0;
    return parts_of(model, inputs, load).all + scores;
}

double layer_sbh(const ModelShape& model, Inputs inputs, const Load& load) {
    return layer_bytes(model, inputs, load) / model.hidden;
}

double activation_bytes(const ModelShape& model, Inputs inputs, const Load& load) {
    double token = model.layers * layer_bytes(model, inputs, load);
    if (load.recompute == Recompute::full) {
        Load whole = load;
        whole.recompute = Recompute::none;
        token += layer_bytes(model, inputs, whole);
    }
    token += 4 * (model.hidden + model.vocabulary);      // last norm, head input, FP32 logits
    if (model.kind == Kind::gpt) token += model.hidden;  // the embedding's dropout mask
    return token * load.tokens();
}

double linear_forward_bytes(const Plan& plan, double in, double out, double tokens) {
    const double input = plan.infers() ? 0 : plan.inputs == Inputs::fp8 ? 1 : 2;
    return in * out * (bytes_of(plan[Row::weights]) + bytes_of(plan[Row::copy])) +
           tokens * (in * input + out * 2);
}

double kv_bytes_per_token(const ModelShape& model, Keep format) {
    if (model.counted) return model.counted->kv_numbers(1) * bytes_of(format);
    return 2 * model.layers * model.kv_heads * (model.hidden / model.heads) * bytes_of(format);
}

double Account::on_gpu() const { return std::accumulate(gpu.begin(), gpu.end(), 0.0); }
double Account::on_cpu() const { return std::accumulate(cpu.begin(), cpu.end(), 0.0); }
double Account::states() const { return std::accumulate(gpu.begin(), gpu.begin() + kStates, 0.0); }

Account account(const Plan& plan, const ModelShape& model, const Load& load, double pcie) {
    Account out;
    const double parameters = model.parameters();
    const auto put = [&](Row row, Place place, double bytes) {
        (place == Place::gpu ? out.gpu : out.cpu)[index(row)] += bytes;
    };
    for (std::size_t i = 0; i < kStates; ++i) {
        const Row row = static_cast<Row>(i);
        const double whole = parameters * bytes_of(plan.states[i]);
        put(row, plan.places[i], whole * kept_share(row, load));
        if (plan.states[i] == Keep::fp32) out.fp32 += whole * kept_share(row, load);
        const bool gathered = i <= index(Row::copy_t) && load.zero >= 3 && load.gpus > 1;
        if (gathered && plan.places[i] == Place::gpu) out.gathered += whole / model.layers;
    }
    if (plan.activations_counted) {
        const double bytes = activation_bytes(model, plan.inputs, load);
        put(Row::activations, plan.inputs_at, bytes);
        const double layers = load.recompute == Recompute::full ? 1 : model.layers;
        out.fp8_activations = layers * parts_of(model, plan.inputs, load).fp8 * load.tokens();
        out.gpu[index(Row::workspace)] = kWorkspace;
    }
    out.gpu[index(Row::workspace)] += out.gathered;
    const double cached = model.counted ? model.counted->kv_numbers(load.sequence) * bytes_of(plan.kv)
                                        : kv_bytes_per_token(model, plan.kv) * load.sequence;
    put(Row::kv, plan.kv_at, cached * load.contexts);
    const bool updates_on_cpu = std::ranges::any_of(std::array{Row::master, Row::m, Row::v}, [&](Row row) {
        return plan.places[index(row)] == Place::cpu && plan[row] != Keep::none;
    });
    if (updates_on_cpu) {
        const double moved = parameters * share(load.zero >= 1, load.gpus) / pcie;
        const double down = moved * bytes_of(plan[Row::gradients]), up = moved * bytes_of(plan[Row::weights]);
        out.offload_s = down + up;
        out.offload_overlapped_s = std::max(down, up);
    }
    return out;
}

}  // namespace fp8lab::memory
