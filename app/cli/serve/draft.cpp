// fp8lab draft MODEL: speculative decoding with a copy of the model in fewer bits as the draft.
#include "core/inference/serve/draft.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/infer/infer_report.h"
#include "app/cli/infer/saved_tokens.h"
#include "app/cli/option_values.h"
#include "app/cli/serve/engines.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

struct DraftOptions {
    std::string file, format, lower = "both", target = "bf16", cost = "bytes";
    int length = 4;
    bool json = false;
    DraftSettings settings;
};

// "0.25", "1/7"; none: it is no number above 0.
std::optional<double> ratio_of(const std::string& text) {
    const auto number = [](std::string_view part) {
        double value = 0;
        return read_number(part, value) ? value : 0;
    };
    const std::size_t slash = text.find('/');
    const double value = slash == text.npos ? number(text)
                                            : number(std::string_view(text).substr(0, slash)) /
                                                  number(std::string_view(text).substr(slash + 1));
    return value > 0 && value < 1e6 ? std::optional(value) : std::nullopt;
}

// Passes of the target that one of the draft costs: the bits of its weights, or as --cost says.
double cost_of(const DraftOptions& options, const Engine& draft) {
    if (options.cost == "bytes") return draft.bits() / (options.target == "bf16" ? 16 : 8);
    if (const auto own = ratio_of(options.cost)) return *own;
    throw usage_error("--cost", "takes bytes, or a number above 0 such as 1/7; got '" + options.cost + "'");
}

nlohmann::json draft_json(const DraftOptions& options, const DraftRun& run, double cost, double bits) {
    const auto length = static_cast<std::size_t>(options.length);
    nlohmann::json speedups = nlohmann::json::array(), expected = nlohmann::json::array(),
                   alphas = nlohmann::json::array();
    for (const double alpha : run.by_position) alphas.push_back(finite_or_null(alpha));
    for (std::size_t g = 1; g <= run.longest(); ++g)
        speedups.push_back(run.speedup(g, cost)), expected.push_back(run.expected(g));
    const std::size_t best = run.best_length(cost);
    return {{"sequences", run.sequences},
            {"bits", bits},
            {"cost", cost},
            {"alpha", run.alpha},
            {"alpha_k", alphas},
            {"reached", run.reached},
            {"length", options.length},
            {"expected_g", run.expected(length)},
            {"speedup", run.speedup(length, cost)},
            {"break_even", run.break_even(length)},
            {"best_length", best},
            {"best_speedup", run.speedup(best, cost)},
            {"expected", expected},
            {"speedups", speedups}};
}

std::string acceptance(const nlohmann::json& alpha) {
    return alpha.is_null() ? "-" : fmt::format("{:.3f}", alpha.get<double>());
}

std::string draft_table(const nlohmann::json& out) {
    std::string text =
        fmt::format("{}, {}\na draft in {} ({}), temperature {}: {:.1f} % of its first tokens are accepted\n",
                    out.at("network").get<std::string>(), out.at("data").get<std::string>(),
                    out.at("draft").get<std::string>(), out.at("lower").get<std::string>(),
                    format_number(out.at("temperature").get<double>()), 100 * out.at("alpha").get<double>());
    text += fmt::format("a token of the draft costs {} passes of the target ({})\n",
                        format_number(out.at("cost").get<double>()), out.at("target").get<std::string>());
    text += fmt::format("{:>6} {:>11} {:>9} {:>9}\n", "length", "acceptance", "tokens", "speed-up");
    for (std::size_t g = 0; g < out.at("speedups").size(); ++g)
        text += fmt::format("{:>6} {:>11} {:>9.3f} {:>9.3f}{}\n", g + 1, acceptance(out.at("alpha_k")[g]),
                            out.at("expected")[g].get<double>(), out.at("speedups")[g].get<double>(),
                            g + 1 == out.at("best_length").get<std::size_t>() ? "  best" : "");
    text += fmt::format("with {} tokens a draft pays below {} passes\n", out.at("length").get<int>(),
                        format_number(out.at("break_even").get<double>()));
    return text;
}

void draft(DraftOptions options) {
    const EngineSpec spec = engine_spec(options.format, "--draft", options.lower);
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at("draft: reading " + options.file);
    const SavedTokens saved = read_tokens(options.file, "draft");
    const auto longest = longest_draft(static_cast<std::size_t>(saved.spec.sizes.at("context")));
    if (static_cast<std::size_t>(options.length) > longest)
        throw usage_error("--length", fmt::format("is at most {}, a quarter of the context", longest));
    const auto model = saved.model();
    Engine target(model, {}), low(model, spec);
    const double cost = cost_of(options, low);
    options.settings.told = [&progress](std::size_t done, std::size_t of) {
        if (progress.due()) progress.at(fmt::format("draft: {} of {} tokens of text", done, of));
    };
    const DraftRun run = measure_draft(target, low, options.settings);
    nlohmann::json out = json_header(cpu_backend()->device(), options.settings.seed);
    out["file"] = options.file;
    out["network"] = fmt::format("{}, {} layers", saved.spec.model, model->layers().size());
    out["data"] = model->data().name;
    out["draft"] = options.format, out["lower"] = options.lower, out["target"] = options.target;
    out["temperature"] = options.settings.temperature;
    out.update(draft_json(options, run, cost, low.bits()));
    progress.erase();
    if (options.json)
        print_json(out);
    else
        write_stdout(draft_table(out));
}

}  // namespace

void add_draft(CLI::App& app, Globals&) {
    const auto options = std::make_shared<DraftOptions>();
    CLI::App* verb = app.add_subcommand(
        "draft", "Speculative decoding with a copy of a transformer in fewer bits as the draft");
    verb->add_option("model", options->file, "a checkpoint that train --save has written")->required();
    verb->add_option("--draft", options->format, "F, the format of the draft's weights")->required();
    verb->add_option("--lower", options->lower, "what is in F: weights, or both weights and inputs; both")
        ->check(CLI::IsMember({"weights", "both"}));
    verb->add_option("--temperature", options->settings.temperature,
                     "divides the logits of both, 0.001 to 100 (1); 0: always the most probable token")
        ->check(CLI::Range(0.0, 100.0));
    verb->add_option("--length", options->length, "tokens that the draft proposes, 1 to 16 (4)")
        ->check(whole("--length", 1, 16));
    verb->add_option("--target", options->target, "bf16 or e4m3: the bits that the target reads (bf16)")
        ->check(CLI::IsMember({"bf16", "e4m3"}));
    verb->add_option(
        "--cost", options->cost,
        "of a token of the draft, in passes of the target: bytes, or a number such as 1/7 (bytes)");
    verb->add_option("--seed", options->settings.seed, "of prompts and draws (1)")->check(check_seed);
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] { draft(*options); });
}

}  // namespace fp8lab::cli
