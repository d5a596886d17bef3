// The settings of L8 as data: their values, the recipes and the TrainSpec that follow from them, and the
// field table that edits them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/trainer.h"
#include "labs/live/micro_batches.h"
#include "labs/table/row.h"

namespace fp8lab::train {

struct Params {
    std::string arm_a = "bf16", arm_b = "delayed", arm_c = "none";  // a recipe's name; arm_c also "none"
    double lr = 2e-3;
    // Options of arm B. "recipe": the default of the recipe.
    int history = 16, margin = 0, interval = 1;
    std::string algo = "max";
    std::string fwd = "recipe", bwd = "recipe", round = "recipe", round_update = "nearest";
    std::string overflow = "saturate", master = "fp32";
    std::string options;  // what else the recipe takes: "w2d=1:rht=1" (cli.md, "Names")
    // Options of the training.
    std::string backend = "auto";  // or "cpu", "cuda"
    std::string task = "teacher", schedule = "cosine";
    std::string size = "768";  // of task noise: D-4D-D
    int seed = 1, batch = 256, steps = 2000;
    live::MicroBatches micro;
    double speed_limit = 200;    // steps per second, 0: none; held in a window only
    std::string tensor = "dy1";  // the tensor whose histogram is shown
    bool operator==(const Params&) const = default;
};

// The sizes of task noise, smallest first: D-4D-D and the batch that fills a GPU with it.
struct Size {
    std::string_view id;  // D
    int width, batch;
    std::string label() const;  // "4096-16384-4096, batch 8192"
};
std::span<const Size> sizes();
inline constexpr std::string_view kCpuSize = "768";  // the only one that is offered on the CPU

// The arms as recipes, each named by the text that `fp8lab train --recipe` takes. Throws usage_error where the
// recipe of arm B does not have `options`.
std::vector<Recipe> arms_of(const Params& params);
TrainSpec spec_of(const Params& params);

// Throws Error{backend} for a size that is offered on the GPU only.
void check_cpu(const TrainSpec& spec);

// The table: arms and scaling, how arm B casts, the training itself. Each help line ends with when the setting acts.
std::vector<table::Row> rows_of(Params& params);
inline constexpr std::array<std::string_view, 12> kOnReset = {
    "backend", "task", "size",       "arm_c",         "schedule",     "steps",
    "batch",   "seed", "accumulate", "accumulate_in", "weight_cache", "amax_of"};

MlpTensor shown_tensor(const Params& params);

}  // namespace fp8lab::train
