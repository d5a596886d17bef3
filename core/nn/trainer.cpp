#include "core/nn/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/overloaded.h"
#include "core/nn/model.h"

namespace fp8lab {

std::string to_string(const NonFinite& cause) {
    return fmt::format("{}{} became non-finite at step {}", cause.tensor,
                       cause.rank ? fmt::format(" of rank {}", *cause.rank) : "", cause.step);
}

void Trainer::record_spans(Trace&) {
    throw Error(ErrorKind::backend, "--trace",
                "a training on a GPU records no spans; it has NVTX ranges, which Nsight Systems shows");
}

// The grammar of recipes knows the range of every option.
void check_command(const TrainSpec& spec, const Command& command) {
    const auto arm = [&](int index) {
        const int count = static_cast<int>(spec.arms.size());
        if (index < 0 || index >= count)
            throw usage_error("arm", fmt::format("{} is not in 0..{}", index, count - 1));
    };
    const auto options = [](int history, int margin) {
        parse_recipe("delayed", {.history = history, .margin = margin});
    };
    std::visit(Overloaded{[&](const SetHistory& c) {
                              arm(c.arm);
                              options(c.history, 0);
                          },
                          [&](const SetMargin& c) {
                              arm(c.arm);
                              options(RecipeDefaults{}.history, c.margin);
                          },
                          [&](const SetAlgo& c) { arm(c.arm); },
                          [&](const SetRecipe& c) {
                              arm(c.arm);
                              options(c.recipe.history, c.recipe.margin);
                              parse_recipe(recipe_text(c.recipe));
                              model_plan(spec).check(c.recipe);
                              check_moments(spec, c.recipe);
                          },
                          [&](const SetLearningRate& c) {
                              if (!(c.lr >= 0) || std::isinf(c.lr))
                                  throw usage_error("--lr", fmt::format("{} is not a number >= 0", c.lr));
                          },
                          [](const PoisonBatch&) {},  // Inf and NaN are experiments
                          [&](const AlignChannel&) {
                              const bool rare = spec.task == TaskKind::text || spec.task == TaskKind::zipf;
                              if (!model_plan(spec).gated || !rare)
                                  throw usage_error("align",
                                                    "needs --model transformer and --task text or zipf");
                          },
                          [&](const Watch& c) {
                              const std::size_t tensors = model_plan(spec).tensors.size();
                              if (c.tensor && c.tensor->index >= tensors)
                                  throw usage_error("watch", fmt::format("tensor {} is not in 0..{}",
                                                                         c.tensor->index, tensors - 1));
                          }},
               command);
}

}  // namespace fp8lab
