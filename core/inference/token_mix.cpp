#include "core/inference/token_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/tasks.h"

namespace fp8lab {
namespace {

constexpr std::array<ImportanceInfo, 7> kImportances = {
    {{Importance::attention, "attention", "attention received"},
     {Importance::confidence, "confidence", "low confidence"},
     {Importance::first, "first", "first ones"},
     {Importance::last, "last", "last ones"},
     {Importance::rare, "rare", "rare characters"},
     {Importance::random, "random", "at random"},
     {Importance::oracle, "oracle", "oracle"}}};

void cast(const CastPlan& plan, const Matrix<float>& in, Matrix<float>& out) {
    out.resize(in.rows, in.cols);
    quantize(plan, in.values, out.values, {.rows = in.rows, .cols = in.cols, .with_stats = false});
}

// The operands of a pass. A layer whose rows are all in one format is multiplied once; one with rows in both has
// operands of twice the width.
class MixedCasts final : public GemmCasts<float> {
  public:
    enum class Rows { none, low, high, both };  // of a GEMM; none: BF16

    MixedCasts(const ModelPlan& plan, SwigluForm swiglu, const LowFormat& high, const LowFormat& low)
        : rows(plan.gemms.size()),
          plan_(plan),
          swiglu_(swiglu),
          high_(high),
          low_(low),
          cast_(plan.tensors.size()),
          weights_(plan.gemms.size()) {}

    const Matrix<float>& operand(TensorId id, Along, const Matrix<float>& value) override {
        const OperandSpec& tensor = plan_.tensor(id);
        const bool weights = tensor.tensor == TensorClass::w;
        const Rows of = rows[tensor.gemm];
        Matrix<float>& out = cast_[id.index];
        if (of == Rows::none) {
            cast(weights ? bf16_.weights : bf16_.activations, value, out);
            return out;
        }
        if (weights) return weights_of(tensor.gemm, of, value);
        if (of == Rows::both) return both_rows(value, out);
        cast(of == Rows::high ? high_.activations : low_.activations, value, out);
        return out;
    }
    void round_output(Matrix<float>& result) override {
        cast(bf16_.activations, result, rounded_);
        std::swap(result.values, rounded_.values);
    }
    void round_gradient(Matrix<float>&) override {}
    SwigluForm swiglu() const override { return swiglu_; }

    std::vector<Rows> rows;
    std::span<const std::uint8_t> tokens = {};  // of Rows::both

  private:
    struct Weights {
        Matrix<float> low, high, both;
    };

    const Matrix<float>& weights_of(std::size_t gemm, Rows of, const Matrix<float>& value) {
        Weights& w = weights_[gemm];
        if (w.low.values.empty()) {
            cast(low_.weights, value, w.low);
            cast(high_.weights, value, w.high);
            w.both.resize(value.rows, 2 * value.cols);
            for (std::size_t r = 0; r < value.rows; ++r) {
                const auto behind = std::ranges::copy(w.high.row(r), w.both.row(r).begin()).out;
                std::ranges::copy(w.low.row(r), behind);
            }
        }
        return of == Rows::both ? w.both : of == Rows::high ? w.high : w.low;
    }
    const Matrix<float>& both_rows(const Matrix<float>& value, Matrix<float>& out) {
        cast(high_.activations, value, high_rows_);
        cast(low_.activations, value, low_rows_);
        out.resize(value.rows, 2 * value.cols);
        std::ranges::fill(out.values, 0.0F);
        for (std::size_t r = 0; r < value.rows; ++r) {
            const bool high = tokens[r] != 0;
            const auto from = static_cast<std::ptrdiff_t>(high ? 0 : value.cols);
            std::ranges::copy((high ? high_rows_ : low_rows_).row(r), out.row(r).begin() + from);
        }
        return out;
    }

    const ModelPlan& plan_;
    const SwigluForm swiglu_;
    const LowFormat &high_, &low_, &bf16_ = find_low_format("bf16", "format");
    std::vector<Matrix<float>> cast_;  // per tensor
    std::vector<Weights> weights_;     // per GEMM, made in the first pass
    Matrix<float> high_rows_, low_rows_, rounded_;
};

using Rows = MixedCasts::Rows;

bool has(std::uint32_t layers, std::size_t l) { return l < 32 && (layers >> l & 1U) != 0; }
std::size_t weights_of(const LayerSize& layer) { return layer.out * layer.in; }
std::size_t inputs_of(const LayerSize& layer) { return layer.in; }

std::vector<double> attention_received(const TokenModel& model) {
    const TokenBatch& test = model.data().test;
    std::vector<double> out(test.size());
    const ModelPlan& plan = model.model().plan();
    for (int block = 1; block <= plan.blocks; ++block) {
        const auto id = plan.find(fmt::format("{}.attention.p", block));
        if (!id) throw usage_error("--important", "attention: this model has none");
        const std::span<const float> p = model.model().values(*id);
        const std::size_t context = test.context, rows = p.size() / context,
                          heads = rows / (test.sequences * context);
        for (std::size_t r = 0; r < rows; ++r)  // (sequences x heads x context) rows, a column per token read
            for (std::size_t c = 0; c < context; ++c)
                out[r / (heads * context) * context + c] += static_cast<double>(p[r * context + c]);
    }
    return out;
}

std::vector<double> rarity(const TokenModel& model) {
    const auto task = make_task(model.spec());
    std::vector<double> times(static_cast<std::size_t>(model.spec().vocabulary));
    Batch batch;
    for (int i = 0; i < TokenMix::kCountedBatches; ++i) {
        task->draw(i, batch);
        for (const int token : std::get<TokenBatch>(batch).tokens) ++times[static_cast<std::size_t>(token)];
    }
    std::vector<double> out;
    for (const int token : model.data().test.tokens) out.push_back(-times[static_cast<std::size_t>(token)]);
    return out;
}

}  // namespace

std::span<const ImportanceInfo> importances() { return kImportances; }

Importance find_importance(std::string_view name, std::string_view where) {
    const auto hit = std::ranges::find(kImportances, name, &ImportanceInfo::name);
    if (hit != kImportances.end()) return hit->id;
    throw unknown_name(std::string(where), "importance", name, kImportances,
                       [](const ImportanceInfo& one) { return one.name; });
}

struct TokenMix::State {
    std::shared_ptr<TokenModel> model;
    const LowFormat &high, &low;
    MixedCasts casts;
    std::vector<std::size_t> gemms = {};  // of the linears
    std::vector<LayerSize> linears = {};
    Reference reference = {};         // of every token
    std::vector<double> of_low = {};  // divergence of each token with all in LOW
    // Largest first; of every importance but random.
    std::vector<double> attention = {}, doubt = {}, rare = {};

    State(std::shared_ptr<TokenModel> of, const LowFormat& high_format, const LowFormat& low_format)
        : model(std::move(of)),
          high(high_format),
          low(low_format),
          casts(model->model().plan(), model->wiring().swiglu, high, low) {}

    void set_all(Rows to) {
        for (const std::size_t gemm : gemms) casts.rows[gemm] = to;
    }
    std::vector<double> run() { return row_divergences_of(reference, model->pass(casts)); }
    double mean(const std::vector<double>& of_tokens) const {  // of those that count
        double sum = 0;
        std::size_t n = 0;
        for (std::size_t t = 0; t < of_tokens.size(); ++t)
            if (model->data().test.is_scored(t)) sum += of_tokens[t], ++n;
        return sum / static_cast<double>(n);
    }
    double bits(std::size_t l, bool in_high) const {  // per weight
        return bits_per_element((in_high ? high : low).weights, linears[l].out, linears[l].in);
    }
    // The mean of `bits` of each linear, weighted by its elements `size`.
    template <class Bits, class Size>
    double mean_bits(Bits bits, Size size) const {
        double sum = 0, all = 0;
        for (std::size_t l = 0; l < linears.size(); ++l) {
            const auto elements = static_cast<double>(size(linears[l]));
            sum += bits(l) * elements, all += elements;
        }
        return sum / all;
    }
};

TokenMix::TokenMix(std::shared_ptr<TokenModel> model, const LowFormat& high, const LowFormat& low)
    : state_(std::make_unique<State>(std::move(model), high, low)) {
    State& s = *state_;
    const ModelPlan& plan = s.model->model().plan();
    for (std::size_t g = 0; g < plan.gemms.size(); ++g) {
        if (plan.gemms[g].role != GemmRole::linear) continue;
        const auto layer = static_cast<std::size_t>(s.model->wiring().layer_of_gemm[g]);
        s.gemms.push_back(g), s.linears.push_back(s.model->layers()[layer]);
    }
    if (s.linears.empty()) throw usage_error("--mixed-tokens", "this model has no linear layers");
    s.reference = reference_of(s.model->pass(s.casts), true, {});
    s.set_all(Rows::low);
    const Matrix<float>& logits = s.model->pass(s.casts);
    s.of_low = row_divergences_of(s.reference, logits);
    s.doubt = margins_of(logits);
    for (double& margin : s.doubt) margin = -margin;
    s.attention = attention_received(*s.model);
    s.rare = rarity(*s.model);
}

TokenMix::~TokenMix() = default;
TokenMix::TokenMix(TokenMix&&) noexcept = default;
TokenMix& TokenMix::operator=(TokenMix&&) noexcept = default;

std::size_t TokenMix::tokens() const { return state_->model->data().test.size(); }
const std::vector<LayerSize>& TokenMix::linears() const { return state_->linears; }
double TokenMix::all_low() const { return state_->mean(state_->of_low); }
double TokenMix::all_high() {
    state_->set_all(Rows::high);
    return state_->mean(state_->run());
}

std::vector<std::uint8_t> TokenMix::chosen(Importance importance, double share, std::uint64_t seed,
                                           int draw) const {
    if (!(share >= 0 && share <= 1)) throw usage_error("--share", fmt::format("is 0 to 1; got {}", share));
    const State& s = *state_;
    const std::size_t n = tokens(), context = s.model->data().test.context;
    std::vector<double> score(n);
    switch (importance) {
        case Importance::attention:
            score = s.attention;
            break;
        case Importance::confidence:
            score = s.doubt;
            break;
        case Importance::rare:
            score = s.rare;
            break;
        case Importance::oracle:
            score = s.of_low;
            break;
        case Importance::first:
        case Importance::last:
            for (std::size_t t = 0; t < n; ++t)
                score[t] = static_cast<double>(t % context) * (importance == Importance::first ? -1 : 1);
            break;
        case Importance::random:
            Rng rng(seed, static_cast<std::uint64_t>(draw));
            for (double& v : score) v = static_cast<double>(rng.normal());
    }
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t t) { return score[t]; });
    std::vector<std::uint8_t> out(n);
    order.resize(static_cast<std::size_t>(share * static_cast<double>(n)));
    for (const std::size_t t : order) out[t] = 1;
    return out;
}

double TokenMix::divergence(std::span<const std::uint8_t> high) { return state_->mean(divergences(high)); }

std::vector<double> TokenMix::divergences(std::span<const std::uint8_t> high) {
    if (high.size() != tokens()) throw usage_error("tokens", "must have one byte per token");
    state_->set_all(Rows::both);
    state_->casts.tokens = high;
    return state_->run();
}

double TokenMix::divergence_of_layers(std::uint32_t high) {
    State& s = *state_;
    for (std::size_t l = 0; l < s.gemms.size(); ++l)
        s.casts.rows[s.gemms[l]] = has(high, l) ? Rows::high : Rows::low;
    return s.mean(s.run());
}

double TokenMix::share_of_layers(std::uint32_t high) const {
    return state_->mean_bits([&](std::size_t l) { return has(high, l) ? 1 : 0; }, weights_of);
}

std::vector<double> TokenMix::layer_subsets(const MixesTold& told) {
    if (linears().size() > kMostLinears)
        throw usage_error("--by-layer",
                          fmt::format("tries every subset of up to {} linear layers; this model has {}",
                                      kMostLinears, linears().size()));
    std::vector<double> out(std::size_t{1} << linears().size());
    for (std::uint32_t high = 0; high < out.size(); ++high) {
        out[high] = divergence_of_layers(high);
        if (told) told(high + 1, out.size());
    }
    return out;
}

double TokenMix::activation_bits(double share) const {
    const auto of = [&](const LowFormat& format) {
        return state_->mean_bits(
            [&](std::size_t l) { return bits_per_element(format.activations, tokens(), linears()[l].in); },
            inputs_of);
    };
    return share * of(state_->high) + (1 - share) * of(state_->low);
}

double TokenMix::activation_bits_of_layers(std::uint32_t high) const {
    return state_->mean_bits(
        [&](std::size_t l) {
            const LowFormat& format = has(high, l) ? state_->high : state_->low;
            return bits_per_element(format.activations, tokens(), linears()[l].in);
        },
        inputs_of);
}

double TokenMix::weight_bits() const {
    return state_->mean_bits([&](std::size_t l) { return state_->bits(l, true) + state_->bits(l, false); },
                             weights_of);
}

double TokenMix::weight_bits_of_layers(std::uint32_t high) const {
    return state_->mean_bits([&](std::size_t l) { return state_->bits(l, has(high, l)); }, weights_of);
}

std::uint32_t best_layers(const TokenMix& mix, std::span<const double> subsets, double share) {
    std::uint32_t best = 0;
    constexpr double kRounding = 1e-9;  // of sums of shares
    for (std::uint32_t high = 0; high < subsets.size(); ++high)
        if (mix.share_of_layers(high) <= share + kRounding && subsets[high] < subsets[best]) best = high;
    return best;
}

}  // namespace fp8lab
