// fp8lab generate: text from the checkpoints of a transformer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "app/cli/option_values.h"
#include "app/cli/train/train_options.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/files/memory.h"
#include "core/files/progress_line.h"
#include "core/nn/memory/cpu_memory.h"
#include "core/nn/model.h"
#include "core/nn/tokens/corpus.h"
#include "core/threads/ask.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/sample.h"

namespace fp8lab::cli {

namespace {

struct GenerateOptions {
    std::string resume, prompt = "a gradient ";
    SampleSettings sample;
};

// Until all are drawn, or to a signal. Returns how many.
std::size_t draw(Model<float>& model, const Corpus& corpus, const GenerateOptions& options,
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
        sample_tokens(model, encode(corpus, options.prompt), settings);
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

void generate(GenerateOptions options) {
    const auto files = checkpoints_to_load(options.resume);
    if (files.empty()) throw input_error(options.resume, "has no checkpoint");
    std::vector<TrainSpec> specs;  // before the first text is printed
    for (const std::filesystem::path& file : files) specs.push_back(spec_of(file));
    std::size_t written = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::filesystem::path& file = files[i];
        const TrainSpec& spec = specs[i];
        require_memory("generate",
                       cpu_inference_bytes(spec, static_cast<std::size_t>(spec.sizes.at("context"))));
        const LoadedCheckpoints loaded = load_checkpoints(file, spec);
        const Corpus corpus = corpus_of(spec.text_path);
        const auto model = make_model(spec);
        set_parameters(*model, loaded.arms.front());
        options.sample.context = static_cast<std::size_t>(spec.sizes.at("context"));
        std::string text = fold_text(options.prompt, "--prompt");
        if (files.size() > 1) text.insert(0, fmt::format("# {}\n", printable(file.filename().string())));
        const Interruptible keeps;  // what was drawn; until here a signal ends it at once
        written += draw(*model, corpus, options, text);
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
