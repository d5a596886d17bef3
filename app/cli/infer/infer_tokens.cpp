#include "app/cli/infer/infer_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/infer/infer_report.h"
#include "app/cli/infer/saved_tokens.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/inference/token_mix.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

constexpr int kLayerBatches = 3;  // of 8 held-out ones: every subset of layers is one pass over them

struct Pair {
    const LowFormat *high, *low;
};
Pair pair_of(const std::string& text) {
    const std::vector<std::string> parts = parts_of(text);
    if (parts.size() != 2) throw usage_error("--mixed-tokens", "takes HIGH,LOW; got '" + text + "'");
    const auto find = [](const std::string& id) -> const LowFormat& {
        const LowFormat& format = find_low_format(id, "--mixed-tokens", RecipeList::weights);
        return find_low_format(format.id, "--mixed-tokens", RecipeList::activations);
    };
    return {&find(parts[0]), &find(parts[1])};
}

nlohmann::json layers_json(const SavedTokens& saved, const Pair& formats, double share,
                           ProgressLine& progress) {
    TokenMix mix(saved.model(kLayerBatches), *formats.high, *formats.low);
    const std::vector<double> subsets = mix.layer_subsets([&](std::size_t done, std::size_t of) {
        if (progress.due()) progress.at(fmt::format("infer: {} of {} subsets of layers", done, of));
    });
    const std::uint32_t best = best_layers(mix, subsets, share);
    nlohmann::json names = nlohmann::json::array();
    for (std::size_t l = 0; l < mix.linears().size(); ++l)
        if ((best >> l & 1U) != 0) names.push_back(mix.linears()[l].name);
    return {{"rows", mix.tokens()},
            {"subsets", subsets.size()},
            {"divergence", finite_or_null(subsets[best])},
            {"share", mix.share_of_layers(best)},
            {"high", names},
            {"weight_bits", mix.weight_bits_of_layers(best)},
            {"divergence_high", finite_or_null(subsets.back())},
            {"divergence_low", finite_or_null(subsets.front())}};
}

std::string tokens_table(const nlohmann::json& out) {
    std::string text =
        fmt::format("{}, {}\n{} of the tokens in {}, the others in {}: {}\n",
                    out.at("network").get<std::string>(), out.at("data").get<std::string>(),
                    format_number(out.at("share").get<double>()), out.at("high").get<std::string>(),
                    out.at("low").get<std::string>(), out.at("important").get<std::string>());
    const auto add = [&text](const std::string& name, const nlohmann::json& value) {
        text +=
            fmt::format("{:<20} {:>11}\n", name, value.is_null() ? "-" : format_number(value.get<double>()));
    };
    for (const char* name : {"divergence", "random_divergence", "ratio", "divergence_high", "divergence_low",
                             "activation_bits", "weight_bits"})
        add(name, out.at(name));
    if (!out.contains("by_layer")) return text;
    const nlohmann::json& layers = out.at("by_layer");
    text += fmt::format("whole layers in {}, the best of {} subsets with at most that share: {}\n",
                        out.at("high").get<std::string>(), layers.at("subsets").get<int>(),
                        fmt::join(layers.at("high").get<std::vector<std::string>>(), ","));
    for (const char* name :
         {"rows", "share", "divergence", "divergence_high", "divergence_low", "weight_bits"})
        add(name, layers.at(name));
    return text;
}

}  // namespace

void add_infer_tokens(CLI::App& verb, InferOptions& options, const std::vector<CLI::Option*>& others) {
    CLI::Option* mixed = verb.add_option("--mixed-tokens", options.mixed_tokens,
                                         "HIGH,LOW: of a transformer some tokens in HIGH, the others in LOW");
    for (CLI::Option* other : others) mixed->excludes(other);
    verb.add_option("--important", options.important,
                    "which tokens are in HIGH: attention, confidence, first, last, rare, random or oracle; "
                    "attention")
        ->needs(mixed);
    verb.add_option("--share", options.share, "of the tokens in HIGH; 0.25")
        ->check(CLI::Range(0.0, 1.0))
        ->needs(mixed);
    verb.add_option("--seed", options.seed, "of the tokens at random; 1")->needs(mixed);
    verb.add_flag("--by-layer", options.by_layer,
                  fmt::format("besides whole layers in HIGH: every subset of up to {} linear layers",
                              TokenMix::kMostLinears))
        ->needs(mixed);
}

void infer_tokens(const InferOptions& options) {
    const Pair formats = pair_of(options.mixed_tokens);
    const Importance importance = find_importance(options.important, "--important");
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at("infer: reading " + options.file);
    const SavedTokens saved = read_tokens(options.file, "--mixed-tokens");
    const auto model = saved.model();
    progress.at("infer: the reference in BF16");
    TokenMix mix(model, *formats.high, *formats.low);
    if (options.by_layer && mix.linears().size() > TokenMix::kMostLinears)
        throw usage_error("--by-layer",
                          fmt::format("tries every subset of up to {} linear layers; this model has {}",
                                      TokenMix::kMostLinears, mix.linears().size()));
    progress.at("infer: the important tokens in " + std::string(formats.high->label));
    const double own = mix.divergence(importance, options.share, options.seed);
    std::vector<double> draws;
    for (int draw = 0; draw < TokenMix::kRandomDraws; ++draw) {
        progress.at(fmt::format("infer: tokens at random, {} of {}", draw + 1, TokenMix::kRandomDraws));
        draws.push_back(mix.divergence(Importance::random, options.share, options.seed, draw));
    }
    double random = 0;
    for (const double draw : draws) random += draw / TokenMix::kRandomDraws;
    nlohmann::json out = json_header(cpu_backend()->device());
    out["file"] = options.file;
    out["network"] = fmt::format("{}, {} layers", saved.spec.model, model->layers().size());
    out["data"] = model->data().name;
    out["rows"] = model->data().targets.rows;
    out["divergence_is"] = "nats";
    out["high"] = formats.high->id, out["low"] = formats.low->id;
    out["important"] = options.important;
    out["share"] = options.share;
    out["seed"] = options.seed;
    out["divergence"] = finite_or_null(own);
    out["random_divergence"] = finite_or_null(random);
    out["random_draws"] = draws;
    out["ratio"] = finite_or_null(own / random);
    out["divergence_high"] = finite_or_null(mix.all_high());
    out["divergence_low"] = finite_or_null(mix.all_low());
    out["activation_bits"] = mix.activation_bits(options.share);
    out["weight_bits"] = mix.weight_bits();
    if (options.by_layer) out["by_layer"] = layers_json(saved, formats, options.share, progress);
    progress.erase();
    if (options.json)
        print_json(out);
    else
        write_stdout(tokens_table(out));
}

}  // namespace fp8lab::cli
