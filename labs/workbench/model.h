// The Workbench: what every recipe would do to the tensors of a model of the learner's own. core/inspect computes it;
// here is what is shown of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/inspect/compare.h"
#include "core/inspect/detail.h"
#include "core/inspect/recommend.h"
#include "core/inspect/table.h"
#include "labs/table/table_lab.h"
#include "labs/workbench/model_run.h"
#include "labs/workbench/model_scan.h"

namespace fp8lab::workbench {

// The shipped samples, by the name that the fields `file` and `compare` take instead of a path. An empty `file` is the
// trained one.
inline constexpr std::string_view kTrained = "transformer-600", kUntrained = "transformer-0";
// Six small files, each a weight of the trained sample in a published layout with one fault: fault-1 to fault-6.
inline constexpr std::string_view kFaulty = "six-faults";
// Codes with three conventions of their scales, for claim cards.
inline constexpr std::string_view kScales = "three-scales";
std::string path_of(const std::string& file);  // of a sample, one per line, or the text itself

// The tabs of its stage, as the field `experiment` names them.
inline constexpr std::string_view kTensors = "tensors", kRun = "run";

struct Params {
    std::string file{kTrained}, compare;
    std::string compare_as = "earlier";  // what `compare` is: earlier, original
    std::string show = "all";
    bool fold = true;
    double min_sqnr = 25, max_underflow = 1;
    double min_row = 0;  // 0: off
    double max_bits = 16;
    std::string cast_as = "name", mx_rule = "up", columns = "usual";
    std::string uses;  // as in ScanRequest
    bool unscaled_codes = false;
    std::string tensor;              // empty: the first row's
    std::string recipe = "current";  // highlighted
    std::string filter;
    std::string order =
        "underflow";  // a column: name, amax, least, binades, underflow (of current), or a recipe
    bool ascending = false;
    bool covered =
        false;  // exercises: only the chosen line of the table of recipes is shown, no finding, no fault
    std::string experiment{kTensors};  // which of the two tabs is on the stage
    RunParams run;

    Demands demands() const;
    ScanRequest request() const;
};

struct DetailRequest {
    std::string key;  // names what the others are
    std::shared_ptr<const TensorStore> store;
    ScanRow row;
    Recipe recipe;
    bool operator==(const DetailRequest& other) const { return key == other.key; }
};

// update() throws input_error for a file that cannot be read; in a window `problem` says it, and what was there stays.
struct Workbench {
    static const LabInfo kInfo;
    using Params = workbench::Params;
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<Workbench>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts();
    Figure thumbnail() const;
    void settle();
    bool perform(std::string_view action);  // "scan": once more; "cancel": of the tab that is shown
    bool shows_run() const { return params.experiment == kRun; }
    bool stale() const { return false; }  // the table fills while it is read
    void tell(const Error& error) { problem = error.what(); }
    std::string table_csv() const;

    const Scanned& scanned() const { return scans->scanned; }
    std::vector<std::size_t> columns() const;         // recipes of the table
    std::string file_name() const;                    // "transformer-600.safetensors", "3 files"
    std::string file_words() const;                   // "150 tensors, 1.5 M values, F32"
    std::string title() const;                        // of the table
    std::optional<std::size_t> selected() const;      // a row of scanned().rows; none: there are none
    std::optional<std::size_t> selected_row() const;  // of `list`
    const ScanRow* row() const;                       // the selected one; null: none
    std::size_t recipe() const;                       // the highlighted one
    std::optional<std::size_t> find_recipe(std::string_view id) const;
    const CastDetail* detail() const { return *details ? &**details : nullptr; }
    std::string advice_title() const;
    std::string histogram_title() const;
    std::string note() const;  // assets/workbench_notes.json: what zeros mean in such a tensor; may be empty
    // Against an original.
    bool is_verified() const { return scans->original != nullptr; }
    bool tells_faults() const { return is_verified() && !params.covered; }
    const Verified* verified() const;  // the selected tensor; null: no weight, or not yet
    // Of the members of a row the first with a fault, else the one with the largest error; null: none is verified.
    const Verified* verified_of(const TableRow& row) const;
    std::string verified_title() const;  // "3 of 24 tensors have a fault, 1 not read"
    std::string verified_words()
        const;  // a sentence of the selected tensor; empty: nothing is compared, or not yet
    std::string scale_words()
        const;  // of the selected tensor: "Of its 64 scales: 2 NaN, 1 zero"; may be empty
    std::span<const std::string> missing() const;  // names that only the second file has
    const KindChange* kind_change() const;         // of the selected tensor; null: not in both files
    const ScanRow* row_before() const;  // the selected tensor in the second file; null: it is not there
    // The field `uses` with the selected tensor cast as that; as its name says where it is that.
    std::string uses_with(TensorUse use) const;
    bool shows_not_finite() const { return not_finite > 0; }  // a column for NaN and Inf
    // The selected tensor as another lab takes it, "field=value"; empty: it takes none.
    std::vector<std::string> fields_for(std::string_view lab) const;

    Params params;
    std::string problem;
    Scans scans{[this] { return params.request(); }};
    // Of what is scanned so far.
    table::Derived tables{[this] { make_tables(); }};
    std::vector<TableRow> list;
    Tally counts;
    std::int64_t not_finite = 0;
    bool has_odd_scales =
        false;  // a column for scales that are NaN, infinite, 0, subnormal, negative or not there
    Recommendation advice;
    std::optional<Comparison> comparison;
    table::Computed<DetailRequest, std::optional<CastDetail>> details{
        "", [this] { return detail_request(); },
        [](const DetailRequest& r) { return cast_detail(*r.store, r.row, r.recipe); }};
    RunTab doctor{params.run};  // the tab "A run"

  private:
    void make_tables();
    void add_verified(std::vector<table::MetricRow>& out) const;
    void sort_list();
    void put_faults_first();
    std::optional<DetailRequest> detail_request() const;
    std::vector<Figure> figures() const;  // "histogram", "where" or with a second file "change"
    std::vector<table::MetricRow> metrics() const;
    Figure histogram() const;
    Figure where() const;
    Figure change() const;
};
using WorkbenchLab = table::TableLab<Workbench>;

bool takes_tensor(std::string_view lab);  // a lab that fields_for() knows
// "0", "<0.01", "33.3": a percentage in a cell.
std::string percent_text(double pct);

}  // namespace fp8lab::workbench
