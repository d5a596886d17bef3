// fp8lab plan CONFIG --gpu ID --batch B --seq T [--recipe R]: the products of a training step of a published model.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "core/backend/datasheet.h"
#include "core/backend/recording.h"
#include "core/base/error.h"
#include "core/base/match.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/plan/flop.h"
#include "core/plan/products.h"

namespace fp8lab::cli {
namespace {

struct PlanArguments {
    std::string config, gpu;
    plan::StepSize step{.recipe = "delayed"};
    bool full_attention = false, json = false;
    std::optional<double> tokens_per_second, peak;  // none: not told; the GPU's
};

// All that is said of a model on a GPU.
struct Planned {
    const Recording& gpu;
    plan::ModelSize model = {};
    plan::StepProducts step = {};
    plan::TokenFlop flop = {};
    double peak = 0, mfu = 0;  // TFLOP/s; 0: no tokens per second were given
};

const Recording& recording(std::string id) {
    std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto all = shipped();
    if (!all->problem.empty()) throw input_error("recordings", all->problem);
    if (const Recording* found = all->find(id)) return *found;
    throw unknown_name("--gpu", "recorded GPU", id, all->recordings, [](const Recording& r) { return r.id; });
}

Planned planned(const PlanArguments& arguments) {
    const Recording& gpu = recording(arguments.gpu);
    for (const auto& [option, value] :
         {std::pair("--tokens-per-second", arguments.tokens_per_second), std::pair("--peak", arguments.peak)})
        if (value && !(*value > 0 && std::isfinite(*value)))
            throw usage_error(option, "must be finite and above 0");
    const std::string text = read_bounded(arguments.config, kLargestDocument, Pipes::read);
    const std::string where = arguments.config == "-" ? "stdin" : arguments.config;
    Planned out{.gpu = gpu, .model = plan::read_model_size(text, where)};
    out.step = plan::step_products(out.model, arguments.step, gpu, where);
    out.flop = plan::training_flop(out.model, arguments.step.tokens, !arguments.full_attention);
    const Datasheet* sheet = datasheet(gpu.gpu);
    out.peak = arguments.peak.value_or(sheet ? sheet->bf16 : 0);
    if (out.peak <= 0)
        throw usage_error("--peak", fmt::format("is needed: the peak of {} is not known", gpu.gpu));
    if (arguments.tokens_per_second) out.mfu = plan::mfu(out.flop, *arguments.tokens_per_second, out.peak);
    return out;
}

std::string milliseconds(double ms) { return ms < 100 ? format_number(ms, 3) : fmt::format("{:.0f}", ms); }

std::string product_rows(const Planned& plan) {
    constexpr auto kRow = "{:<16} {:<6} {:>8} {:>8} {:>8} {:>7} {:>9} {:>9} {:>6}  {}\n";
    std::string out =
        fmt::format(kRow, "linear", "", "M", "N", "K", "times", "BF16 ms", "FP8 ms", "faster", "as recorded");
    bool far = false;
    for (const plan::StepProduct& p : plan.step.products) {
        out += fmt::format(kRow, p.linear, p.product, p.m, p.n, p.k, p.count, format_number(p.bf16_ms, 3),
                           format_number(p.fp8_ms, 3), fmt::format("{:.2f}", p.speedup()),
                           fmt::format("M {}, w {} x {}{}", p.near_m, p.near_n, p.near_k, p.far ? " *" : ""));
        far |= p.far;
    }
    if (far)
        out += "* more than a factor 2 away in M or in the size of w: the error was not tested so far away\n";
    return out;
}

std::string step_lines(const Planned& plan, const std::string& recipe) {
    const plan::StepProducts& step = plan.step;
    std::string out =
        fmt::format("products of a step: FP8 ({}) takes {:.3f} of the time of BF16", recipe, step.ratio());
    out += step.far_share > plan::kMostFar
               ? fmt::format(
                     ": it is {:.2f} times as fast, and how far that is off is not known: {:.0f} % of the "
                     "time is in "
                     "products with a *\n",
                     step.speedup(), 100 * step.far_share)
               : fmt::format(", +-{:.0f} %: it is {:.2f} times as fast ({:.2f} to {:.2f})\n",
                             100 * step.error, step.speedup(), step.least_speedup(), step.most_speedup());
    out += fmt::format("about {} ms in BF16 and {} ms in FP8, which may be off by 22 %\n",
                       milliseconds(step.bf16_ms), milliseconds(step.fp8_ms));
    for (const plan::StepParts& parts : step.parts)
        out += fmt::format(
            "a step of recorded blocks ({}, M {}): products are {:.0f} % of it in BF16, FP8 makes it {:.2f} "
            "times as "
            "fast\n",
            parts.blocks->name(), parts.blocks->step.batch * parts.blocks->sizes.at("context"),
            100 * parts.gemm_share, parts.speedup);
    if (plan.model.has_experts())
        out +=
            "experts: as separate products, with rows shared out evenly; no blocks with experts were "
            "recorded, so nothing is "
            "said of a step\n";
    else if (step.parts.empty())
        out +=
            "a step: no blocks with this recipe were recorded within a factor 2 of this width and M, so "
            "nothing is said of it\n";
    return out;
}

std::string flop_lines(const Planned& plan, const PlanArguments& arguments) {
    std::string out = fmt::format(
        "FLOP of a token: {:.1f} G in matrices (6 x {:.3f} G weights, head included) + {:.1f} G in attention "
        "({}) = {:.1f} G\n",
        plan.flop.matrices / 1e9, plan.model.matrices / 1e9, plan.flop.attention / 1e9,
        arguments.full_attention ? "without a mask" : "causal", plan.flop.all() / 1e9);
    if (plan.mfu > 0)
        out += fmt::format("MFU at {:.0f} tokens/s: {:.1f} % of {:.0f} TFLOP/s, dense\n",
                           *arguments.tokens_per_second, 100 * plan.mfu, plan.peak);
    else
        out += fmt::format("MFU 100 % of {:.0f} TFLOP/s, dense: {:.0f} tokens/s\n", plan.peak,
                           plan.peak * 1e12 / plan.flop.all());
    return out;
}

void print_table(const Planned& plan, const PlanArguments& arguments) {
    write_stdout(
        fmt::format("{}: {:.3f} G parameters, {:.3f} G for one token, {:.3f} G of these the embedding\n",
                    plan.model.model_type, plan.model.parameters / 1e9, plan.model.active / 1e9,
                    plan.model.embedding / 1e9) +
        fmt::format("{}, {}: times of the nearest recorded products\n\n", plan.gpu.gpu, plan.gpu.grid->date) +
        product_rows(plan) + "\n" + step_lines(plan, arguments.step.recipe) + flop_lines(plan, arguments));
}

nlohmann::json plan_json(const Planned& plan, const PlanArguments& arguments) {
    nlohmann::json out = json_header(cpu_backend()->device());
    out["gpu"] = plan.gpu.gpu;
    out["recorded"] = plan.gpu.grid->date;
    out["model_type"] = plan.model.model_type;
    out["parameters"] = plan.model.parameters;
    out["active_parameters"] = plan.model.active;
    out["embedding_parameters"] = plan.model.embedding;
    out["recipe"] = arguments.step.recipe;
    out["products"] = nlohmann::json::array();
    for (const plan::StepProduct& p : plan.step.products)
        out["products"].push_back({{"linear", p.linear},
                                   {"product", p.product},
                                   {"m", p.m},
                                   {"n", p.n},
                                   {"k", p.k},
                                   {"count", p.count},
                                   {"bf16_ms", p.bf16_ms},
                                   {"fp8_ms", p.fp8_ms},
                                   {"speedup", p.speedup()},
                                   {"near", {p.near_m, p.near_n, p.near_k}},
                                   {"far", p.far}});
    out["bf16_ms"] = plan.step.bf16_ms;
    out["fp8_ms"] = plan.step.fp8_ms;
    out["ratio"] = plan.step.ratio();
    out["ratio_error"] =
        plan.step.far_share > plan::kMostFar ? nlohmann::json() : nlohmann::json(plan.step.error);
    out["far_share"] = plan.step.far_share;
    out["speedup"] = plan.step.speedup();
    out["blocks"] = nlohmann::json::array();
    for (const plan::StepParts& parts : plan.step.parts)
        out["blocks"].push_back({{"recorded", parts.blocks->name()},
                                 {"gemm_share", parts.gemm_share},
                                 {"speedup", parts.speedup}});
    out["flop_matrices"] = plan.flop.matrices;
    out["flop_attention"] = plan.flop.attention;
    out["causal"] = !arguments.full_attention;
    out["peak_tflops"] = plan.peak;
    out["mfu"] = plan.mfu > 0 ? nlohmann::json(plan.mfu) : nlohmann::json();
    return out;
}

void run_plan(const PlanArguments& arguments) {
    const Planned plan = planned(arguments);
    if (!plan.model.note.empty()) tell("fp8lab: " + arguments.config + ": " + plan.model.note);
    if (arguments.json)
        print_json(plan_json(plan, arguments));
    else
        print_table(plan, arguments);
}

}  // namespace

void add_plan(CLI::App& app, Globals&) {
    const auto arguments = std::make_shared<PlanArguments>();
    CLI::App* verb = app.add_subcommand(
        "plan", "Products and FLOP of a training step of a published model, FP8 beside BF16");
    verb->add_option("config", arguments->config, "the model's config.json, - for stdin")->required();
    verb->add_option("--gpu", arguments->gpu, "h100 or h200: whose recorded times are taken")->required();
    verb->add_option("--batch", arguments->step.batch, "sequences of a step")
        ->required()
        ->check(whole("--batch", 1, plan::kMostTokens));
    verb->add_option("--seq", arguments->step.tokens, "tokens of a sequence")
        ->required()
        ->check(whole("--seq", 1, plan::kMostTokens));
    verb->add_option("--recipe", arguments->step.recipe, "delayed, current, rowwise or block128");
    verb->add_flag("--full-attention", arguments->full_attention, "count attention without the causal mask");
    verb->add_option("--tokens-per-second", arguments->tokens_per_second, "of a run of your own: its MFU");
    verb->add_option("--peak", arguments->peak, "dense peak in TFLOP/s; left out, that of the GPU in BF16");
    verb->add_flag("--json", arguments->json, "as JSON");
    verb->callback([arguments] { run_plan(*arguments); });
}

}  // namespace fp8lab::cli
