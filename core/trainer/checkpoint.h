// The state of an arm as values, and its file: weights in FP32, moments, scaling state. It is the same for
// every backend and recipe, so that a BF16 run can resume in FP8, a CPU run on a GPU, and the reverse.
//
// Tensors in the file, by the names of the ModelPlan: w1 b1 (parameters), m.w1 v.w1 m.b1 v.b1 (moments), scale.x1
// scale_age.x1 history.x1 (delayed scaling, slot 0 first; scale.x1.fprop ... where the GEMMs have casts of their own, which a
// key without GEMM fills both), storage_scale.w1 (master=none), cast.w1.fprop cast.w1.dgrad (what GEMMs read with WeightCache::stale), loss_scale (3: the scale, steps since it changed, steps skipped). Of several ranks each has delayed scales of its own: rank0/scale.x1, ...;
// a rank without takes those without a rank, or those of rank 0, so that any number of ranks can resume. Metadata: format "fp8lab-checkpoint-1",
// step (steps done, an integer), recipe, command_line; the last two may be missing.
//
// The samples of the Workbench (assets/models/transformer-600.safetensors) are read too: they have the names of published
// models, "blocks.1.qkv.weight" for 1.qkv.w and "adam.m.norm.weight" for m.norm, and the metadata command_line, loss, step.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/optimizer.h"
#include "core/nn/trainer.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/loss_scaler.h"

namespace fp8lab {

struct ParameterCheckpoint {
    std::vector<float> values;  // row-major
    Moments moments;
    std::optional<float> storage_scale;  // a weight with master=none: the scale of the stored E4M3 values
};
struct ScaleCheckpoint {
    TensorId id;
    float scale = 1;
    int scale_age = 0;
    std::vector<float> history;     // slot 0 first
    std::optional<Gemm> gemm = {};  // none: of all GEMMs that read the tensor
    std::optional<int> rank = {};   // of several ranks
};
struct KeptCheckpoint {  // a cast of a weight that is not done again
    TensorId id;
    Gemm gemm;
    std::vector<float> values;  // dequantised, in the shape of the weight
};
struct ArmCheckpoint {
    std::string recipe;  // recipe_text(); may be empty in a file
    std::string command_line =
        {};  // of the run that saved it, as command_line() says; may be empty in a file
    std::vector<ParameterCheckpoint> parameters;  // in the order of ModelPlan::parameters
    std::vector<ScaleCheckpoint> scales;          // of the tensors with delayed scales
    std::vector<KeptCheckpoint> kept = {};        // with WeightCache::stale
    std::optional<LossScalerState> scaler = {};   // with a loss scale, or steps that were skipped with one
};

SafeTensors to_safetensors(ArmCheckpoint arm, const TrainSpec& spec, int steps_done);
// The checkpoints of a run are one set: DIR/<n>-<recipe name>.safetensors per arm, all of the same step. The set that is
// there is replaced as a whole: whenever the process is killed, load_checkpoints() finds the old set or the new one.
// Until all files of the new one are on the disk they are in DIR/.saving; then that folder is renamed to DIR/.saved,
// whose files stand before those of DIR, and they are moved to their places. `state` is asked for each arm of the spec in
// turn: one copy of the values is held at a time. Throws Error{failed}.
void save_checkpoints(const std::filesystem::path& dir, const TrainSpec& spec,
                      const std::function<ArmCheckpoint(std::size_t arm)>& state, int steps_done);
// Asked before a run that will save to DIR. Throws usage_error(option, ...) where DIR has checkpoints that the new set
// would not replace as a whole, or that are no earlier state of the same run: of other arms, another model or task, or
// files that are not this program's.
void check_replaceable_set(const std::string& option, const std::filesystem::path& dir,
                           const TrainSpec& spec);
// Loads one file for every arm, or a folder with one file per arm in the order of their numbers. Names and shapes are
// compared with the model before values are read. Throws input_error when tensors are missing, their shapes are not
// those of the model or their dtypes cannot be read, and for wrong metadata: another format, an unknown name, an
// unknown recipe, a seed that is not a number; a pipe, a device or a socket is no checkpoint.
struct LoadedCheckpoints {
    int steps_done = 0;
    std::vector<ArmCheckpoint> arms;
};
LoadedCheckpoints load_checkpoints(const std::filesystem::path& path, const TrainSpec& spec);

// Of one file, whose weights an option asks for. Throws usage_error(option, ...): a folder; and as load_checkpoints().
ArmCheckpoint load_weights(const std::string& option, const std::filesystem::path& path,
                           const TrainSpec& spec);

// The command line in the metadata of one file. Throws input_error: no checkpoint, or one without a command line.
std::string command_line_of(const std::filesystem::path& path);
// What the model computes, by the recipe; plain where the file has none.
SwigluForm swiglu_of(const ArmCheckpoint& checkpoint);
// The values of a checkpoint that has the model's shapes.
void set_parameters(Model<float>& model, const ArmCheckpoint& checkpoint);

// The files that save_checkpoints() writes, one per arm, and those that load_checkpoints() reads: of a folder in the
// order of the numbers that their names begin with.
std::vector<std::filesystem::path> checkpoints_to_save(const std::filesystem::path& dir,
                                                       const TrainSpec& spec);
std::vector<std::filesystem::path> checkpoints_to_load(const std::filesystem::path& path);

// Sentences about what a resumed run changes: another recipe or another seed of an arm. Reads only the
// metadata of the files. Throws as load_checkpoints().
std::vector<std::string> changes_on_resume(const std::filesystem::path& path, const TrainSpec& spec);

}  // namespace fp8lab
