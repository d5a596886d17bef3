#include "core/inference/serve/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/loss.h"
#include "core/nn/streams.h"
#include "core/nn/tasks.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

enum class AttentionOperand : unsigned { q, k, v, p };  // the places of an attention's tensors

std::size_t kv_heads_of(const TrainSpec& spec) {
    const int shared = spec.sizes.at("kv-heads");
    return static_cast<std::size_t>(shared == 0 ? spec.sizes.at("heads") : shared);
}

void scale(Matrix<float>& x, float factor) {
    for (float& value : x.values) value *= factor;
}

// Looks at K and V of a pass in FP32.
class SeenCache final : public GemmCasts<float> {
  public:
    SeenCache(const TokenModel& model, CacheAmaxes& amaxes)
        : plan_(model.model().plan()),
          swiglu_(model.wiring().swiglu),
          heads_(kv_heads_of(model.spec())),
          amaxes_(amaxes) {}
    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) override {
        if (plan_.gemm(id).role != GemmRole::attention) return value;
        const auto place = static_cast<AttentionOperand>(plan_.place(id));
        if (place == AttentionOperand::k) see(amaxes_.k, plan_.gemm(id).block, value);
        if (place == AttentionOperand::v) see(amaxes_.v, plan_.gemm(id).block, value);
        return value;
    }
    void round_output(Matrix<float>&) override {}
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return swiglu_; }

  private:
    void see(std::vector<std::vector<float>>& blocks, int block, const Matrix<float>& value) const {
        const auto at = static_cast<std::size_t>(block);
        if (blocks.size() < at) blocks.resize(at, std::vector<float>(heads_));
        const std::size_t size = value.cols / heads_;
        for (std::size_t r = 0; r < value.rows; ++r)
            for (std::size_t c = 0; c < value.cols; ++c) {
                float& most = blocks[at - 1][c / size];
                most = std::max(most, std::abs(value.row(r)[c]));
            }
    }
    const ModelPlan& plan_;
    SwigluForm swiglu_;
    std::size_t heads_;
    CacheAmaxes& amaxes_;
};

}  // namespace

CacheAmaxes calibrated_cache(TokenModel& model, std::size_t batches) {
    TrainSpec spec = model.spec();
    spec.batch = TokenModel::kTrainSequences;
    const auto task = make_task(spec);
    CacheAmaxes amaxes;
    SeenCache casts(model, amaxes);
    Batch batch;
    for (std::size_t i = 0; i < batches; ++i) {
        task->draw(static_cast<int>(i), batch);
        model.writable().forward(batch, casts);
    }
    return amaxes;
}

double cache_memory(const TokenModel& model, std::size_t sequences) {
    const auto size = [&](const char* name) { return static_cast<double>(model.spec().sizes.at(name)); };
    const double columns = size("d") / size("heads") * static_cast<double>(kv_heads_of(model.spec()));
    return 2 * sizeof(float) * size("blocks") * size("context") * columns * static_cast<double>(sequences);
}

double weights_memory(const TokenModel& model) {
    double weights = 0;
    for (const LayerSize& layer : model.layers()) weights += static_cast<double>(layer.out * layer.in);
    return sizeof(float) * weights;
}

struct Engine::State final : GemmCasts<float> {
    State(std::shared_ptr<TokenModel> of, const EngineSpec& how)
        : model(std::move(of)),
          spec(how),
          plan(model->model().plan()),
          heads(kv_heads_of(model->spec())),
          inputs(spec.both && spec.format ? spec.format : &find_low_format("bf16", "format")),
          casts(plan.tensors.size()) {}

    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) override {
        Matrix<float>& cast = casts[id.index];
        if (plan.gemm(id).role == GemmRole::attention) return of_attention(id, value, cast);
        if (!spec.format) return value;
        if (plan.tensor(id).tensor != TensorClass::w) return cast = lowered_input(value, *inputs);
        if (cast.values.empty()) cast = lowered_weights(value, *spec.format);
        return cast;
    }
    const Matrix<float>& of_attention(TensorId id, const Matrix<float>& value, Matrix<float>& cast) {
        const auto place = static_cast<AttentionOperand>(plan.place(id));
        const auto block = static_cast<std::size_t>(plan.gemm(id).block - 1);
        if (place == AttentionOperand::p || !spec.cache) return value;
        if (place == AttentionOperand::v)
            return spec.v ? cast = low(value, spec.amaxes ? spec.amaxes->v.at(block) : std::vector<float>(),
                                       nullptr)
                          : value;
        cast = value;
        scale(cast, place == AttentionOperand::k ? spec.k_factor : 1 / spec.k_factor);
        if (place == AttentionOperand::q || !spec.k) return cast;
        std::vector<float> amaxes = spec.amaxes ? spec.amaxes->k.at(block) : std::vector<float>();
        for (float& amax : amaxes) amax *= spec.k_factor;
        CastStats stats;
        cast = low(cast, amaxes, &stats);
        k_stats += stats;
        return cast;
    }
    Matrix<float> low(const Matrix<float>& value, const std::vector<float>& amaxes, CastStats* stats) const {
        return cast_for_cache(value, *spec.cache, heads, amaxes, stats);
    }
    void round_output(Matrix<float>&) override {}
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return without_folds(model->wiring().swiglu); }

    Model<float>& to_run() { return own ? *own : model->writable(); }

    std::shared_ptr<TokenModel> model;
    std::unique_ptr<Model<float>> own;  // detached: a copy
    EngineSpec spec;
    const ModelPlan& plan;
    std::size_t heads;
    const LowFormat* inputs;
    std::vector<Matrix<float>> casts;  // by tensor; those of weights stay
    CastStats k_stats;                 // of K
};

Engine::Engine(std::shared_ptr<TokenModel> model, const EngineSpec& spec)
    : state_(std::make_unique<State>(std::move(model), spec)) {
    if (spec.cache && is_calibrated(*spec.cache) && !spec.amaxes)
        throw usage_error("cache", fmt::format("'{}' needs amaxes of training rows", spec.cache->id));
}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::detach() {
    if (!state_->own) state_->own = state_->model->copy();
}

void run_both(const std::function<void()>& first, const std::function<void()>& second) {
    parallel_for(2, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) i == 0 ? first() : second();
    });
}

const TokenModel& Engine::model() const { return *state_->model; }

const Matrix<float>& Engine::decode(const TokenBatch& batch, KvState<float>& state) {
    return state_->to_run().decode(batch, *state_, state);
}

const Matrix<float>& Engine::forward(const TokenBatch& batch) {
    return state_->to_run().forward(batch, *state_);
}

double Engine::saturated_pct_k() const { return state_->k_stats.overflow_pct(); }

double Engine::bits() const {
    constexpr double kFp32 = 32;
    const std::vector<LayerSize>& layers = state_->model->layers();
    return state_->spec.format ? bits_per_weight(layers, uniform_mix(layers.size(), *state_->spec.format))
                               : kFp32;
}

TokenBatch held_out_pieces(const TokenModel& model, std::size_t count, std::size_t length,
                           std::uint64_t seed) {
    const TokenBatch& from = model.data().test;
    if (from.context < length)
        throw usage_error("prompt", fmt::format("of {} tokens is longer than the context", length));
    Rng rng(seed, stream(Draw::data));
    TokenBatch out{.sequences = count, .context = length};
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t sequence = rng.below(static_cast<std::uint32_t>(from.sequences));
        const std::size_t at = rng.below(static_cast<std::uint32_t>(from.context - length + 1));
        const auto begin = from.tokens.begin() + static_cast<std::ptrdiff_t>(sequence * from.context + at);
        out.tokens.insert(out.tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(length));
    }
    return out;
}

void probabilities(std::span<const float> logits, double temperature, std::span<double> p) {
    if (temperature == 0) {
        std::ranges::fill(p, 0.0);
        p[static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin())] = 1;
        return;
    }
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<double>(logits[i]) / temperature;
    softmax<double>(p, p);
}

int drawn(std::span<const double> p, double u) {
    double sum = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        sum += p[i];
        if (p[i] > 0) last = i;
        if (u < sum) return static_cast<int>(i);
    }
    return static_cast<int>(last);
}

}  // namespace fp8lab
