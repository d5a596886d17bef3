// fp8lab generate: text from the checkpoints of a transformer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <utility>

#include "app/cli/option_values.h"
#include "app/cli/train/train_options.h"
#include "app/cli/verb.h"
#include "core/backend/token_engine.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/files/memory.h"
#include "core/files/progress_line.h"
#include "core/inference/serve/engine.h"
#include "core/nn/memory/cpu_memory.h"
#include "core/nn/model.h"
#include "core/nn/tokens/corpus.h"
#include "core/threads/ask.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/sample.h"

namespace fp8lab::cli {

namespace {

struct GenerateOptions {
    std::string resume, prompt = "a gradient ", backend = "cpu", weights, kv;
    SampleSettings sample;
};

// What reads the tokens: one of the two.
struct Reader {
    std::unique_ptr<Model<float>> model;
    std::unique_ptr<TokenEngine> engine;  // of a GPU
};

// The amaxes of K and V over training sequences, as `infer --kv head` has them.
void calibrate(ServedModel& served, const ArmCheckpoint& checkpoint) {
    TokenModel model(served.spec, checkpoint, 1);
    const CacheAmaxes amaxes = calibrated_cache(model);
    const auto joined = [](const std::vector<std::vector<float>>& blocks) {
        std::vector<float> out;
        for (const auto& heads : blocks) out.insert(out.end(), heads.begin(), heads.end());
        return out;
    };
    served.k_amaxes = joined(amaxes.k), served.v_amaxes = joined(amaxes.v);
}

Reader reader_of(const TrainSpec& spec, const ArmCheckpoint& checkpoint, const GenerateOptions& options,
                 Backend* gpu) {
    Reader out;
    out.model = make_model(spec);
    set_parameters(*out.model, checkpoint);
    if (!gpu) return out;
    ServedModel served{.spec = spec};
    for (const Parameter<float>& parameter : out.model->parameters())
        served.parameters.emplace_back(parameter.value);
    if (!options.weights.empty()) served.formats.weights = find_served_weights(options.weights);
    if (!options.kv.empty()) served.formats.cache = find_served_cache(options.kv);
    if (served.formats.cache == ServedCache::e4m3) calibrate(served, checkpoint);
    out.engine = gpu->make_token_engine(served);
    out.model.reset();
    return out;
}

std::vector<int> sample(const Reader& reader, const std::vector<int>& prompt,
                        const SampleSettings& settings) {
    if (!reader.engine) return sample_tokens(*reader.model, prompt, settings);
    // The backend's library does not ask, so a long prompt goes to it in parts.
    constexpr std::size_t kAtOnce = 256;
    const auto read = [&](std::span<const int> unread, bool anew) {
        ask_between();
        if (anew) reader.engine->forget(0);
        for (; unread.size() > kAtOnce; unread = unread.subspan(kAtOnce)) {
            reader.engine->read(unread.first(kAtOnce));
            ask_between();
        }
        return reader.engine->read(unread);
    };
    return sample_tokens(read, prompt, settings);
}

// Until all are drawn, or to a signal. Returns how many.
std::size_t draw(const Reader& reader, const Corpus& corpus, const GenerateOptions& options,
                 std::string& text) {
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    std::size_t drawn = 0;
    SampleSettings settings = options.sample;
    settings.each = [&](int code) {
        text += corpus.symbols[static_cast<std::size_t>(code)];
        ++drawn;
        if (progress.due())
            progress.at(fmt::format("generate: {} of {} characters", drawn, options.sample.count));
    };
    try {
        sample(reader, encode(corpus, options.prompt), settings);
    } catch (const Interrupted&) {
    }
    return drawn;
}

TrainSpec spec_of(const std::filesystem::path& file) {
    TrainSpec spec = parse_command_line(command_line_of(file), file.string());
    if (spec.task != TaskKind::text)
        throw input_error(file.string(), "was not trained on text; generate needs --task text");
    spec.arms.resize(1);
    return spec;
}

// The arm of a file, by its own recipe: the command line has those of all arms.
void check_served_arm(TrainSpec& spec, const std::filesystem::path& file) {
    const auto metadata = index_safetensors(RandomFile(file)).metadata;
    const auto recipe = metadata.find("recipe");
    if (recipe != metadata.end() && !recipe->second.empty()) {
        try {
            spec.arms = {parse_recipe(recipe->second)};
        } catch (const Error& error) {
            throw input_error(file.string(), error.why());
        }
    }
    check_served(spec);
}

// None: the CPU. What a GPU has to be for is refused where it is not taken.
std::unique_ptr<Backend> gpu_of(const GenerateOptions& options) {
    if (!options.weights.empty()) find_served_weights(options.weights);
    if (!options.kv.empty()) find_served_cache(options.kv);
    ChosenBackend chosen = choose_backend(options.backend);
    if (options.backend == "auto") tell_backend(chosen);
    if (chosen.backend->device().provenance != Provenance::cpu_emulated) return std::move(chosen.backend);
    for (const auto& [option, given] :
         {std::pair{"--weights", options.weights}, std::pair{"--kv", options.kv}})
        if (!given.empty()) throw usage_error(option, "is for --backend cuda; the CPU computes in FP32");
    return nullptr;
}

void generate(GenerateOptions options) {
    const std::unique_ptr<Backend> gpu = gpu_of(options);
    const auto files = checkpoints_to_load(options.resume);
    if (files.empty()) throw input_error(options.resume, "has no checkpoint");
    std::vector<TrainSpec> specs;  // before the first text is printed
    for (const std::filesystem::path& file : files) {
        specs.push_back(spec_of(file));
        if (gpu) check_served_arm(specs.back(), file);
    }
    std::size_t written = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::filesystem::path& file = files[i];
        const TrainSpec& spec = specs[i];
        const bool calibrates = gpu && options.kv == to_string(ServedCache::e4m3);
        require_memory("generate",
                       cpu_inference_bytes(spec, static_cast<std::size_t>(spec.sizes.at("context")) *
                                                     (calibrates ? TokenModel::kTrainSequences : 1)));
        const LoadedCheckpoints loaded = load_checkpoints(file, spec);
        const Corpus corpus = corpus_of(spec.text_path);
        const Reader reader = reader_of(spec, loaded.arms.front(), options, gpu.get());
        options.sample.context = static_cast<std::size_t>(spec.sizes.at("context"));
        options.sample.swiglu = swiglu_of(loaded.arms.front());
        std::string text = fold_text(options.prompt, "--prompt");
        if (files.size() > 1) text.insert(0, fmt::format("# {}\n", printable(file.filename().string())));
        const Interruptible keeps;  // what was drawn; until here a signal ends it at once
        written += draw(reader, corpus, options, text);
        write_stdout(text + "\n");
        end_if_interrupted(fmt::format("after {} characters; they are printed", written));
    }
}

}  // namespace

void add_generate(CLI::App& app, Globals&) {
    const auto options = std::make_shared<GenerateOptions>();
    SampleSettings& sample = options->sample;
    CLI::App* verb =
        app.add_subcommand("generate", "Writes text with a transformer that train --save has saved");
    verb->add_option("--resume", options->resume, "a checkpoint, or a folder with one per arm")->required();
    verb->add_option("--backend", options->backend, "auto, cpu or cuda")->capture_default_str();
    verb->add_option(
        "--weights", options->weights,
        "cuda: " + served_weights_names() + ": weights, and what they are multiplied with; bf16");
    verb->add_option("--kv", options->kv,
                     "cuda: keys and values are kept in " + served_cache_names() + "; bf16");
    verb->add_option("--prompt", options->prompt, "what the text starts with")->capture_default_str();
    verb->add_option("--characters", sample.count, "how many follow")
        ->check(whole("--characters", 1, 1'000'000))
        ->capture_default_str();
    verb->add_option("--temperature", sample.temperature,
                     "divides the logits; 0: always the most probable character")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    verb->add_option("--seed", sample.seed, "of the draws")->check(check_seed)->capture_default_str();
    verb->callback([options] { generate(*options); });
}

}  // namespace fp8lab::cli
