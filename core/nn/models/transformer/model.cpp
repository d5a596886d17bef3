#include "core/nn/models/transformer/model.h"

#include <cmath>

#include "core/nn/models/decoder/decoder.h"
#include "core/nn/models/decoder/gated_mlp.h"

namespace fp8lab {
namespace {

template <class T>
class Transformer final : public Decoder<T> {
  public:
    explicit Transformer(const TransformerShape& shape)
        : Decoder<T>(shape, transformer_plan(shape),
                     [&](const ModelPlan& plan, std::size_t block) {
                         return std::make_unique<GatedMlp<T>>(shape.d, shape.ffn,
                                                              tensor_of(plan, block, ".gate_up.x"),
                                                              tensor_of(plan, block, ".down.x"));
                     }),
          first_(static_cast<GatedMlp<T>*>(this->blocks().front().feed_forward.get())) {}

    void initialise(std::uint64_t seed) override {
        Decoder<T>::initialise(seed);
        held_row_.clear();
    }
    void backward(const Matrix<T>& dy, GemmCasts<T>& casts) override;
    void align_channel(int token) override;
    void after_update() override;

  private:
    GatedMlp<T>* first_;  // the feed-forward part of block 1
    // The aligned channel: what the rows of gate and up and the column of down are held at. Empty: none.
    std::vector<T> held_row_, held_column_;
};

template <class T>
std::unique_ptr<Model<T>> make_transformer(const TrainSpec& spec) {
    return std::make_unique<Transformer<T>>(transformer_shape(spec));
}

template <class T>
void Transformer<T>::backward(const Matrix<T>& dy, GemmCasts<T>& casts) {
    Decoder<T>::backward(dy, casts);
    if (held_row_.empty()) return;
    // Held weights: no gradient, in the norm of all gradients neither.
    std::ranges::fill(first_->gate_up.dw.row(0), T{0});
    std::ranges::fill(first_->gate_up.dw.row(this->shape().ffn), T{0});
    for (std::size_t r = 0; r < this->shape().d; ++r) first_->down.dw.row(r)[0] = 0;
}

template <class T>
void Transformer<T>::align_channel(int token) {
    constexpr double kLength = 300;
    if (!held_row_.empty()) return;
    const auto embedding = this->embedding().row(static_cast<std::size_t>(token));
    const std::vector<T>& gains = this->blocks().front().norm2.g;
    const std::size_t d = this->shape().d;
    std::vector<T> direction(d);  // of the token behind the norm, were the stream its embedding alone
    T squares = 0, length = 0, along = 0;
    for (std::size_t i = 0; i < d; ++i) {
        direction[i] = embedding[i] * gains[i];
        squares += embedding[i] * embedding[i];
        length += direction[i] * direction[i];
    }
    const T rms = std::sqrt(squares / static_cast<T>(d));
    length = std::sqrt(length);
    for (T& value : direction) {
        along += value / rms * (value / length);
        value *= static_cast<T>(kLength) / length;
    }
    const T product = (static_cast<T>(kLength) * along) * (static_cast<T>(kLength) * along);
    held_row_ = direction;
    held_column_.resize(d);
    for (std::size_t r = 0; r < d; ++r) held_column_[r] = first_->down.w.row(r)[0] / product;
    after_update();
}

template <class T>
void Transformer<T>::after_update() {
    if (held_row_.empty()) return;
    std::ranges::copy(held_row_, first_->gate_up.w.row(0).begin());
    std::ranges::copy(held_row_, first_->gate_up.w.row(this->shape().ffn).begin());
    for (std::size_t r = 0; r < this->shape().d; ++r) first_->down.w.row(r)[0] = held_column_[r];
}

constexpr int kFfn = 192;

}  // namespace

ModelPlan transformer_plan(const TransformerShape& s) {
    return decoder_plan(s, [&](ModelPlan& plan, int block) { plan_gated_mlp(plan, block, "", s.d, s.ffn); });
}

ModelEntry transformer_model() {
    static const auto kOptions = decoder_options(kFfn);
    return {.id = "transformer",
            .summary = "decoder-only transformer with RMSNorm, RoPE and SwiGLU",
            .task = "text",
            .tokens = true,
            .options = kOptions,
            .check = [](const TrainSpec& spec) { transformer_shape(spec); },
            .plan = [](const TrainSpec& spec) { return transformer_plan(transformer_shape(spec)); },
            .make = make_transformer<float>,
            .make_reference = make_transformer<double>};
}

}  // namespace fp8lab
