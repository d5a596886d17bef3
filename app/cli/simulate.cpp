// fp8lab simulate --amax FILE|-: delayed scaling on a series of amaxes, one a line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/scaling/delayed.h"

namespace fp8lab::cli {

namespace {

struct SimulateOptions {
    std::string amax, format = "e4m3", algo = "max";
    int history = 16, margin = 0, interval = 1;
    bool csv = false, json = false;
};

std::string join(const std::vector<float>& values) {
    std::string out;
    for (const float value : values) out.append(out.empty() ? "" : " ").append(shortest(value));
    return out;
}

void print_csv(const std::vector<SimulateStep>& steps) {
    fmt::print("step,amax,scale_used,amax_scaled,saturates,history,scale_next\n");
    for (const SimulateStep& s : steps)
        fmt::print("{},{},{},{},{},{},{}\n", s.step, shortest(s.amax), shortest(s.scale_used),
                   shortest(s.amax_scaled), s.saturates ? 1 : 0, join(s.history), shortest(s.scale_next));
}

// The history stands last, since it may be long.
void print_table(const std::vector<SimulateStep>& steps) {
    constexpr std::string_view kRow = "{:>6}{:>16}{:>16}{:>16}{:>11}{:>16}  {}\n";
    fmt::print(kRow, "step", "amax", "scale_used", "amax_scaled", "saturates", "scale_next", "history");
    for (const SimulateStep& s : steps)
        fmt::print(kRow, s.step, shortest(s.amax), shortest(s.scale_used), shortest(s.amax_scaled),
                   s.saturates ? "yes" : "no", shortest(s.scale_next), join(s.history));
}

// The double whose shortest decimal is the float's: 4.48, not 4.480000019073486. JSON has no word for Inf and
// NaN.
nlohmann::json number(float value) {
    if (!std::isfinite(value)) return nullptr;
    return std::strtod(shortest(value).c_str(), nullptr);
}

void print_series(const std::vector<SimulateStep>& steps, const SimulateOptions& options) {
    nlohmann::json out = json_header(cpu_backend()->device());
    out["format"] = options.format;
    out["history"] = options.history;
    out["algo"] = options.algo;
    out["margin"] = options.margin;
    out["interval"] = options.interval;
    out["steps"] = nlohmann::json::array();
    for (const SimulateStep& s : steps) {
        nlohmann::json history = nlohmann::json::array();
        for (const float value : s.history) history.push_back(number(value));
        out["steps"].push_back({{"step", s.step},
                                {"amax", number(s.amax)},
                                {"scale_used", number(s.scale_used)},
                                {"amax_scaled", number(s.amax_scaled)},
                                {"saturates", s.saturates ? 1 : 0},
                                {"history", history},
                                {"scale_next", number(s.scale_next)}});
    }
    print_json(out);
}

void simulate_file(const SimulateOptions& options) {
    // The same ranges and messages as a recipe's options of these names.
    const Recipe recipe =
        parse_recipe(fmt::format("delayed:history={}:margin={}:algo={}:interval={}", options.history,
                                 options.margin, options.algo, options.interval),
                     {}, "simulate");
    const FormatInfo& format = find_format(options.format, "--format");
    const std::string where = options.amax == "-" ? "stdin" : options.amax;
    const auto steps = simulate(parse_amax(read_bounded(options.amax, kLargestDocument, Pipes::read), where),
                                {&format, recipe.history, recipe.algo, recipe.margin, recipe.interval});
    if (options.json)
        print_series(steps, options);
    else if (options.csv)
        print_csv(steps);
    else
        print_table(steps);
}

}  // namespace

void add_simulate(CLI::App& app, Globals&) {
    const auto options = std::make_shared<SimulateOptions>();
    CLI::App* verb = app.add_subcommand("simulate", "Delayed scaling on a series of amaxes, one per line");
    verb->add_option("--amax", options->amax, "file with one amax per line; - is stdin")->required();
    verb->add_option("--format", options->format, "format of the cast (e4m3)");
    verb->add_option("--history", options->history, "amax history length, 1-4096 (16)")
        ->check(whole("--history", 1, 4096));
    verb->add_option("--algo", options->algo, "max or most_recent (max)");
    verb->add_option("--margin", options->margin, "powers of two left free above the amax, -8..16 (0)")
        ->check(whole("--margin", -8, 16));
    verb->add_option("--interval", options->interval, "scale recomputed every N-th step (1)")
        ->check(whole("--interval", 1, std::numeric_limits<int>::max()));
    CLI::Option* csv = verb->add_flag("--csv", options->csv, "as CSV");
    verb->add_flag("--json", options->json, "as JSON")->excludes(csv);
    verb->callback([options] { simulate_file(*options); });
}

}  // namespace fp8lab::cli
