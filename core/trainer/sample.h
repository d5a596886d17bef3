// Text from a model of tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/trainer.h"

namespace fp8lab {

struct SampleSettings {
    std::size_t context = 64;  // tokens that the model can read at once
    int count = 85;
    double temperature = 0.6;  // 0: always the most probable token
    std::uint64_t seed = 1, stream = 0;
    SwigluForm swiglu = SwigluForm::plain;  // of the recipe that the model was trained with
    std::function<void(int)> each = {};     // hears each token as soon as it is drawn
};

// Where the tokens begin that are read to draw the one behind `known` tokens. A text that fits into the context is read from
// its start. Of a longer one the oldest half of the context is left out each time that it is full: `step` =
// ceil(context / 2) tokens go, and the rest is read again from position 0. So of the `known` tokens the model reads the
// newest context - step + 1 to context ones, and each token is computed about twice, not `context` times.
std::size_t window_begin(std::size_t known, std::size_t context);

// The logits behind `unread` tokens, which follow those of the calls before; anew: all of those are forgotten first. They are
// valid until the next call.
using ReadTokens = std::function<std::span<const float>(std::span<const int> unread, bool anew)>;

// `count` tokens behind the prompt; each drawn from softmax(logits / temperature) by one uniform number of the stream.
// The logits are those that `read` gives for the tokens from window_begin() on. The prompt is not empty.
std::vector<int> sample_tokens(const ReadTokens& read, std::span<const int> prompt,
                               const SampleSettings& settings);
// The same with the logits of Model::decode(). Products in FP32.
std::vector<int> sample_tokens(Model<float>& model, std::span<const int> prompt,
                               const SampleSettings& settings);

// Prompt, continuation and what is expected of it, as Evaluation has them, for the task of `spec`; of a model whose
// weights are those after now.step steps of `recipe`. Nothing for a task without characters.
void add_sample(Evaluation& now, Model<float>& model, const Task& task, const TrainSpec& spec,
                const Recipe& recipe);

}  // namespace fp8lab
