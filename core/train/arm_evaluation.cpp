// What an arm knows of data that it is not trained on.
#include "core/nn/ops/token_loss.h"
#include "core/nn/streams.h"
#include "core/train/arm.h"
#include "core/train/sample.h"

namespace fp8lab {
namespace {

std::string as_text(std::span<const int> codes, const std::string& symbols) {
    std::string text;
    for (const int code : codes) text += symbols[static_cast<std::size_t>(code)];
    return text;
}

}  // namespace

void Arm::evaluate(const Task& task, int steps_done) {
    Batch batch;
    if (!task.held_out(0, batch)) return;
    Evaluation now{.step = steps_done};
    casts_.begin_evaluation();
    for (int i = 0; i < kHeldOutBatches; ++i) {
        task.held_out(i, batch);
        const LossValue value = token_loss(model_->forward(batch, casts_), std::get<TokenBatch>(batch));
        now.loss += value.loss / kHeldOutBatches;
        now.accuracy += value.accuracy / kHeldOutBatches;
    }
    const std::vector<int> prompt = task.prompt(), expected = task.expected();
    const std::string symbols = task.symbols();
    const SampleSettings settings{
        .context = static_cast<std::size_t>(spec_.sizes.at("context")),
        .count = expected.empty() ? kSampleLength : static_cast<int>(expected.size()),
        .temperature = expected.empty() ? kTemperature : 0,
        .seed = spec_.seed,
        .stream = stream(Draw::sample, 0, steps_done)};
    now.prompt = as_text(prompt, symbols);
    now.continuation = as_text(sample_tokens(*model_, prompt, settings), symbols);
    now.expected = as_text(expected, symbols);
    evaluation_ = std::move(now);
}

}  // namespace fp8lab
