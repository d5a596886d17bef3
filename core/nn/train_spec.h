// What to train: the options of `train` (cli.md) as plain data, for the command line, the window and the
// benches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/ranks/rank_options.h"
#include "core/scaling/recipe.h"

namespace fp8lab {

enum class TaskKind { teacher, noise, spiral, digits, npy, text, copying, zipf };
enum class Activation { tanh, gelu, relu };  // gelu: the tanh form
enum class Schedule { constant, cosine };
enum class OptimizerKind { adamw, sgd };
enum class LossKind { mse, cross_entropy };

// The type of weights, gradients and moments. bf16: no FP32 master weights, like a PyTorch model in BF16;
// only for recipe bf16 on a GPU, to measure the cost of master weights.
enum class StateType { fp32, bf16 };

// Gradient accumulation: a step computes the gradients of several micro-batches one after the other and updates the
// weights once, with their mean.
// When weights are cast: in the first micro-batch of a step, as Transformer Engine does with is_first_microbatch; in
// each; or in the first step only, which is the fault of a program that never sets is_first_microbatch again.
enum class WeightCache { once, each, stale };
// Which amax of a step goes into the history of delayed scaling: the largest of all micro-batches; that of the last;
// or each, so that the history rolls once per micro-batch.
enum class AmaxOf { max, last, each };
struct Accumulation {
    int micro_batches = 1;        // of a step, each of batch / micro_batches rows or sequences
    std::string format = "fp32";  // of the sums of weight gradients: fp32, bf16, e4m3 or e5m2
    WeightCache weights = WeightCache::once;
    AmaxOf amax = AmaxOf::max;
};

// One step whose x is multiplied by `factor`, in the first `rows` rows of the batch; 0: in all. Of a transformer what the
// embedding gives.
struct Poison {
    int step = 0;  // 0-based
    double factor = 1;
    int rows = 0;
};

struct TrainSpec {
    std::string model = "mlp";                      // core/nn/models.cpp
    std::map<std::string, int, std::less<>> sizes;  // the options of the model: ModelEntry::options
    TaskKind task = TaskKind::teacher;
    std::string x_path, y_path;                 // task npy
    std::string text_path;                      // task text; empty: the text that comes with the program
    int vocabulary = 0;                         // of the task, where it has tokens; task zipf: chosen
    std::vector<int> layers = {32, 64, 64, 1};  // d0, ..., dn: n linear layers
    Activation activation = Activation::tanh;
    LossKind loss = LossKind::mse;
    int batch = 256, steps = 2000;  // batch: rows, or sequences, of all ranks together
    double lr = 2e-3, weight_decay = 0;
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // AdamW
    double clip = 0;                                // largest norm of all gradients together; 0: any
    int warmup = 100;                               // steps, of schedule cosine
    Schedule schedule = Schedule::constant;
    OptimizerKind optimizer = OptimizerKind::adamw;
    std::uint64_t seed = 1;
    StateType state = StateType::fp32;
    Accumulation accumulate;
    // Checkpoints of the same model: the weights that all arms start from, with moments at 0; and a network whose softmax
    // is the target of the loss instead of the labels (core/trainer/teacher_network.h). Empty: none.
    std::string init_from, teacher;
    // Faults on purpose (core/nn/faults.h). zero_last: the weights of the last layer start at 0, as LoRA's B does.
    std::optional<Poison> poison;
    bool zero_last = false;
    Ranks ranks;
    std::vector<int> devices;  // the GPU of each rank; empty: ranks of the CPU, or one GPU
    std::vector<Recipe> arms;  // same initial weights, same batches, own optimiser state
};

// Options that are not set take the default of the model or of the task (cli.md, "Definitions that results depend on").
struct TrainOptions {
    std::string model = "mlp";
    std::map<std::string, int, std::less<>> sizes = {};
    std::string task = {};  // "npy:X,Y", "text:FILE", "zipf:V"
    std::optional<std::vector<int>> layers;
    std::string activation, loss;  // empty: the task's default
    std::optional<int> batch;
    std::optional<double> lr;
    std::optional<int> steps;
    double weight_decay = 0;
    std::optional<double> beta1, beta2, eps, clip;
    std::optional<int> warmup;
    std::string schedule = {}, optimizer = "adamw";
    std::uint64_t seed = 1;
    std::optional<int> accumulate;
    std::string accumulate_in = {}, weight_cache = {}, amax_of = {};  // empty: the default
    std::string init_from = {}, teacher = {};
    std::string poison = {}, init = {};  // "656:1e6:1", "zero-last"
    std::optional<int> ranks;
    std::vector<int> devices = {};  // of GPUs; with several, `batch` is that of each
    std::optional<double> timeout_s;
    std::optional<ProcessRank> process = {};  // `devices` has then a place for each rank
    std::string shard = {}, gather = {}, sum = {}, weight_scale = {}, act_amax = {}, bad = {};  // as before
    std::string recipes = "bf16,delayed";
    RecipeDefaults recipe_defaults;
};

// "32,64,64,1" as sizes. Throws usage_error("--layers", ...): an element is empty or not a number.
std::vector<int> parse_layers(std::string_view text);

// Throws usage_error (unknown names, layers that do not fit the task, numbers out of range) or input_error
// (npy files: unreadable, different lengths, non-finite with row and column, layers that the file
// contradicts).
TrainSpec make_train_spec(const TrainOptions& options);

// Throws usage_error: the recipe keeps moments in a format, and the optimiser has none.
void check_moments(const TrainSpec& spec, const Recipe& recipe, std::string_view where = "--recipe");

// "--task teacher --layers 32,64,64,1 ..." with all values: `fp8lab train` with these options repeats the
// run.
std::string command_line(const TrainSpec& spec);

// The learning rate of the schedule at a 0-based step: cli.md, "Definitions that results depend on".
double learning_rate(const TrainSpec& spec, int step);

std::string_view to_string(TaskKind);
std::string_view to_string(Activation);
std::string_view to_string(Schedule);
std::string_view to_string(OptimizerKind);
std::string_view to_string(LossKind);
std::string_view to_string(WeightCache);
std::string_view to_string(AmaxOf);

}  // namespace fp8lab
