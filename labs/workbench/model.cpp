#include "labs/workbench/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
namespace {

constexpr LabInfo kInfo = {
    "workbench", 0, "Workbench", "Workbench", "What would each recipe do to your own tensors?", 20, "L6"};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::string path_of(const std::string& file) {
    const std::string name = file.empty() ? std::string(kTrained) : file;
    if (name == kTrained || name == kUntrained) return asset("models/" + name + ".safetensors").string();
    return name;
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
            .mx_rule = mx_rule,
            .cast_as = cast_as,
            .uses = uses,
            .unscaled_codes = unscaled_codes};
}

WorkbenchLab::WorkbenchLab()
    : detail_job_([](const DetailRequest& r) { return cast_detail(*r.store, r.row, r.recipe); }) {}

const LabInfo& WorkbenchLab::info() const { return kInfo; }

void WorkbenchLab::set_wake(std::function<void()> wake) {
    in_window_ = true;
    run_.set_wake(wake);
    detail_job_.start_worker(std::move(wake));
}

void WorkbenchLab::reset() { params_ = {}; }

void WorkbenchLab::scan_again() {
    asked_.reset();
    update();
}

void WorkbenchLab::perform(std::string_view action) {
    if (action == "scan") return scan_again();
    if (action == "cancel") return cancel();
    Lab::perform(action);
}

void WorkbenchLab::start() {
    const ScanRequest request = params_.request();
    if (asked_ == request) return;
    asked_ = request;
    problem_.clear();
    try {
        run_.start(request);
    } catch (const Error& error) {
        if (!in_window_) throw;
        problem_ = error.what();
    }
}

void WorkbenchLab::update() {
    start();
    take();
    make_table();
    ask_detail();
}

void WorkbenchLab::take() {
    try {
        if (auto state = run_.take()) state_ = std::move(*state);
    } catch (const Error& error) {
        if (!in_window_) throw;
        problem_ = error.what();
    }
    comparison_.reset();
    if (scanned().store && scanned().before) comparison_ = compare(scanned());
}

void WorkbenchLab::make_table() {
    if (!scanned().store) return;
    TableQuery query{.fold = params_.fold, .filter = params_.filter, .recipe = *find_recipe("current")};
    if (const auto by = find_recipe(params_.order)) query.recipe = *by;
    for (const TensorUse use : {TensorUse::w, TensorUse::x, TensorUse::dy, TensorUse::state})
        if (to_string(use) == params_.show) query.use = use;
    table_ = table_rows(*scanned().store, scanned().rows, query);
    if (scanned().before) add_before(table_, scanned());
    not_finite_ = 0;
    for (const TableRow& each : table_) not_finite_ += each.not_finite;
    sort_table();
    counts_ = tally(scanned().rows, scanned().recipes.size(), params_.demands());
    const ScanRow* const selected = row();
    advice_ = selected ? recommend(*selected, scanned().recipes, params_.demands()) : Recommendation{};
}

void WorkbenchLab::sort_table() {
    const std::string& by = params_.order;
    const auto sort = [&](auto key) { std::ranges::stable_sort(table_, {}, key); };
    if (by == "name") sort([](const TableRow& row) { return row.name; });
    if (by == "not_finite") sort([](const TableRow& row) { return -row.not_finite; });
    if (by == "amax") sort([](const TableRow& row) { return -row.amax; });
    if (by == "least") sort([](const TableRow& row) { return -row.least; });
    if (by == "binades") sort([](const TableRow& row) { return -row.binades; });
    if (params_.ascending) std::ranges::reverse(table_);
}

std::optional<std::size_t> WorkbenchLab::find_recipe(std::string_view id) const {
    for (std::size_t r = 0; r < scanned().recipes.size(); ++r)
        if (scanned().recipes[r].id == id) return r;
    return std::nullopt;
}

std::vector<std::size_t> WorkbenchLab::columns() const {
    std::vector<std::string_view> ids = {"unscaled", "current", "e5m2", "mxfp8", "nvfp4"};
    if (params_.columns == "small") ids = {"mxfp4", "nvfp4", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp8"};
    if (params_.columns == "scales") ids = {"current", "rowwise", "block128", "mxfp8", "int8"};
    std::vector<std::size_t> out;
    for (const std::string_view id : ids)
        if (const auto recipe = find_recipe(id)) out.push_back(*recipe);
    return out;
}

std::size_t WorkbenchLab::recipe() const { return find_recipe(params_.recipe).value_or(0); }

// The named tensor; else the first row that has numbers, or will.
std::optional<std::size_t> WorkbenchLab::selected() const {
    if (!scanned().store) return std::nullopt;
    if (const StoredTensor* const tensor = scanned().store->find(params_.tensor);
        tensor && !params_.tensor.empty())
        return static_cast<std::size_t>(tensor - scanned().store->tensors().data());
    if (table_.empty()) return std::nullopt;
    return table_.front().worst;
}

std::optional<std::size_t> WorkbenchLab::selected_row() const {
    const auto tensor = selected();
    for (std::size_t i = 0; tensor && i < table_.size(); ++i)
        if (std::ranges::find(table_[i].members, *tensor) != table_[i].members.end()) return i;
    return std::nullopt;
}

const ScanRow* WorkbenchLab::row() const {
    const auto index = selected();
    return index && *index < scanned().rows.size() ? &scanned().rows[*index] : nullptr;
}

const ScanRow* WorkbenchLab::row_before() const {
    const ScanRow* const now = row();
    return now && scanned().before ? before_of(scanned(), *now).row : nullptr;
}

const KindChange* WorkbenchLab::kind_change() const {
    const ScanRow* const now = row();
    if (!now || !comparison_) return nullptr;
    const auto found = std::ranges::find(comparison_->kinds, now->kind, &KindChange::kind);
    return found == comparison_->kinds.end() ? nullptr : &*found;
}

void WorkbenchLab::ask_detail() {
    const ScanRow* const now = row();
    if (now && now->outcomes.empty() && now->not_scanned.empty() && running()) run_.prefer(now->tensor);
    if (!now || !now->summarised || !now->not_scanned.empty()) {
        detail_.reset();
        asked_detail_.clear();
        return;
    }
    const StoredTensor& tensor = scanned().store->tensors()[now->tensor];
    const std::string wanted = fmt::format("{} {} {} {} {}", asked_->file, tensor.name, params_.recipe,
                                           params_.mx_rule, to_string(now->use));
    if (wanted != asked_detail_) {
        asked_detail_ = wanted;
        detail_job_.request({scanned().store, *now, scanned().recipes[recipe()].recipe});
    }
    try {
        if (auto detail = detail_job_.take()) detail_ = std::move(*detail);
    } catch (const Error& error) {
        if (!in_window_) throw;
        problem_ = error.what();
    }
}

std::string WorkbenchLab::file_name() const {
    if (!scanned().store) return "";
    const std::size_t files = scanned().store->listed();
    return files > 1 ? fmt::format("{} files", files) : scanned().store->path().filename().string();
}

std::string WorkbenchLab::file_words() const {
    if (!scanned().store) return "";
    std::uint64_t values = 0;
    std::set<std::string> dtypes;
    for (const StoredTensor& tensor : scanned().store->tensors()) {
        values += tensor.values();
        dtypes.insert(tensor.dtype);
    }
    const auto n = static_cast<double>(values);
    const std::string many = n >= 1e9   ? fmt::format("{:.1f} G", n / 1e9)
                             : n >= 1e6 ? fmt::format("{:.1f} M", n / 1e6)
                                        : group_thousands(static_cast<std::int64_t>(values));
    const auto unscaled =
        std::ranges::count(scanned().store->tensors(), TensorRole::unscaled, &StoredTensor::role);
    return fmt::format("{} tensors, {} values, {}{}", scanned().store->tensors().size(), many,
                       some_names(dtypes, quote_from, " "),
                       unscaled > 0 ? fmt::format("; {} without a scale", unscaled) : "");
}

std::string WorkbenchLab::title() const {
    if (!scanned().store) return "No file is open";
    if (counts_.tensors == 0) {
        if (const std::string unscaled = scanned().store->unscaled(); !unscaled.empty()) return unscaled;
        std::set<std::string> dtypes;
        for (const StoredTensor& tensor : scanned().store->tensors()) dtypes.insert(tensor.dtype);
        return fmt::format("No tensor of floats: {}", some_names(dtypes, quote_from));
    }
    if (table_.empty()) return "No tensor is called that";
    const auto count = [&](const char* id) { return counts_.losing[*find_recipe(id)]; };
    const auto words = [](int n) { return n == 0 ? std::string("none") : std::to_string(n); };
    return fmt::format("Unscaled, {} of {} tensors lose more than {} %; with one scale {}, in MXFP8 {}",
                       count("unscaled"), counts_.done, format_number(params_.max_underflow),
                       words(count("current")), words(count("mxfp8")));
}

std::string WorkbenchLab::uses_with(TensorUse use) const {
    nlohmann::json uses = params_.uses.empty() ? nlohmann::json::object() : parse_json(params_.uses, "uses");
    if (!row()) return params_.uses;
    const StoredTensor& tensor = scanned().store->tensors()[row()->tensor];
    if (use == use_of(tensor.own_name()) && params_.cast_as == "name")
        uses.erase(tensor.name);
    else
        uses[tensor.name] = to_string(use);
    return uses.empty() ? "" : uses.dump();
}

std::string WorkbenchLab::advice_title() const {
    if (!row() || row()->outcomes.empty()) return "Recipes";
    if (params_.covered) return "Which recipe has the fewest bits?";
    if (advice_.recipe)
        return fmt::format("Fewest bits for these demands: {}", scanned().recipes[*advice_.recipe].label);
    if (!advice_.nearest) return "Every recipe is exact";
    return fmt::format("No recipe meets them: {} misses {}", scanned().recipes[*advice_.nearest].label,
                       missed(row()->outcomes[*advice_.nearest], params_.demands()));
}

std::string WorkbenchLab::table_csv() const {
    if (!scanned().store) return {};
    return InspectReport{.scanned = scanned(), .demands = params_.demands(), .filter = params_.filter}.csv();
}

std::vector<Metric> WorkbenchLab::metrics() const {
    std::vector<Metric> out;
    const auto add = [&](std::string name, double value, std::string unit = {}) {
        out.push_back({std::move(name), value, std::move(unit)});
    };
    const bool open = scanned().store != nullptr;
    double values = 0;
    for (const ScanRow& each : scanned().rows)
        if (each.not_scanned.empty())
            values += static_cast<double>(scanned().store->tensors()[each.tensor].values());
    add("tensors", open ? counts_.tensors : kNan);
    add("values", open ? values : kNan);
    const auto recipes = scan_recipes();  // the names are there before a file is
    const ScanRow* const now = row();
    const bool measured = now && !now->outcomes.empty();
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        add("losing_" + recipes[r].id, open ? counts_.losing[r] : kNan);
        add("meeting_" + recipes[r].id, open ? counts_.meeting[r] : kNan);
    }
    const bool summary = now && now->summarised;
    add("amax", summary ? static_cast<double>(now->summary.amax) : kNan);
    add("least", summary ? static_cast<double>(now->summary.least) : kNan);
    add("binades", summary ? now->summary.binades() : kNan, "binades");
    add("zeros_pct", summary ? now->summary.zeros_pct() : kNan, "%");
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        const CastOutcome o = measured ? now->outcomes[r] : CastOutcome{kNan, kNan, kNan, kNan, kNan};
        add("sqnr_db_" + recipes[r].id, o.sqnr_db, "dB");
        add("underflow_pct_" + recipes[r].id, o.underflow_pct, "%");
        add("worst_row_db_" + recipes[r].id, o.worst_row_db, "dB");
        add("bits_" + recipes[r].id, o.bits, "bit");
    }
    out.push_back({.name = "selected", .text = now ? scanned().store->tensors()[now->tensor].name : "none"});
    out.push_back({.name = "recommended",
                   .text = advice_.recipe ? scanned().recipes[*advice_.recipe].id : std::string("none")});
    const bool run = detail_ && !detail_->runs.empty();
    add("lost_run_first", run ? static_cast<double>(detail_->longest().first) : kNan);
    add("lost_run_last", run ? static_cast<double>(detail_->longest().second) : kNan);
    add("lost_l1_pct", detail_ ? detail_->lost_l1_pct : kNan, "%");
    add("kinds_grown", comparison_ ? comparison_->grown() : kNan);
    add("not_finite", summary ? static_cast<double>(now->summary.excluded.not_finite()) : kNan);
    out.push_back({.name = "cast_as", .text = now ? std::string(to_string(now->use)) : "none"});
    add("elements", now ? static_cast<double>(scanned().store->tensors()[now->tensor].values()) : kNan);
    const KindChange* const kind = kind_change();
    add("kind_amax_log2", kind ? kind->amax_log2() : kNan, "binades");
    add("kind_least_log2", kind ? kind->least_log2() : kNan, "binades");
    const ScanRow* const before = row_before();
    const bool compared = before && before->summarised;
    add("before_amax", compared ? static_cast<double>(before->summary.amax) : kNan);
    add("before_least", compared ? static_cast<double>(before->summary.least) : kNan);
    return out;
}

LabEntry entry() { return entry_of<WorkbenchLab>(kInfo); }

}  // namespace fp8lab::workbench
