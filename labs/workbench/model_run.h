// The Workbench's tab "A run": what a log says of a run's tensors, and what a recipe would do to them. core/run reads,
// replays and judges; here is what is shown of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/figure.h"
#include "core/run/findings.h"
#include "labs/table/computed.h"
#include "labs/table/row.h"
#include "labs/workbench/model_run_reads.h"

namespace fp8lab::workbench {

// The shipped runs, by the names that the field `run` takes instead of a path: a training of two SwiGLU blocks in
// BF16, and of the same training two gradients as nvidia-dlfw-inspect writes them, with four decimals.
inline constexpr std::string_view kSampleRun = "tiny-swiglu", kInspectedRun = "tiny-swiglu-inspect";
// The recipe of the log where that casts to 8 bits, else delayed scaling.
inline constexpr std::string_view kOwnRecipe = "own";

struct RunParams {
    std::string run;                 // paths, one per line, or the sample; empty: none
    std::string recipe{kOwnRecipe};  // or a name of recipes()
    int history = 16;                // these three: of delayed scaling
    std::string algo = "max";
    int margin = 0;
    double lost_at_most = 5;  // %
    std::string layers;       // only tensors with this in their names are shown
    int rank = -1;            // as in RunSelection
    std::string arm;
    bool healthy = false;  // all tensors have a lane
    std::string tensor;    // empty: that of the first finding
    int step =
        -1;  // of the cursor; -1: where the tensor loses most, else the first step of its finding, else the last

    Thresholds thresholds() const { return {.lost_at_most = lost_at_most}; }
    bool has_history() const { return recipe == kOwnRecipe || recipe == "delayed"; }
};

// Rows of the field table; none of them says where it belongs.
std::vector<table::Row> run_rows(RunParams& params);

// One tensor through the run, as its lane shows it. `at`: an index of a bin; with at most kMostBins steps a bin is a step.
struct Lane {
    static constexpr std::int64_t kMostBins = 2048;
    LostBounds lost;                // mean over the steps, %
    int saturated = 0;              // steps
    int mostly_lost = 0;            // steps in which half or more becomes 0
    double most = 0;                // % of a step, the largest
    std::vector<float> pct;         // of each bin, the largest of its steps; below 0: no step was logged
    std::vector<std::size_t> over;  // bins in which the amax exceeds the threshold 1.3-fold or more
};

// A run under a recipe. The rules are about a whole run: of one that is still being read there are lanes, and no findings.
struct Diagnosis {
    std::shared_ptr<const RunLog> log;  // null: there is no run
    bool judged = false;                // what the log has is read, and the rules were tried
    Recipe recipe;
    bool from_above = false;  // lost shares are bounds from above: recipes with a scale for each row or block
    std::vector<RunFinding> findings;            // worst first
    std::vector<Lane> lanes;                     // as RunLog::tensors
    std::vector<int> first_finding;              // of each tensor; -1: it has none
    std::int32_t first_step = 0, last_step = 0;  // of the log, which looks through all tensors for them
    std::int64_t bins = 1, bin = 1;              // of a lane: how many, and how many steps each
    std::size_t ill = 0;                         // tensors with a finding
    std::size_t prefix = 0;   // letters that all names begin with, up to a dot: 13 of "model.layers."
    std::size_t unknown = 0;  // tensors of which only the amax is known: without_lost_shares()
    std::vector<std::string> not_known;  // fp8lab::not_known(), a sentence each

    const RunFinding* finding_of(std::size_t tensor) const;  // the first of a tensor; null: it has none
    std::string_view short_name(std::size_t tensor) const;   // without what all names begin with
    double step_of(double at) const;                         // where a bin begins
};

// The selected tensor.
struct Chosen {
    std::size_t tensor = 0;
    Replay replay;
    std::vector<HistoryRow> histories;
};

// "25.6 to 26.8", "0", "<0.1": percentages of one decimal.
std::string bounds_text(const LostBounds& lost);
// What a finding says is lost: "25.6"; "?" where that was not counted, "-" where the finding is not about it.
std::string lost_text(const RunFinding& finding);

class RunTab {
    struct DiagnosisRequest {
        std::shared_ptr<const RunLog> log;
        bool partial = false;  // RunState::partial
        Recipe recipe;
        std::string text;  // of the recipe: what names it
        double lost_at_most = 5;
        bool operator==(const DiagnosisRequest& other) const {
            return log == other.log && partial == other.partial && text == other.text &&
                   lost_at_most == other.lost_at_most;
        }
    };
    struct UnderRequest {
        std::shared_ptr<const RunLog> log;
        double lost_at_most = 5;
        bool operator==(const UnderRequest&) const = default;
    };
    struct ChosenRequest {
        DiagnosisRequest of;
        std::size_t tensor = 0;
        bool operator==(const ChosenRequest&) const = default;
    };

  public:
    explicit RunTab(const RunParams& params) : params_(params) {}
    std::vector<table::Part*> parts() { return {&reads, &diagnoses, &unders, &choices}; }
    bool perform(std::string_view action);  // "scan": once more; "cancel"

    const RunLog* log() const { return diagnoses->log.get(); }  // null: no run is open
    std::string file_name() const;                              // "tiny-swiglu.jsonl", "3 files"
    std::string told() const;             // "read to the end", "43 % read", "read, being judged"
    std::string title() const;            // what is seen first, a sentence made of the findings
    std::string loss_words() const;       // "NaN in step 123"; empty: every loss is finite
    std::string not_known_words() const;  // what cannot be judged and why, in sentences; empty: nothing
    std::string findings_title() const;   // "3 findings; 15 of 18 tensors are well"
    std::string histories_title() const;  // of the selected tensor
    std::string step_title() const;       // of the selected tensor at the cursor
    std::string recipe_words() const;     // of the recipe that the run is judged under
    std::string lane_words(
        std::size_t tensor) const;  // "100 % becomes 0, step 61 to 124"; empty: nothing to say

    std::vector<std::size_t> lane_order() const;  // tensors that have a lane, those with findings first
    std::vector<const RunFinding*> shown_findings() const;
    std::optional<std::size_t> selected() const;  // a tensor; none: there is no run
    std::int32_t cursor() const;                  // a step of the run
    const TensorPoint* point() const;    // of the selected tensor at the cursor, or the last one before it
    const ReplayStep* replayed() const;  // the same of its replay
    // The step of the selected tensor next to the cursor, -1 before and 1 behind it.
    std::int32_t step_beside(int direction) const;
    bool judges_own() const;  // the log's own recipe, so that the fields of delayed scaling have no effect

    std::vector<Figure> figures()
        const;  // "loss", "lost" of the selected tensor, "binades" of it at the cursor
    std::vector<table::MetricRow> metrics() const;  // none without a run
    std::string table_csv() const;

  private:
    Figure loss() const;
    Figure lost() const;
    Figure binades() const;
    std::string paths() const;
    Recipe recipe_for(const RunLog& log) const;
    std::optional<DiagnosisRequest> diagnosis_request() const;
    std::optional<ChosenRequest> chosen_request() const;
    static Diagnosis diagnose(const DiagnosisRequest& request);
    static Chosen choose(const ChosenRequest& request);

    const RunParams& params_;

  public:
    RunReads reads{[this] { return RunRequest{paths(), {params_.arm, params_.rank}}; }};
    table::Computed<DiagnosisRequest, Diagnosis> diagnoses{"", [this] { return diagnosis_request(); },
                                                           diagnose};
    // Six replays of the whole run: once it is read and judged.
    table::Computed<UnderRequest, std::vector<UnderRecipe>> unders{
        "",
        [this] {
            const bool wanted = reads->log && reads->done && diagnoses->log == reads->log;
            return wanted ? std::optional(UnderRequest{reads->log, params_.lost_at_most}) : std::nullopt;
        },
        [](const UnderRequest& request) {
            return under_recipes(*request.log, {.lost_at_most = request.lost_at_most});
        }};
    table::Computed<ChosenRequest, Chosen> choices{"", [this] { return chosen_request(); }, choose};
};

}  // namespace fp8lab::workbench
