#include "kernels/infer/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/nn/models/transformer/model.h"
#include "core/scaling/scale_rule.h"
#include "kernels/device/graph.h"
#include "kernels/infer/decode_memory.h"
#include "kernels/infer/pack.h"
#include "kernels/infer/start_token.h"

namespace fp8lab::cuda {
namespace {

TransformerShape shape_of(const TrainSpec& spec) {
    check_served(spec);
    return transformer_shape(spec);
}

DecodeShape decode_shape(const TransformerShape& of) {
    return {.layers = static_cast<int>(of.blocks),
            .d = static_cast<int>(of.d),
            .heads = static_cast<int>(of.heads),
            .kv_heads = static_cast<int>(of.kv_heads),
            .ffn = static_cast<int>(of.ffn),
            .capacity = static_cast<int>(of.context),
            .vocabulary = static_cast<int>(of.vocabulary)};
}

class Generator final : public TokenEngine {
  public:
    explicit Generator(const ServedModel& model)
        : shape_(shape_of(model.spec)),
          memory_(decode_shape(shape_), model.formats),
          embedding_(model.parameters.front()),
          tokens_(shape_.context),
          next_(1),
          sent_(shape_.context),
          logits_(shape_.vocabulary) {
        load(model);
        load_scales(model.k_amaxes, memory_.k_scales());
        load_scales(model.v_amaxes, memory_.v_scales());
        enqueue();  // modules load before the capture
        stream_.wait();
        graph_.emplace(stream_.get(), [this] { enqueue(); });
        forget(0);
    }

    std::size_t length() const override { return length_; }

    void forget(std::size_t length) override {
        if (length > length_)
            throw usage_error("cache",
                              fmt::format("has {} tokens: it cannot go back to {}", length_, length));
        stream_.wait();
        const auto next = static_cast<std::int32_t>(length);
        next_.upload({&next, 1});
        length_ = length;
    }

    std::span<const float> read(std::span<const int> tokens) override {
        check_tokens(tokens);
        const std::span<std::int32_t> sent = sent_.values().subspan(length_, tokens.size());
        std::ranges::copy(tokens, sent.begin());
        check(cudaMemcpyAsync(tokens_.get() + length_, sent.data(), sent.size_bytes(), cudaMemcpyHostToDevice,
                              stream_.get()),
              "copy to the GPU");
        for (std::size_t i = 0; i < tokens.size(); ++i) graph_->launch(stream_.get());
        length_ += tokens.size();
        const std::span<float> logits = logits_.values();
        check(cudaMemcpyAsync(logits.data(), memory_.logits().get(), logits.size_bytes(),
                              cudaMemcpyDeviceToHost, stream_.get()),
              "download");
        stream_.wait();
        return logits;
    }

    double memory_bytes() const override {
        return memory_.bytes() +
               static_cast<double>((embedding_.size() + tokens_.size() + 1) * sizeof(float));
    }

  private:
    // In the order of ModelPlan::parameters.
    void load(const ServedModel& model) {
        auto next = model.parameters.begin() + 1;
        const auto d = shape_.d;
        std::vector<float> gains((2 * shape_.blocks + 1) * d);
        auto gain = gains.begin();
        const auto take_gains = [&] { gain = std::ranges::copy(*next++, gain).out; };
        const auto take = [&](DecodeMatrixName name, std::size_t layer) {
            upload(name, layer, *next++, model.formats.weights);
        };
        for (std::size_t layer = 0; layer < shape_.blocks; ++layer) {
            take_gains();
            take(kQkv, layer);
            take(kOut, layer);
            take_gains();
            take(kGateUp, layer);
            take(kDown, layer);
        }
        take_gains();
        upload(kHead, shape_.blocks, shape_.tied ? model.parameters.front() : *next, model.formats.weights);
        memory_.gains().upload(gains);
    }
    void upload(DecodeMatrixName name, std::size_t layer, std::span<const float> w, ServedWeights format) {
        const PackedMatrix matrix = packed(memory_.model().matrix[name], w, format, name == kGateUp);
        const int at = static_cast<int>(layer);
        copy_to_device(memory_.matrix_at(name, at), matrix.bytes.data(), matrix.bytes.size());
        copy_to_device(memory_.scales_at(name, at), matrix.scales.data(),
                       matrix.scales.size() * sizeof(float));
    }
    static void load_scales(const std::vector<float>& amaxes, Buffer<float>& scales) {
        if (amaxes.empty()) return;
        constexpr float kLargest = 448;
        std::vector<float> inverse;
        for (float amax : amaxes) inverse.push_back(1 / scale_from_amax(amax, kLargest, 0, 1));
        if (inverse.size() != scales.size())
            throw usage_error("cache", fmt::format("{} amaxes for {} heads", inverse.size(), scales.size()));
        scales.upload(inverse);
    }
    void check_tokens(std::span<const int> tokens) const {
        if (tokens.empty()) throw usage_error("tokens", "there is none to read");
        if (length_ + tokens.size() > shape_.context)
            throw usage_error("cache", fmt::format("has {} of {} tokens: {} more are too many", length_,
                                                   shape_.context, tokens.size()));
        for (const int token : tokens)
            if (token < 0 || static_cast<std::size_t>(token) >= shape_.vocabulary)
                throw usage_error("tokens", fmt::format("{} is not in 0..{}", token, shape_.vocabulary - 1));
    }
    void enqueue() {
        start_token({.tokens = tokens_.get(),
                     .next = next_.get(),
                     .length = memory_.length().get(),
                     .embedding = embedding_.get(),
                     .d = static_cast<int>(shape_.d),
                     .stream = memory_.stream().get()},
                    stream_.get());
        memory_.enqueue(stream_.get());
    }

    TransformerShape shape_;
    Stream stream_;
    DecodeMemory memory_;
    Buffer<float> embedding_;  // (vocabulary, d)
    Buffer<std::int32_t> tokens_, next_;
    Pinned<std::int32_t> sent_;
    Pinned<float> logits_;
    std::optional<Graph> graph_;
    std::size_t length_ = 0;
};

}  // namespace

std::unique_ptr<TokenEngine> make_generator(const ServedModel& model) {
    return std::make_unique<Generator>(model);
}

}  // namespace fp8lab::cuda
