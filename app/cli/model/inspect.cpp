// fp8lab inspect FILE [--recipe R,...] [--compare FILE] [--csv FILE] [--json]: every tensor of a model under every
// recipe, as the Workbench shows it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/inspect/report.h"
#include "core/inspect/table.h"
#include "core/json/read_json.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

struct InspectOptions {
    std::string file, compare, against, recipes, filter, csv;
    Demands demands;
    bool fold = false, json = false, unscaled_codes = false;
};

std::shared_ptr<const TensorStore> open_store(const std::string& path) {
    auto store = std::make_shared<const TensorStore>(open_tensors(path, Pipes::read));
    // Where nothing is known of any tensor, that is said as by quantize.
    const auto tensors = store->tensors();
    const auto is_other = [](const StoredTensor& tensor) { return tensor.role == TensorRole::other; };
    if (!tensors.empty() && std::ranges::all_of(tensors, is_other)) require_values(*store, tensors.front());
    return store;
}

// Runs to the end, or to a signal. `casts`: false ends it after the first pass. A part that a signal ends is not
// counted.
void run(Scan& scan, bool casts) {
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    const auto tell_of = [&] {
        if (!progress.due()) return;
        progress.at(fmt::format("inspect: {} of {} tensors, {:.0f} %", scan.scanned(), scan.rows().size(),
                                100 * scan.progress()));
    };
    try {
        while (!interrupted() && (casts || !scan.summarised()) && scan.step()) tell_of();
    } catch (const Interrupted&) {
    }
}

// What is odd about a file: what is not read, codes without a scale.
void say_of(const TensorStore& store, const std::string& begin, const InspectOptions& options) {
    for (const std::string& note : store.notes()) tell(begin + note);
    if (const std::string unscaled = store.unscaled(); !unscaled.empty())
        tell(begin + unscaled +
             (options.unscaled_codes ? "" : "; --unscaled-codes takes the codes as values"));
}

// None where a signal ended it.
std::optional<Against> compare_with(std::shared_ptr<const TensorStore> original, const Scan& scan) {
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    try {
        return against_original(
            scan.store(), scan.rows(), std::move(original), [&](const AgainstProgress& at) {
                if (progress.due())
                    progress.at(fmt::format("inspect: compared {} of {} tensors", at.done, at.all));
            });
    } catch (const Interrupted&) {
        return std::nullopt;
    }
}

// A name that is too long for a table loses its middle: layers and kinds differ at both ends.
std::string cut_name(const std::string& name) {
    constexpr std::size_t kLongest = 72, kEnd = kLongest / 2 - 1;
    if (name.size() <= kLongest) return name;
    const auto starts = [&](std::size_t at) { return (static_cast<unsigned char>(name[at]) & 0xC0) != 0x80; };
    std::size_t first = kEnd, last = name.size() - kEnd;
    while (!starts(first)) --first;
    while (!starts(last)) ++last;
    return name.substr(0, first) + ".." + name.substr(last);
}

std::string percent(double value) {
    return value == 0 ? "0" : value < 0.01 ? "<0.01" : format_number(value, 3);
}

std::string table_text(const InspectReport& report, const InspectOptions& options) {
    const Scanned& scanned = report.scanned;
    const auto& recipes = scanned.recipes;
    const auto by = std::ranges::find(recipes, "current", &ScanRecipe::id);
    const auto order = by == recipes.end() ? 0 : static_cast<std::size_t>(by - recipes.begin());
    const auto rows = table_rows(*scanned.store, scanned.rows,
                                 {.fold = options.fold, .filter = options.filter, .recipe = order});
    std::vector<std::vector<std::string>> cells = {
        {options.fold ? "kind" : "tensor", "shape", "amax", "least", "binades"}};
    const bool shows_not_finite =
        std::ranges::any_of(rows, [](const TableRow& row) { return row.not_finite > 0; });
    if (shows_not_finite) cells[0].emplace_back("NaN, Inf");
    const bool shows_scales =
        std::ranges::any_of(rows, [](const TableRow& row) { return !row.scale_words().empty(); });
    if (shows_scales) cells[0].emplace_back("scales");
    if (report.against) cells[0].emplace_back("against, dB");
    const std::size_t facts = cells[0].size();
    for (const ScanRecipe& recipe : recipes) cells[0].push_back(recipe.id);
    cells[0].emplace_back("recommended");
    for (const TableRow& row : rows) {
        const ScanRow& worst = scanned.rows[row.worst];
        std::vector<std::string> line = {cut_name(printable(row.name)), row.shape};
        if (row.summarised && worst.not_scanned.empty())
            for (const double value : {static_cast<double>(row.amax), static_cast<double>(row.least)})
                line.push_back(format_number(value, 3));
        if (line.size() == 4) line.push_back(fmt::format("{:.1f}", row.binades));
        if (line.size() == 5 && shows_not_finite) line.push_back(std::to_string(row.not_finite));
        line.resize(facts, "-");
        if (shows_scales && !row.scale_words().empty())
            line[facts - (report.against ? 2 : 1)] = row.scale_words();
        if (report.against)
            if (const auto& against = report.against->rows[row.worst])
                line.back() = format_number(against->sqnr_db, 3);
        for (const double pct : row.underflow_pct) line.push_back(percent(pct));
        line.resize(facts + recipes.size(), "-");
        const Recommendation advice = recommend(worst, recipes, options.demands);
        line.push_back(!row.note.empty() && worst.outcomes.empty() ? row.note
                       : advice.recipe                             ? recipes[*advice.recipe].id
                                                                   : "none");
        cells.push_back(std::move(line));
    }
    std::vector<std::size_t> widths(cells[0].size());
    for (const auto& line : cells)
        for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
    std::string out;
    for (const auto& line : cells) {
        for (std::size_t c = 0; c + 1 < line.size(); ++c)
            out += c == 0 ? fmt::format("{:<{}}", line[c], widths[c])
                          : fmt::format("  {:>{}}", line[c], widths[c]);
        out += "  " + line.back() + "\n";
    }
    return out + report.foot();
}

void inspect(const InspectOptions& options) {
    auto recipes = options.recipes.empty() ? scan_recipes() : parse_scan_recipes(options.recipes);
    Outputs outputs;
    outputs.reads(options.file);
    for (const std::string& also : {options.compare, options.against})
        if (!also.empty()) outputs.reads(also);
    if (options.csv != "-" || options.json) outputs.prints(options.json ? "--json" : "stdout");
    if (!options.csv.empty()) outputs.writes("--csv", options.csv, Holds::table);
    const auto store = open_store(options.file);
    Scan scan(store,
              {.recipes = recipes, .filter = options.filter, .unscaled_codes = options.unscaled_codes});
    std::unique_ptr<Scan> before;
    if (!options.compare.empty())
        before = std::make_unique<Scan>(
            open_store(options.compare),
            ScanSpec{.recipes = recipes, .filter = options.filter, .unscaled_codes = options.unscaled_codes});
    std::shared_ptr<const TensorStore> original;
    if (!options.against.empty()) original = open_store(options.against);
    say_of(*store, "inspect: ", options);
    if (before) say_of(before->store(), "inspect: " + quote_from(options.compare) + ": ", options);
    if (original) say_of(*original, "inspect: " + quote_from(options.against) + ": ", options);
    InspectReport report{.demands = options.demands, .filter = options.filter};
    {
        const Interruptible keeps;
        if (before) run(*before, false);
        run(scan, true);
        report.scanned = scanned_by(scan, before.get());
        if (original && !interrupted()) report.against = compare_with(original, scan);
        if (!options.csv.empty() && options.csv != "-") write_file(options.csv, report.csv());
    }
    for (const std::string& text : {report.excluded(), report.odd_scales()})
        if (!text.empty()) tell("inspect: " + text);
    if (report.against)
        for (const std::string& note : report.against->notes()) tell("inspect: " + note);
    if (options.json) {
        nlohmann::json out = json_header(cpu_backend()->device());
        out.update(report.json());
        print_json(out);
    } else {
        write_stdout(options.csv == "-" ? report.csv() : table_text(report, options));
    }
    end_if_interrupted(fmt::format("after {} of {} tensors; what was measured is written", scan.scanned(),
                                   scan.rows().size()));
}

}  // namespace

void add_inspect(CLI::App& app, Globals&) {
    const auto options = std::make_shared<InspectOptions>();
    CLI::App* verb = app.add_subcommand("inspect", "Every tensor of a model under every recipe");
    verb->add_option("file", options->file, ".safetensors, .safetensors.index.json, .npy or .npz")
        ->required();
    verb->add_option("--recipe", options->recipes, "R[,R...]; those of the Workbench");
    verb->add_option("--compare", options->compare, "an earlier state of the same model");
    verb->add_option("--against", options->against, "the original that the model was quantised from");
    verb->add_option("--min-sqnr", options->demands.min_sqnr_db, "demand on the SQNR, dB")
        ->capture_default_str();
    verb->add_option("--max-underflow", options->demands.max_underflow_pct, "demand on the underflow, %")
        ->capture_default_str();
    verb->add_flag("--fold", options->fold, "one row per kind of tensor, with the worst of its layers");
    verb->add_option("--filter", options->filter, "only tensors with this in their name");
    verb->add_flag("--unscaled-codes", options->unscaled_codes,
                   "codes for which no scale is found are taken as values");
    verb->add_option("--csv", options->csv, "table of all tensors as CSV; - is stdout");
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] { inspect(*options); });
}

}  // namespace fp8lab::cli
