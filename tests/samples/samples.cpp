// workbench_samples FOLDER [--NAME VALUE]...: trains the transformer of L13 with recipe fp32 on the CPU and writes what
// the Workbench opens with, FOLDER/transformer-0.safetensors and FOLDER/transformer-<steps>.safetensors, all F32:
//   blocks.1.qkv.weight, ...        the parameters
//   grad.<parameter>                their gradients in the step that comes next, before the limit on the norm
//   adam.m.<parameter>, adam.v.     the moments; not before the first step
//   act.blocks.1.qkv, dact.         input and output gradient of every linear layer, in that step
//   act.blocks.1.attention.p, dact.blocks.1.attention.ds   probabilities, and gradients of the scores
// Names: rows (of each act. and dact.: 128; 0 for all), steps, seed, batch, and the sizes of `fp8lab train --model transformer`.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/nn/loss.h"
#include "core/nn/recipe_casts.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"

using namespace fp8lab;

namespace {

// "1.qkv.w" -> "blocks.1.qkv.weight", "norm" -> "norm.weight", "1.down.x" -> "blocks.1.down.x"
std::string published_name(std::string name, bool parameter) {
    if (name.front() >= '0' && name.front() <= '9') name = "blocks." + name;
    if (!parameter) return name;
    return name.ends_with(".w") ? name + "eight" : name + ".weight";
}

class Sampler {
  public:
    Sampler(const TrainSpec& spec, std::size_t most_rows)
        : spec_(spec),
          task_(make_task(spec)),
          model_(make_model(spec)),
          casts_(spec.arms[0], model_->plan(), spec.seed),
          most_rows_(most_rows) {}

    // The tensors of the step that comes after this checkpoint.
    SafeTensors tensors_of(const ArmCheckpoint& checkpoint, int step) {
        const double loss = run(checkpoint, step);
        SafeTensors file;
        file.metadata = {{"step", std::to_string(step)},
                         {"loss", fmt::format("{:.4f}", loss)},
                         {"command_line", command_line(spec_)}};
        const ModelPlan& plan = model_->plan();
        for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
            const ParameterSpec& spec = plan.parameters[i];
            const std::string name = published_name(spec.name, true);
            const auto gradient = model_->parameters()[i].gradient;
            const Moments& moments = checkpoint.parameters[i].moments;
            put(file, name, spec.shape, checkpoint.parameters[i].values);
            put(file, "grad." + name, spec.shape, {gradient.begin(), gradient.end()});
            if (step == 0) continue;
            put(file, "adam.m." + name, spec.shape, moments.m);
            put(file, "adam.v." + name, spec.shape, moments.v);
        }
        for (std::uint16_t i = 0; i < plan.tensors.size(); ++i) put_operand(file, {i});
        return file;
    }

  private:
    double run(const ArmCheckpoint& checkpoint, int step) {
        set_parameters(*model_, checkpoint);
        task_->draw(step, batch_);
        casts_.begin_step(step, {});
        const LossValue value = loss_and_gradient(spec_.loss, model_->forward(batch_, casts_), batch_, dy_);
        model_->backward(dy_, casts_);
        return value.loss;
    }

    static void put(SafeTensors& file, const std::string& name, std::vector<std::size_t> shape,
                    std::vector<float> values) {
        file.tensors[name] = {std::move(shape), std::move(values)};
    }

    void put_operand(SafeTensors& file, TensorId id) {
        const OperandSpec& operand = model_->plan().tensor(id);
        const std::string tensor = operand.name.substr(operand.name.rfind('.') + 1);
        const bool attention = model_->plan().gemm(id).role == GemmRole::attention;
        if (operand.tensor == TensorClass::w || (attention && tensor != "p" && tensor != "ds")) return;
        const auto values = model_->values(id);
        const auto tokens = static_cast<std::size_t>(spec_.batch * spec_.sizes.at("context"));
        const std::size_t cols =
            attention ? static_cast<std::size_t>(spec_.sizes.at("context")) : values.size() / tokens;
        const std::size_t all = values.size() / cols, rows = most_rows_ > 0 ? std::min(most_rows_, all) : all;
        std::string name = published_name(operand.name, false);
        if (!attention) name.resize(name.rfind('.'));  // act.blocks.1.qkv, not act.blocks.1.qkv.x
        put(file, (operand.tensor == TensorClass::x ? "act." : "dact.") + name, {rows, cols},
            {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rows * cols)});
    }

    const TrainSpec& spec_;
    std::unique_ptr<Task> task_;
    std::unique_ptr<Model<float>> model_;
    RecipeCasts casts_;
    std::size_t most_rows_;
    Batch batch_;
    Matrix<float> dy_;
};

std::map<std::string, int> read_options(int count, char** arguments) {
    std::map<std::string, int> options;
    for (int i = 2; i + 1 < count; i += 2) {
        const std::string_view name = arguments[i], text = arguments[i + 1];
        int value = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (!name.starts_with("--") || failure != std::errc{} || end != text.data() + text.size())
            throw usage_error(std::string(name), "takes a whole number, not '" + std::string(text) + "'");
        options[std::string(name.substr(2))] = value;
    }
    return options;
}

int take(std::map<std::string, int>& options, const char* name, int fallback) {
    const auto found = options.extract(name);
    return found ? found.mapped() : fallback;
}

void write_samples(const std::filesystem::path& folder, std::map<std::string, int> given) {
    TrainOptions options;
    options.model = "transformer";
    options.recipes = "fp32";
    const int rows = take(given, "rows", 128);
    options.steps = take(given, "steps", 600);
    options.seed = static_cast<std::uint64_t>(take(given, "seed", 1));
    options.batch = take(given, "batch", 8);
    given.try_emplace("blocks", 4);
    options.sizes = {given.begin(), given.end()};
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    Sampler sampler(spec, static_cast<std::size_t>(rows));
    for (const int step : {0, spec.steps}) {
        while (trainer->steps_done() < step) trainer->step(1);
        const auto work = folder / ".checkpoint";
        trainer->save(work);
        const SafeTensors file = sampler.tensors_of(load_checkpoints(work, spec).arms[0], step);
        std::filesystem::remove_all(work);
        const auto path = folder / fmt::format("transformer-{}.safetensors", step);
        const auto bytes = to_safetensors(file);
        write_file(path, bytes);
        fmt::print("{}: {} tensors, {:.1f} MB, loss {}\n", path.string(), file.tensors.size(),
                   static_cast<double>(bytes.size()) / 1e6, file.metadata.at("loss"));
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2 || count % 2 != 0) {
        fmt::print(stderr, "workbench_samples: usage: workbench_samples FOLDER [--NAME VALUE]...\n");
        return 2;
    }
    try {
        write_samples(arguments[1], read_options(count, arguments));
    } catch (const std::exception& error) {
        fmt::print(stderr, "workbench_samples: {}\n", error.what());
        return 1;
    }
    return 0;
}
