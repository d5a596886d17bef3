#include "labs/workbench/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/inspect/report.h"
#include "core/json/read_json.h"

namespace fp8lab::workbench {

using table::known, table::known_word, table::MetricRow;

const LabInfo Workbench::kInfo = {
    "workbench", 0, "Workbench", "Workbench", "What would each recipe do to your own tensors?", 20, "L6"};

std::span<const table::Experiment<Workbench>> Workbench::experiments() {
    static const std::array<table::Experiment<Workbench>, 1> kOne = {
        {{{},
          {"histogram", "where", "change", "loss", "lost", "binades"},
          &Workbench::figures,
          &Workbench::metrics}}};
    return kOne;
}

std::vector<table::Part*> Workbench::parts() {
    std::vector<table::Part*> out = {&scans, &tables, &details};
    const auto of_run = doctor.parts();
    out.insert(out.end(), of_run.begin(), of_run.end());
    return out;
}

std::string path_of(const std::string& file) {
    const std::string name = file.empty() ? std::string(kTrained) : file;
    if (name == kTrained || name == kUntrained || name == kScales)
        return asset("models/" + name + ".safetensors").string();
    if (name != kFaulty) return name;
    std::string out;
    for (int i = 1; i <= 6; ++i)
        out += (i == 1 ? "" : "\n") + asset(fmt::format("models/fault-{}.safetensors", i)).string();
    return out;
}

std::string percent_text(double pct) {
    if (pct == 0) return "0";
    if (pct < 0.01) return "<0.01";
    const double places = pct < 10 ? 100 : 10;
    return format_number(std::round(pct * places) / places, 3);
}

Demands Params::demands() const {
    Demands out{.min_sqnr_db = min_sqnr, .max_underflow_pct = max_underflow, .max_bits = max_bits};
    if (min_row > 0) out.min_row_db = min_row;
    return out;
}

ScanRequest Params::request() const {
    return {.file = path_of(file),
            .compare = compare.empty() ? "" : path_of(compare),
            .is_original = !compare.empty() && compare_as == "original",
            .mx_rule = mx_rule,
            .cast_as = cast_as,
            .uses = uses,
            .unscaled_codes = unscaled_codes};
}

// Another request forgets what was told of the one before.
void Workbench::settle() {
    if (scans.asked() != params.request()) problem.clear();
}

bool Workbench::perform(std::string_view action) {
    if (shows_run()) return doctor.perform(action);
    if (action == "scan") return scans.again(), true;
    if (action == "cancel") return scans.cancel(), true;
    return false;
}

void Workbench::make_tables() {
    if (!scanned().store) return;
    comparison = scanned().before ? std::optional(compare(scanned())) : std::nullopt;
    TableQuery query{.fold = params.fold, .filter = params.filter, .recipe = *find_recipe("current")};
    if (const auto by = find_recipe(params.order)) query.recipe = *by;
    for (const TensorUse use : {TensorUse::w, TensorUse::x, TensorUse::dy, TensorUse::state})
        if (to_string(use) == params.show) query.use = use;
    list = table_rows(*scanned().store, scanned().rows, query);
    if (scanned().before) add_before(list, scanned());
    not_finite = 0;
    has_odd_scales = false;
    for (const TableRow& each : list) {
        not_finite += each.not_finite;
        has_odd_scales = has_odd_scales || !each.scale_words().empty();
    }
    sort_list();
    if (tells_faults()) put_faults_first();
    counts = tally(scanned().rows, scanned().recipes.size(), params.demands());
    const ScanRow* const now = row();
    advice = now ? recommend(*now, scanned().recipes, params.demands()) : Recommendation{};
    if (now && now->outcomes.empty() && now->not_scanned.empty() && scans.busy()) scans.prefer(now->tensor);
}

void Workbench::sort_list() {
    const std::string& by = params.order;
    const auto sort = [&](auto key) { std::ranges::stable_sort(list, {}, key); };
    if (by == "name") sort([](const TableRow& row) { return row.name; });
    if (by == "not_finite") sort([](const TableRow& row) { return -row.not_finite; });
    if (by == "amax") sort([](const TableRow& row) { return -row.amax; });
    if (by == "least") sort([](const TableRow& row) { return -row.least; });
    if (by == "binades") sort([](const TableRow& row) { return -row.binades; });
    if (params.ascending) std::ranges::reverse(list);
}

std::optional<std::size_t> Workbench::find_recipe(std::string_view id) const {
    for (std::size_t r = 0; r < scanned().recipes.size(); ++r)
        if (scanned().recipes[r].id == id) return r;
    return std::nullopt;
}

std::vector<std::size_t> Workbench::columns() const {
    std::vector<std::string_view> ids = {"unscaled", "current", "e5m2", "mxfp8", "nvfp4"};
    if (params.columns == "small") ids = {"mxfp4", "nvfp4", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp8"};
    if (params.columns == "scales") ids = {"current", "rowwise", "block128", "mxfp8", "int8"};
    std::vector<std::size_t> out;
    for (const std::string_view id : ids)
        if (const auto recipe = find_recipe(id)) out.push_back(*recipe);
    return out;
}

std::size_t Workbench::recipe() const { return find_recipe(params.recipe).value_or(0); }

// The named tensor; else the first row that has numbers, or will.
std::optional<std::size_t> Workbench::selected() const {
    if (!scanned().store) return std::nullopt;
    if (const StoredTensor* const tensor = scanned().store->find(params.tensor);
        tensor && !params.tensor.empty())
        return static_cast<std::size_t>(tensor - scanned().store->tensors().data());
    if (list.empty()) return std::nullopt;
    return list.front().worst;
}

std::optional<std::size_t> Workbench::selected_row() const {
    const auto tensor = selected();
    for (std::size_t i = 0; tensor && i < list.size(); ++i)
        if (std::ranges::find(list[i].members, *tensor) != list[i].members.end()) return i;
    return std::nullopt;
}

const ScanRow* Workbench::row() const {
    const auto index = selected();
    return index && *index < scanned().rows.size() ? &scanned().rows[*index] : nullptr;
}

const ScanRow* Workbench::row_before() const {
    const ScanRow* const now = row();
    return now && scanned().before ? before_of(scanned(), *now).row : nullptr;
}

const KindChange* Workbench::kind_change() const {
    const ScanRow* const now = row();
    if (!now || !comparison) return nullptr;
    const auto found = std::ranges::find(comparison->kinds, now->kind, &KindChange::kind);
    return found == comparison->kinds.end() ? nullptr : &*found;
}

std::optional<DetailRequest> Workbench::detail_request() const {
    const ScanRow* const now = row();
    if (!now || !now->summarised || !now->not_scanned.empty()) return std::nullopt;
    return DetailRequest{
        fmt::format("{} {} {} {} {}", scans.asked()->file, scanned().store->tensors()[now->tensor].name,
                    params.recipe, params.mx_rule, to_string(now->use)),
        scanned().store, *now, scanned().recipes[recipe()].recipe};
}

std::string Workbench::file_name() const {
    if (!scanned().store) return "";
    const std::size_t files = scanned().store->listed();
    return files > 1 ? fmt::format("{} files", files) : scanned().store->path().filename().string();
}

std::string Workbench::file_words() const {
    if (!scanned().store) return "";
    std::uint64_t tensors = 0, values = 0;  // scales and what else stands beside weights not counted
    std::set<std::string> dtypes;
    for (const StoredTensor& tensor : scanned().store->tensors()) {
        if (tensor.role == TensorRole::scale || tensor.role == TensorRole::aside) continue;
        ++tensors;
        values += tensor.values();
        dtypes.insert(tensor.dtype);
    }
    const auto n = static_cast<double>(values);
    const std::string many = n >= 1e9   ? fmt::format("{:.1f} G", n / 1e9)
                             : n >= 1e6 ? fmt::format("{:.1f} M", n / 1e6)
                                        : group_thousands(static_cast<std::int64_t>(values));
    const auto unscaled =
        std::ranges::count(scanned().store->tensors(), TensorRole::unscaled, &StoredTensor::role);
    return fmt::format("{} tensors, {} values, {}{}", tensors, many, some_names(dtypes, quote_from, " "),
                       unscaled > 0 ? fmt::format("; {} without a scale", unscaled) : "");
}

std::string Workbench::title() const {
    if (!scanned().store) return "No file is open";
    if (counts.tensors == 0) {
        if (const std::string unscaled = scanned().store->unscaled(); !unscaled.empty()) return unscaled;
        const auto refused =
            std::ranges::count(scanned().store->tensors(), TensorRole::refused, &StoredTensor::role);
        if (refused > 0)
            return fmt::format("No tensor can be read: {} refused, each with its reason", refused);
        std::set<std::string> dtypes;
        for (const StoredTensor& tensor : scanned().store->tensors()) dtypes.insert(tensor.dtype);
        return fmt::format("No tensor of floats: {}", some_names(dtypes, quote_from));
    }
    if (list.empty()) return "No tensor is called that";
    if (tells_faults()) return verified_title();
    if (is_verified()) return "Which fault does each tensor have?";
    const auto count = [&](const char* id) { return counts.losing[*find_recipe(id)]; };
    const auto words = [](int n) { return n == 0 ? std::string("none") : std::to_string(n); };
    return fmt::format("Unscaled, {} of {} tensors lose more than {} %; with one scale {}, in MXFP8 {}",
                       count("unscaled"), counts.done, format_number(params.max_underflow),
                       words(count("current")), words(count("mxfp8")));
}

std::string Workbench::uses_with(TensorUse use) const {
    nlohmann::json uses = params.uses.empty() ? nlohmann::json::object() : parse_json(params.uses, "uses");
    if (!row()) return params.uses;
    const StoredTensor& tensor = scanned().store->tensors()[row()->tensor];
    if (use == use_of(tensor.own_name()) && params.cast_as == "name")
        uses.erase(tensor.name);
    else
        uses[tensor.name] = to_string(use);
    return uses.empty() ? "" : uses.dump();
}

std::string Workbench::advice_title() const {
    if (!row() || row()->outcomes.empty()) return "Recipes";
    if (params.covered) return "Which recipe has the fewest bits?";
    if (advice.recipe)
        return fmt::format("Fewest bits for these demands: {}", scanned().recipes[*advice.recipe].label);
    if (!advice.nearest) return "Every recipe is exact";
    return fmt::format("No recipe meets them: {} misses {}", scanned().recipes[*advice.nearest].label,
                       missed(row()->outcomes[*advice.nearest], params.demands()));
}

std::string Workbench::table_csv() const {
    if (shows_run()) return doctor.table_csv();
    if (!scanned().store) return {};
    InspectReport report{.scanned = scanned(), .demands = params.demands(), .filter = params.filter};
    if (tells_faults()) report.against = Against{.original = scans->original, .rows = scans->against};
    return report.csv();
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Of the selected tensor in each recipe; null: none.
void add_outcomes(std::vector<MetricRow>& out, const ScanRow* row) {
    const auto recipes = scan_recipes();  // the names are there before a file is
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        const CastOutcome o =
            row && !row->outcomes.empty() ? row->outcomes[r] : CastOutcome{kNan, kNan, kNan, kNan, kNan};
        out.push_back(known("sqnr_db_" + recipes[r].id, o.sqnr_db, "dB"));
        out.push_back(known("underflow_pct_" + recipes[r].id, o.underflow_pct, "%"));
        out.push_back(known("worst_row_db_" + recipes[r].id, o.worst_row_db, "dB"));
        out.push_back(known("bits_" + recipes[r].id, o.bits, "bit"));
    }
}

// Of all tensors.
void add_counts(std::vector<MetricRow>& out, const Scanned& scanned, const Tally& counts) {
    const bool open = scanned.store != nullptr;
    double values = 0;
    for (const ScanRow& each : scanned.rows)
        if (each.not_scanned.empty())
            values += static_cast<double>(scanned.store->tensors()[each.tensor].values());
    out.push_back(known("tensors", open ? counts.tensors : kNan));
    out.push_back(known("values", open ? values : kNan));
    const auto recipes = scan_recipes();
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        out.push_back(known("losing_" + recipes[r].id, open ? counts.losing[r] : kNan));
        out.push_back(known("meeting_" + recipes[r].id, open ? counts.meeting[r] : kNan));
    }
}

}  // namespace

std::vector<MetricRow> Workbench::metrics() const {
    std::vector<MetricRow> out;
    // NaN without what it is about.
    const auto add = [&](const char* name, const auto* of, auto value, const char* unit = "") {
        out.push_back(known(name, of ? static_cast<double>(value(*of)) : kNan, unit));
    };
    const ScanRow *const now = row(), *const before = row_before();
    const auto summary_of = [](const ScanRow* row) {
        return row && row->summarised ? &row->summary : nullptr;
    };
    const auto *const summary = summary_of(now), *const earlier = summary_of(before);
    const StoredTensor* const tensor = now ? &scanned().store->tensors()[now->tensor] : nullptr;
    const auto amax = [](const auto& s) { return s.amax; };
    const auto least = [](const auto& s) { return s.least; };
    add_counts(out, scanned(), counts);
    add("amax", summary, amax);
    add("least", summary, least);
    add(
        "binades", summary, [](const auto& s) { return s.binades(); }, "binades");
    add(
        "zeros_pct", summary, [](const auto& s) { return s.zeros_pct(); }, "%");
    add_outcomes(out, now);
    out.push_back(known_word("selected", tensor ? tensor->name : "none"));
    out.push_back(known_word("recommended", advice.recipe ? scanned().recipes[*advice.recipe].id : "none"));
    const CastDetail* const run = detail() && !detail()->runs.empty() ? detail() : nullptr;
    add("lost_run_first", run, [](const CastDetail& d) { return d.longest().first; });
    add("lost_run_last", run, [](const CastDetail& d) { return d.longest().second; });
    add(
        "lost_l1_pct", detail(), [](const CastDetail& d) { return d.lost_l1_pct; }, "%");
    add("kinds_grown", comparison ? &*comparison : nullptr, [](const Comparison& c) { return c.grown(); });
    add("not_finite", summary, [](const auto& s) { return s.excluded.not_finite(); });
    out.push_back(known_word("cast_as", now ? std::string(to_string(now->use)) : "none"));
    add("elements", tensor, [](const StoredTensor& t) { return t.values(); });
    add(
        "kind_amax_log2", kind_change(), [](const KindChange& k) { return k.amax_log2(); }, "binades");
    add(
        "kind_least_log2", kind_change(), [](const KindChange& k) { return k.least_log2(); }, "binades");
    add("before_amax", earlier, amax);
    add("before_least", earlier, least);
    add_verified(out);
    const auto of_run = doctor.metrics();
    out.insert(out.end(), of_run.begin(), of_run.end());
    return out;
}

LabEntry entry() { return entry_of<WorkbenchLab>(Workbench::kInfo); }

}  // namespace fp8lab::workbench
