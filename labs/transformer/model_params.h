// The settings of L13 as data: their values, the recipes and the TrainSpec that follow from them, and the field table.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"
#include "core/nn/model.h"
#include "core/nn/train_spec.h"
#include "labs/live/micro_batches.h"
#include "labs/table/moments.h"
#include "labs/table/row.h"

namespace fp8lab::transformer {

inline constexpr int kSteps = 600, kBlocks = 2;

struct Params {
    std::string backend = "auto";                   // or "cpu", "cuda"
    std::string arm_a = "bf16", arm_b = "delayed";  // a recipe's name
    // Options of arm B's recipe: scope, act, wide, the operands of each GEMM ("recipe": as it says), history.
    std::string attention = "bf16", head = "bf16", act = "swiglu", wide = "none";
    std::string fprop_in = "recipe", dgrad_in = "recipe", wgrad_in = "recipe";
    int history = 16;
    std::string task = "text";
    int batch = 8;  // sequences
    double lr = 5e-3;
    int seed = 1;
    table::Moments moments;  // of arm B
    live::MicroBatches micro;
    int align_step = 0;               // a channel is aligned after so many steps; 0: not
    std::string tensor = "1.down.x";  // selected
    bool operator==(const Params&) const = default;
};

// "delayed:scope=attn:act=smooth:wide=last"; throws usage_error where the recipe does not have such an option.
std::string arm_b_text(const Params& params);
// Throws usage_error for arms that the model cannot train: attention in FP8 with blocks of 128.
TrainSpec spec_of(const Params& params);
std::vector<table::Row> rows_of(Params& params);
inline constexpr std::array<std::string_view, 9> kOnReset = {"backend",       "task",         "batch",
                                                             "seed",          "align_step",   "accumulate",
                                                             "accumulate_in", "weight_cache", "amax_of"};

// The tensors that can be selected: those of the linear layers, of attention and of the head.
const std::vector<std::string>& tensor_names();

}  // namespace fp8lab::transformer
