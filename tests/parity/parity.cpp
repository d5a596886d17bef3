// parity_dump FOLDER: what scripts/torch_parity.py compares with PyTorch. Per model a folder:
//   start/, end/      checkpoints of the trainer with recipe fp32, before the first step and after the last
//   ours.safetensors  tokens and targets (steps, batch, context), a target that does not count as -1; logits (of the
//                     first batch, before any step) and losses, as fp32.logits, fp64.losses; the parameters after the
//                     last step in float64, as end.<name>. All of it as F64, which holds the other types exactly. Of experts
//                     also those that each step chose, before its update, as fp32.choices and fp64.choices
//                     (steps, blocks, tokens, active).
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>

#include "core/files/files.h"
#include "core/nn/models/moe/model.h"
#include "core/nn/recipe_casts.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/reference_training.h"

using namespace fp8lab;

namespace {

constexpr int kSteps = 50;

struct Tensor {
    std::vector<std::size_t> shape;
    std::vector<double> values = {};
};
using Tensors = std::map<std::string, Tensor>;

// to_safetensors() of the program writes F32 only.
std::string safetensors_of_doubles(const Tensors& tensors) {
    nlohmann::json head;
    std::string payload;
    for (const auto& [name, tensor] : tensors) {
        const std::size_t begin = payload.size();
        payload.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 8);
        head[name] = {{"dtype", "F64"}, {"shape", tensor.shape}, {"data_offsets", {begin, payload.size()}}};
    }
    std::string text = head.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string file(8, '\0');
    const std::uint64_t length = text.size();
    std::memcpy(file.data(), &length, sizeof length);
    return file + text + payload;
}

void add_batches(const TrainSpec& spec, Tensors& tensors) {
    const auto context = static_cast<std::size_t>(spec.sizes.at("context"));
    Tensor tokens{{kSteps, static_cast<std::size_t>(spec.batch), context}}, targets = tokens;
    const auto task = make_task(spec);
    Batch drawn;
    for (int step = 0; step < kSteps; ++step) {
        task->draw(step, drawn);
        const auto& batch = std::get<TokenBatch>(drawn);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            tokens.values.push_back(batch.tokens[i]);
            targets.values.push_back(batch.is_scored(i) ? batch.targets[i] : -1);
        }
    }
    tensors["tokens"] = std::move(tokens);
    tensors["targets"] = std::move(targets);
}

template <class T>
Tensor first_logits(const TrainSpec& spec, Model<T>& model, GemmCasts<T>& casts) {
    Batch batch;
    make_task(spec)->draw(0, batch);
    const Matrix<T>& logits = model.forward(batch, casts);
    return {{logits.rows, logits.cols}, {logits.values.begin(), logits.values.end()}};
}

// What the model would choose of the step's batch; nothing of one without experts.
template <class T>
void add_choices(const TrainSpec& spec, Model<T>& model, int step, Tensor& choices) {
    auto* const moe = dynamic_cast<Moe<T>*>(&model);
    if (!moe) return;
    Batch batch;
    make_task(spec)->draw(step, batch);
    NoCasts<T> casts;
    model.forward(batch, casts);
    const MoeShape shape = moe_shape(spec);
    const std::size_t tokens = std::get<TokenBatch>(batch).size();
    choices.shape = {kSteps, shape.blocks, tokens, shape.active};
    for (std::size_t b = 0; b < shape.blocks; ++b)
        for (const std::uint16_t expert : moe->experts(b).routing().experts) choices.values.push_back(expert);
}

void keep_choices(Tensors& tensors, const std::string& name, Tensor choices) {
    if (!choices.values.empty()) tensors[name] = std::move(choices);
}

void add_reference(const TrainSpec& spec, const ArmCheckpoint& start, Tensors& tensors) {
    test::ReferenceTraining reference(spec, start);
    NoCasts<double> casts;
    tensors["fp64.logits"] = first_logits(spec, reference.model(), casts);
    Tensor& losses = tensors["fp64.losses"] = {{kSteps}};
    Tensor choices;
    for (int step = 0; step < kSteps; ++step) {
        add_choices(spec, reference.model(), step, choices);
        losses.values.push_back(reference.step().loss);
    }
    keep_choices(tensors, "fp64.choices", std::move(choices));
    const auto& names = reference.model().plan().parameters;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto end = reference.model().parameters()[i].value;
        tensors["end." + names[i].name] = {names[i].shape, {end.begin(), end.end()}};
    }
}

void dump(const std::filesystem::path& folder, TrainOptions options) {
    options.recipes = "fp32";
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    trainer->save(folder / "start");
    const ArmCheckpoint start = load_checkpoints(folder / "start", spec).arms[0];
    Tensors tensors;
    add_batches(spec, tensors);
    add_reference(spec, start, tensors);
    const auto model = make_model(spec);
    set_parameters(*model, start);
    RecipeCasts casts(spec.arms[0], model->plan(), spec.seed);
    casts.begin_step(0, {});
    tensors["fp32.logits"] = first_logits(spec, *model, casts);
    Tensor choices;
    for (int step = 0; step < kSteps; ++step) {
        if (options.model == "moe") {  // its parameters are those of a checkpoint
            trainer->save(folder / "end");
            set_parameters(*model, load_checkpoints(folder / "end", spec).arms[0]);
            add_choices(spec, *model, step, choices);
        }
        trainer->step(1);
    }
    keep_choices(tensors, "fp32.choices", std::move(choices));
    Tensor& losses = tensors["fp32.losses"] = {{kSteps}};
    const Snapshot snapshot = trainer->snapshot();
    for (const StepRecord& record : snapshot.arms[0].records) losses.values.push_back(record.loss);
    trainer->save(folder / "end");
    write_file(folder / "ours.safetensors", safetensors_of_doubles(tensors));
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        fmt::print(stderr, "parity_dump: usage: parity_dump FOLDER\n");
        return 2;
    }
    try {
        const std::filesystem::path folder = arguments[1];
        TrainOptions options;
        options.model = "transformer";
        dump(folder / "default", options);
        options.sizes["kv-heads"] = 2;
        dump(folder / "grouped", options);
        // What the defaults leave out: the decay of the weights, targets that do not count, and a short schedule, so that
        // its warm-up ends and the cosine falls within the steps.
        options.sizes = {{"kv-heads", 1}, {"tie", 1}};
        options.task = "copying";
        options.steps = kSteps;
        options.warmup = 10;
        options.weight_decay = 0.1;
        dump(folder / "tied", options);
        options = {};
        options.model = "moe";
        dump(folder / "experts", options);
        options.sizes = {{"experts", 4}, {"active", 1}, {"shared", 1}, {"balance", 1}};  // 1: the loss
        dump(folder / "balanced", options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "parity_dump: {}\n", error.what());
        return 1;
    }
    return 0;
}
