// The Workbench: what every recipe would do to the tensors of a model of the learner's own. core/inspect computes it;
// here is what is shown of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/inspect/compare.h"
#include "core/inspect/detail.h"
#include "core/inspect/recommend.h"
#include "core/inspect/table.h"
#include "core/threads/job.h"
#include "labs/lab.h"
#include "labs/workbench/model_scan.h"

namespace fp8lab::workbench {

// The shipped samples, by the name that the fields `file` and `compare` take instead of a path. An empty `file` is the
// trained one.
inline constexpr std::string_view kTrained = "transformer-600", kUntrained = "transformer-0";
std::string path_of(const std::string& file);  // of a sample, or the text itself

struct Params {
    std::string file{kTrained}, compare;
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
    bool covered = false;  // exercises: of the table of recipes only the chosen line is shown

    Demands demands() const;
    ScanRequest request() const;
};

class WorkbenchLab final : public Lab {
  public:
    WorkbenchLab();
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    // Throws input_error for a file that cannot be read; in a window problem() says it, and what was there stays.
    void update() override;
    std::vector<Figure> figures() const override;  // "histogram", "where" or with a second file "change"
    std::vector<std::string> figure_ids() const override;
    Figure thumbnail() const override;
    std::vector<Metric> metrics() const override;
    std::span<const NamedJudge> judges() const override;
    bool busy() const override { return run_.running() || detail_job_.busy(); }
    bool stale() const override { return false; }  // the table fills while it is read
    void set_wake(std::function<void()> wake) override;
    void reset() override;

    // Behind the actions "scan" and "cancel".
    void scan_again();
    void cancel() { run_.cancel(); }

    const Params& params() const { return params_; }
    const ScanState& scan_state() const { return state_; }
    const Scanned& scanned() const { return state_.scanned; }
    const std::string& problem() const { return problem_; }
    bool running() const { return run_.running(); }
    const std::vector<TableRow>& table() const { return table_; }
    std::vector<std::size_t> columns() const;  // recipes of the table
    const Tally& counts() const { return counts_; }
    std::string file_name() const;                    // "transformer-600.safetensors", "3 files"
    std::string file_words() const;                   // "150 tensors, 1.5 M values, F32"
    std::string title() const;                        // of the table
    std::optional<std::size_t> selected() const;      // a row of scanned().rows; none: there are none
    std::optional<std::size_t> selected_row() const;  // of table()
    const ScanRow* row() const;                       // the selected one; null: none
    std::size_t recipe() const;                       // the highlighted one
    std::optional<std::size_t> find_recipe(std::string_view id) const;
    const CastDetail* detail() const { return detail_ ? &*detail_ : nullptr; }
    const Recommendation& advice() const { return advice_; }
    std::string advice_title() const;
    std::string histogram_title() const;
    std::string note() const;  // assets/workbench_notes.json: what zeros mean in such a tensor; may be empty
    const KindChange* kind_change() const;  // of the selected tensor; null: not in both files
    const std::optional<Comparison>& comparison() const { return comparison_; }
    const ScanRow* row_before() const;  // the selected tensor in the second file; null: it is not there
    std::string table_csv() const override;
    // The field `uses` with the selected tensor cast as that; as its name says where it is that.
    std::string uses_with(TensorUse use) const;
    bool shows_not_finite() const { return not_finite_ > 0; }  // a column for NaN and Inf
    // The selected tensor as another lab takes it, "field=value"; empty: it takes none.
    std::vector<std::string> fields_for(std::string_view lab) const;

  private:
    static std::vector<Field> fields_of(Params& params);
    void perform(std::string_view action) override;
    void start();
    void take();
    void make_table();
    void ask_detail();
    void sort_table();
    Figure histogram() const;
    Figure where() const;
    Figure change() const;

    struct DetailRequest {
        std::shared_ptr<const TensorStore> store;
        ScanRow row;
        Recipe recipe;
    };
    bool in_window_ = false;
    Params params_, defaults_;  // defaults_: never changed
    std::optional<ScanRequest> asked_;
    std::string problem_;
    ScanRun run_;
    ScanState state_;
    std::vector<TableRow> table_;
    Tally counts_;
    std::int64_t not_finite_ = 0;
    Recommendation advice_;
    std::optional<Comparison> comparison_;
    std::string asked_detail_;
    Job<DetailRequest, CastDetail> detail_job_;
    std::optional<CastDetail> detail_;
};

bool takes_tensor(std::string_view lab);  // a lab that fields_for() knows
// "0", "<0.01", "33.3": a percentage in a cell.
std::string percent_text(double pct);

}  // namespace fp8lab::workbench
