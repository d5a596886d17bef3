// A model of tokens trained in float64 throughout: parameters, both passes, the limit of the gradients' norm, the
// optimiser. It starts as an FP32 checkpoint does and draws the batches of its seed, so the trainer of recipe fp32 differs
// from it by the rounding of FP32 alone.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/ops/token_loss.h"
#include "core/nn/optimizer.h"
#include "core/nn/tasks.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab::test {

class ReferenceTraining {
  public:
    ReferenceTraining(const TrainSpec& spec, const ArmCheckpoint& start)
        : spec_(spec),
          model_(find_model(spec.model).make_reference(spec)),
          task_(make_task(spec)),
          moments_(start.parameters.size()) {
        for (std::size_t i = 0; i < moments_.size(); ++i)
            std::ranges::copy(start.parameters[i].values, model_->parameters()[i].value.begin());
    }

    Model<double>& model() { return *model_; }

    struct Step {
        double loss = 0;  // before the update
        double norm = 0;  // of all gradients together, before the limit
    };
    Step step() {
        task_->draw(steps_done_, batch_);
        model_->begin_step(steps_done_);
        const Matrix<double>& logits = model_->forward(batch_, casts_);
        Step done{.loss = token_loss(logits, std::get<TokenBatch>(batch_), dlogits_).loss};
        model_->backward(dlogits_, casts_);
        std::vector<std::span<double>> gradients;
        for (const Parameter<double>& p : model_->parameters()) gradients.push_back(p.gradient);
        done.norm = limit_norm(gradients, spec_.clip);
        const OptimizerStep how{.kind = spec_.optimizer,
                                .lr = learning_rate(spec_, steps_done_),
                                .weight_decay = spec_.weight_decay,
                                .step = steps_done_,
                                .beta1 = spec_.beta1,
                                .beta2 = spec_.beta2,
                                .eps = spec_.eps};
        for (std::size_t i = 0; i < moments_.size(); ++i)
            if (model_->plan().parameters[i].optimised)
                update(how, model_->parameters()[i].value, gradients[i], moments_[i]);
        model_->after_update();
        ++steps_done_;
        return done;
    }

  private:
    TrainSpec spec_;
    std::unique_ptr<Model<double>> model_;
    std::unique_ptr<Task> task_;
    std::vector<MomentsOf<double>> moments_;
    NoCasts<double> casts_;
    Batch batch_;
    Matrix<double> dlogits_;
    int steps_done_ = 0;
};

}  // namespace fp8lab::test
