// What an arm knows of data that it is not trained on.
#include "core/nn/ops/token_loss.h"
#include "core/trainer/arm.h"
#include "core/trainer/sample.h"

namespace fp8lab {

std::optional<Evaluation> Arm::evaluate(const Task& task, int steps_done) {
    Batch batch;
    if (!task.held_out(0, batch)) return std::nullopt;
    Evaluation now{.step = steps_done};
    gather_weights();
    RecipeCasts& casts = ranks_.front().casts;  // each rank reads the same, or rank 0 stands for all
    casts.begin_evaluation();
    for (int i = 0; i < kHeldOutBatches; ++i) {
        task.held_out(i, batch);
        const LossValue value = token_loss(model_->forward(batch, casts), std::get<TokenBatch>(batch));
        now.loss += value.loss / kHeldOutBatches;
        now.accuracy += value.accuracy / kHeldOutBatches;
    }
    add_sample(now, *model_, task, spec_, casts.recipe());
    return now;
}

}  // namespace fp8lab
