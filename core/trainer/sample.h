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
    std::size_t context = 64;  // tokens that the model reads at once: the newest
    int count = 85;
    double temperature = 0.6;  // 0: always the most probable token
    std::uint64_t seed = 1, stream = 0;
    std::function<void(int)> each = {};  // hears each token as soon as it is drawn
};

// `count` tokens behind the prompt; each drawn from softmax(logits / temperature) by one uniform number of the stream.
// Products in FP32. The prompt is not empty.
std::vector<int> sample_tokens(Model<float>& model, std::span<const int> prompt,
                               const SampleSettings& settings);

// Prompt, continuation and what is expected of it, as Evaluation has them, for the task of `spec`; of a model whose
// weights are those after now.step steps. Nothing for a task without characters.
void add_sample(Evaluation& now, Model<float>& model, const Task& task, const TrainSpec& spec);

}  // namespace fp8lab
