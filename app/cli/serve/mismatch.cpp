// fp8lab mismatch MODEL: what a trainer sees of tokens that an engine in fewer bits has drawn.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/infer/infer_report.h"
#include "app/cli/infer/saved_tokens.h"
#include "app/cli/option_values.h"
#include "app/cli/serve/engines.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"
#include "core/inference/serve/rollout.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

struct MismatchOptions {
    std::string file, rollout, truncate = "off";
    int tokens = 56, answers = 128;
    bool json = false;
    RolloutSettings settings;
};

// "e4m3-row:kv=fp8": weights and inputs, and the cache; fp8 is the scheme `one`.
EngineSpec rollout_spec(const std::string& text) {
    const std::size_t colon = text.find(':');
    EngineSpec spec = engine_spec(text.substr(0, colon), "--rollout", "both");
    std::string cache = "bf16";
    if (colon != text.npos) {
        const std::string option = text.substr(colon + 1);
        if (!option.starts_with("kv="))
            throw usage_error("--rollout", "takes F or F:kv=C; got '" + text + "'");
        cache = option.substr(3);
    }
    spec.cache = &find_cache_scheme(cache == "fp8" ? "one" : cache, "--rollout");
    return spec;
}

double truncation_of(const std::string& text) {
    if (text == "off") return std::numeric_limits<double>::infinity();
    std::size_t read = 0;
    double most = 0;
    try {
        most = std::stod(text, &read);
    } catch (const std::exception&) {
        read = 0;
    }
    if (read != text.size() || !(most >= 1) || !std::isfinite(most))
        throw usage_error("--truncate", "takes off, or a weight of at least 1; got '" + text + "'");
    return most;
}

nlohmann::json rollout_json(const Rollout& run, double most) {
    constexpr double kAll = std::numeric_limits<double>::infinity();
    const std::size_t tokens = run.d.cols;
    nlohmann::json by_length = nlohmann::json::array();
    for (const double pct : run.ess_pct_by_length()) by_length.push_back(finite_or_null(pct));
    return {{"answers", run.d.rows},
            {"tokens", tokens},
            {"mean_abs_d", run.mean_abs_d()},
            {"kl", run.kl},
            {"over_2_pct", run.over_2_pct()},
            {"ess_pct", finite_or_null(run.ess_pct(tokens, kAll))},
            {"ess_truncated_pct", finite_or_null(run.ess_pct(tokens, most))},
            {"ess_by_length", by_length}};
}

std::string mismatch_table(const nlohmann::json& out) {
    std::string text =
        fmt::format("{}, {}\n{} answers of {} tokens by {}, temperature {}; the trainer in BF16\n",
                    out.at("network").get<std::string>(), out.at("data").get<std::string>(),
                    out.at("answers").get<int>(), out.at("tokens").get<int>(),
                    out.at("rollout").get<std::string>(), format_number(out.at("temperature").get<double>()));
    for (const char* name : {"mean_abs_d", "kl", "over_2_pct", "ess_pct", "ess_truncated_pct"})
        text += fmt::format("{:<20} {:>11}\n", name,
                            out.at(name).is_null() ? "-" : format_number(out.at(name).get<double>()));
    return text;
}

void mismatch(MismatchOptions options) {
    EngineSpec low = rollout_spec(options.rollout);
    const double most = truncation_of(options.truncate);
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at("mismatch: reading " + options.file);
    const SavedTokens saved = read_tokens(options.file, "mismatch");
    const auto model = saved.model();
    const CacheAmaxes amaxes = is_calibrated(*low.cache) ? calibrated_cache(*model) : CacheAmaxes{};
    if (is_calibrated(*low.cache)) low.amaxes = &amaxes;
    RolloutSettings settings = options.settings;
    settings.tokens = static_cast<std::size_t>(options.tokens);
    settings.answers = static_cast<std::size_t>(options.answers);
    settings.told = [&progress](std::size_t done, std::size_t of) {
        if (progress.due()) progress.at(fmt::format("mismatch: {} of {} tokens", done, of));
    };
    Engine rollout(model, low), trainer(model, rollout_spec("bf16"));
    const Rollout run = measure_rollout(rollout, trainer, settings);
    nlohmann::json out = json_header(cpu_backend()->device(), settings.seed);
    out["file"] = options.file;
    out["network"] = fmt::format("{}, {} layers", saved.spec.model, model->layers().size());
    out["data"] = model->data().name;
    out["rollout"] = options.rollout, out["truncate"] = options.truncate;
    out["temperature"] = settings.temperature;
    out.update(rollout_json(run, most));
    progress.erase();
    if (options.json)
        print_json(out);
    else
        write_stdout(mismatch_table(out));
}

}  // namespace

void add_mismatch(CLI::App& app, Globals&) {
    const auto options = std::make_shared<MismatchOptions>();
    CLI::App* verb = app.add_subcommand(
        "mismatch", "Tokens that an engine in fewer bits draws, and what a trainer in BF16 makes of them");
    verb->add_option("model", options->file, "a checkpoint that train --save has written")->required();
    verb->add_option("--rollout", options->rollout,
                     "F[:kv=C]: weights and inputs in F, the cache in C (fp8, or a scheme of infer --kv)")
        ->required();
    verb->add_option("--temperature", options->settings.temperature, "of the draws, above 0 (1)")
        ->check(CLI::Range(1e-3, 100.0));
    verb->add_option("--tokens", options->tokens, "of an answer, behind a prompt of 8 (56)")
        ->check(whole("--tokens", 1, 4096));
    verb->add_option("--answers", options->answers, "their number (128)")->check(whole("--answers", 1, 4096));
    verb->add_option("--truncate", options->truncate, "off, or the largest weight, at least 1 (off)");
    verb->add_option("--seed", options->settings.seed, "of prompts and draws (1)")->check(check_seed);
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] { mismatch(*options); });
}

}  // namespace fp8lab::cli
