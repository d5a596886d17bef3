// fp8lab quantize FILE[:TENSOR] --recipe R[,R...]: what each recipe would do to a tensor of the user's own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/progress_line.h"
#include "core/inspect/report.h"
#include "core/json/read_json.h"
#include "core/scaling/quantizer.h"
#include "core/tensors/file.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {

namespace {

struct QuantizeOptions {
    std::string file, recipes;
    bool json = false, unscaled_codes = false;
};

struct Row {
    std::string recipe;
    ErrorMetrics metrics;
    double bits_per_element;
};

// A column of the table, a member of the JSON.
struct Column {
    std::string_view name;
    double (*value)(const Row&);
};
constexpr std::array kColumns = {
    Column{"sqnr_db", [](const Row& row) { return row.metrics.sqnr_db; }},
    Column{"rel_l2", [](const Row& row) { return row.metrics.rel_l2; }},
    Column{"mse", [](const Row& row) { return row.metrics.mse; }},
    Column{"max_rel", [](const Row& row) { return row.metrics.max_rel; }},
    Column{"cosine", [](const Row& row) { return row.metrics.cosine; }},
    Column{"underflow_pct", [](const Row& row) { return row.metrics.underflow_pct; }},
    Column{"overflow_pct", [](const Row& row) { return row.metrics.overflow_pct; }},
    Column{"max_code_pct", [](const Row& row) { return row.metrics.max_code_pct; }},
    Column{"bits_per_element", [](const Row& row) { return row.bits_per_element; }},
    Column{"lost_l1_pct", [](const Row& row) { return row.metrics.lost_l1_pct; }},
    Column{"lost_energy_pct", [](const Row& row) { return row.metrics.lost_energy_pct; }},
};
// The columns of the tensor, the same for every recipe.
constexpr std::array kTensorColumns = {
    Column{"amax", [](const Row& row) { return row.metrics.amax; }},
    Column{"amin_nonzero", [](const Row& row) { return row.metrics.amin_nonzero; }},
    Column{"dynamic_range_log2", [](const Row& row) { return row.metrics.dynamic_range_log2; }},
};

std::int64_t size_of(const Tensor& tensor) { return static_cast<std::int64_t>(tensor.values.size()); }

std::vector<Row> measure(const Tensor& tensor, const std::vector<Recipe>& recipes, ProgressLine& progress) {
    std::vector<float> out(tensor.values.size());
    std::vector<Row> rows;
    for (const Recipe& recipe : recipes) {
        progress.at(
            fmt::format("quantize: recipe {} of {}, {}", rows.size() + 1, recipes.size(), recipe.name));
        QuantizeResult result = quantize(cast_plan(recipe, TensorClass::x), tensor.values, out,
                                         {.rows = tensor.rows, .cols = tensor.cols, .with_errors = true});
        // Means are over the values that were cast.
        result.errors.nan = tensor.excluded.nan;
        result.errors.inf = tensor.excluded.inf + tensor.excluded.beyond;
        rows.push_back({recipe.name, error_metrics(result.stats, result.errors),
                        bits_per_element(recipe, tensor.rows, tensor.cols)});
    }
    return rows;
}

// JSON has no word for Inf and NaN.
nlohmann::json number(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

void print_metrics(const QuantizeOptions& options, const Tensor& tensor, const std::vector<Row>& rows) {
    nlohmann::json out = json_header(cpu_backend()->device());
    out["file"] = options.file;
    out["tensor"] = tensor.name;
    out["rows"] = tensor.rows;
    out["cols"] = tensor.cols;
    if (!tensor.scales.empty()) out["scales"] = tensor.scales;
    if (!tensor.scale_health.is_usual()) out["odd_scales"] = to_json(tensor.scale_health);
    out["nonfinite"] = {{"nan", tensor.excluded.nan},
                        {"inf", tensor.excluded.inf},
                        {"beyond_float32", tensor.excluded.beyond},
                        {"below_float32", tensor.excluded.below}};
    for (const Column& column : kTensorColumns) out[column.name] = number(column.value(rows[0]));
    for (const Row& row : rows) {
        nlohmann::json entry = {{"recipe", row.recipe}};
        for (const Column& column : kColumns) entry[column.name] = number(column.value(row));
        for (const Column& column : kTensorColumns) entry[column.name] = number(column.value(row));
        out["recipes"].push_back(std::move(entry));
    }
    print_json(out);
}

void print_table(const Tensor& tensor, const std::vector<Row>& rows) {
    fmt::print("{}: {} x {}", printable(tensor.name), tensor.rows, tensor.cols);
    for (const Column& column : kTensorColumns)
        fmt::print(", {} {}", column.name, format_number(column.value(rows[0])));
    if (tensor.excluded.count() > 0) fmt::print("; {}", tensor.excluded.sentence(size_of(tensor)));
    std::size_t width = 6;
    for (const Row& row : rows) width = std::max(width, row.recipe.size());
    fmt::print("\n{:<{}}", "recipe", width);
    const auto width_of = [](const Column& column) {  // 9: "-1.234e-5"
        return 2 + std::max<std::size_t>(column.name.size(), 9);
    };
    for (const Column& column : kColumns) fmt::print("{:>{}}", column.name, width_of(column));
    fmt::print("\n");
    for (const Row& row : rows) {
        fmt::print("{:<{}}", row.recipe, width);
        for (const Column& column : kColumns)
            fmt::print("{:>{}}", format_number(column.value(row)), width_of(column));
        fmt::print("\n");
    }
}

void quantize_file(const QuantizeOptions& options) {
    const std::vector<Recipe> recipes = parse_recipes(options.recipes);
    for (const Recipe& recipe : recipes) {
        const auto refused = [&](const std::string& why) {
            return usage_error("--recipe",
                               "recipe " + recipe.name + ": " + why + "; quantize casts one tensor");
        };
        if (!recipe.wide.empty()) throw refused("wide names layers of a training");
        if (has_inputs(recipe) || recipe.columns_from_rowwise)
            throw refused("fprop_in, dgrad_in, wgrad_in and colsrc are about GEMMs of a training");
        if (recipe.scope != CastScope::linears) throw refused("scope names GEMMs of a transformer");
        if (recipe.act != SwigluForm::plain) throw refused("act is what a transformer computes");
        if (recipe.router != Recipe().router) throw refused("router is of a model with experts");
    }
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    progress.at("quantize: reading " + options.file);
    Tensor tensor = read_tensor(options.file, Pipes::read, options.unscaled_codes);
    exclude(tensor);
    const std::vector<Row> rows = measure(tensor, recipes, progress);
    progress.erase();
    const auto say = [&](const std::string& what) {
        if (!what.empty()) tell(fmt::format("quantize: {}: {}", quote_from(tensor.name), what));
    };
    say(tensor.note);
    if (!tensor.scale_health.is_usual()) say("among its scales: " + tensor.scale_health.words());
    if (tensor.scales == "none found") say("codes without a scale, none found: they are taken as values");
    if (tensor.excluded.count() > 0)
        tell(fmt::format("quantize: {}: {}", quote_from(tensor.name),
                         tensor.excluded.sentence(size_of(tensor))));
    if (options.json)
        print_metrics(options, tensor, rows);
    else
        print_table(tensor, rows);
}

}  // namespace

void add_quantize(CLI::App& app, Globals&) {
    const auto options = std::make_shared<QuantizeOptions>();
    CLI::App* verb =
        app.add_subcommand("quantize", "The error metrics of each recipe for a tensor of your own");
    verb->add_option("file", options->file,
                     ".safetensors, .safetensors.index.json, .npy, .npz or .png, FILE[:TENSOR]")
        ->required();
    verb->add_option("--recipe", options->recipes, "R[,R...]; list recipes shows them")->required();
    verb->add_flag("--unscaled-codes", options->unscaled_codes,
                   "codes for which no scale is found are taken as values");
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] { quantize_file(*options); });
}

}  // namespace fp8lab::cli
