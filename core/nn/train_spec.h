// What to train: the words of `train` in cli.md as one value. Plain data; the same object drives the command
// line, the window and the benches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/recipe.h"

namespace fp8lab {

enum class TaskKind { teacher, noise, spiral, npy };
enum class Activation { tanh, gelu, relu };  // gelu: the tanh form
enum class Schedule { constant, cosine };
enum class OptimizerKind { adamw, sgd };
enum class LossKind { mse, cross_entropy };

// What weights, their gradients and the optimiser's moments are kept in. bf16: no FP32 master, as a PyTorch
// model in BF16 has it; only for recipe bf16 on a GPU, to measure what the master costs.
enum class StateType { fp32, bf16 };

struct TrainSpec {
    TaskKind task = TaskKind::teacher;
    std::string x_path, y_path;                 // task npy
    std::vector<int> layers = {32, 64, 64, 1};  // d0, ..., dn: n linear layers
    Activation activation = Activation::tanh;
    LossKind loss = LossKind::mse;
    int batch = 256, steps = 2000;
    double lr = 2e-3, weight_decay = 0;
    Schedule schedule = Schedule::constant;
    OptimizerKind optimizer = OptimizerKind::adamw;
    std::uint64_t seed = 1;
    StateType state = StateType::fp32;
    std::vector<Recipe> arms;  // same initial weights, same batches, own optimiser state
};

// What the caller left open takes the task's default (cli.md, "Definitions that results depend on").
struct TrainOptions {
    std::string task = "teacher";  // "npy:X,Y"
    std::optional<std::vector<int>> layers;
    std::string activation, loss;  // empty: the task's default
    std::optional<int> batch;
    std::optional<double> lr;
    int steps = 2000;
    double weight_decay = 0;
    std::string schedule = "constant", optimizer = "adamw";
    std::uint64_t seed = 1;
    std::string recipes = "bf16,delayed";
    RecipeDefaults recipe_defaults;
};

// "32,64,64,1" as sizes. Throws usage_error("--layers", ...): an empty or other element.
std::vector<int> parse_layers(std::string_view text);

// Throws usage_error (unknown names, layers that do not fit the task, numbers out of range) or input_error
// (npy files: unreadable, different lengths, non-finite with row and column, layers that the file
// contradicts).
TrainSpec make_train_spec(const TrainOptions& options);

// "--task teacher --layers 32,64,64,1 ..." with every value spelled out: `fp8lab train` + this repeats the
// run.
std::string command_line(const TrainSpec& spec);

// Of the schedule at a 0-based step: cli.md, "Definitions that results depend on".
double learning_rate(const TrainSpec& spec, int step);

std::string_view to_string(TaskKind);
std::string_view to_string(Activation);
std::string_view to_string(Schedule);
std::string_view to_string(OptimizerKind);
std::string_view to_string(LossKind);

}  // namespace fp8lab
