#include "app/cli/infer/infer_kv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <ranges>

#include "app/cli/infer/infer_report.h"
#include "app/cli/infer/saved_tokens.h"
#include "app/cli/verb.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"
#include "core/inference/serve/cache_cost.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

constexpr double kLeastFactor = 0.00390625, kMostFactor = 256;  // 2^-8 to 2^8

nlohmann::json bytes_json(const CacheScheme& scheme, const TrainSpec& spec) {
    const auto bytes = [&](const KvShape& shape) { return cache_bytes_per_token(shape, scheme); };
    const int heads = spec.sizes.at("heads"), shared = spec.sizes.at("kv-heads");
    nlohmann::json out = {{"model", bytes({1, shared == 0 ? heads : shared, spec.sizes.at("d") / heads})}};
    for (const CacheModel& model : kCacheModels) out[std::string(model.id)] = bytes(model.shape);
    return out;
}

std::string kv_table(const nlohmann::json& out) {
    std::string text =
        fmt::format("{}, {}\nK and V in {}, K times {}\n", out.at("network").get<std::string>(),
                    out.at("data").get<std::string>(), out.at("label").get<std::string>(),
                    format_number(out.at("k_factor").get<double>()));
    const auto add = [&text](const std::string& name, double value) {
        text += fmt::format("{:<24} {:>11}\n", name, format_number(value));
    };
    for (const char* name : {"kv_divergence", "k_divergence", "v_divergence", "saturated_pct_k"})
        add(name, out.at(name));
    for (const auto& [name, value] : out.at("bytes_per_token_layer").items()) add("bytes " + name, value);
    return text;
}

}  // namespace

void add_infer_kv(CLI::App& verb, InferKvOptions& options, const std::vector<CLI::Option*>& others) {
    CLI::Option* kv = verb.add_option(
        "--kv", options.scheme,
        fmt::format("{}: of a transformer the keys and values are kept so",
                    fmt::join(cache_schemes() | std::views::transform(&CacheScheme::id), ", ")));
    for (CLI::Option* other : others) kv->excludes(other);
    verb.add_option("--k-factor", options.k_factor, "K times this and Q divided by it, 2^-8 to 2^8; 1")
        ->check(CLI::Range(kLeastFactor, kMostFactor))
        ->needs(kv);
}

void infer_kv(const InferKvOptions& options, const std::string& file, bool json) {
    const CacheScheme& scheme = find_cache_scheme(options.scheme, "--kv");
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at("infer: reading " + file);
    const SavedTokens saved = read_tokens(file, "--kv");
    const auto model = saved.model();
    progress.at("infer: the cache");
    const CacheCost cost = CacheMeter(model).cost(scheme, static_cast<float>(options.k_factor));
    nlohmann::json out = json_header(cpu_backend()->device());
    out["file"] = file;
    out["network"] = fmt::format("{}, {} layers", saved.spec.model, model->layers().size());
    out["data"] = model->data().name;
    out["rows"] = model->data().targets.rows;
    out["kv"] = scheme.id, out["label"] = scheme.label;
    out["k_factor"] = options.k_factor;
    out["kv_divergence"] = finite_or_null(cost.divergence);
    out["k_divergence"] = finite_or_null(cost.k_divergence);
    out["v_divergence"] = finite_or_null(cost.v_divergence);
    out["saturated_pct_k"] = cost.saturated_pct_k;
    out["amax_k"] = cost.largest_k, out["amax_v"] = cost.largest_v;
    out["bytes_per_token_layer"] = bytes_json(scheme, saved.spec);
    progress.erase();
    if (json)
        print_json(out);
    else
        write_stdout(kv_table(out));
}

}  // namespace fp8lab::cli
