// Every tensor of a model under every recipe. Two passes: first amax, smallest value and values per binade of all
// tensors, then the casts. The work is done in steps of a fraction of a second, so that its owner may stop between two of
// them; results do not depend on the number of threads or steps.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/inspect/measures.h"
#include "core/inspect/names.h"
#include "core/inspect/scan_cache.h"
#include "core/scaling/quantizer.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {

struct ScanRecipe {
    std::string id;           // in names of metrics: "mxfp8"
    std::string label;        // "E4M3, one scale"
    std::string short_label;  // "E4M3", in heads of tables
    Recipe recipe;
    bool compared_only = false;  // shown, never recommended: unscaled, int8
};
// The recipes of RecipeList::inspect (core/scaling/recipe_lists.h), in their order. `rule`: of the MX formats.
std::vector<ScanRecipe> scan_recipes(MxRule rule = MxRule::up);
// Any recipes, "R,R,..."; the id is the recipe as given. Throws usage_error as parse_recipes(), and for delayed, which
// needs a history, and options that a tensor alone does not have (wide, scope, act).
std::vector<ScanRecipe> parse_scan_recipes(const std::string& comma_separated);

// Whether the name or the kind has that text, in any case.
bool matches(std::string_view name, std::string_view filter);

struct ScanRow {
    std::size_t tensor = 0;  // of TensorStore::tensors()
    TensorUse use = TensorUse::w;
    std::string kind;
    std::size_t every = 1;         // of `every` bands of 128 rows one is read
    std::string not_scanned = {};  // why it has no numbers: "not a float", "scales"; empty: it has
    bool summarised = false;       // the first pass has been there
    TensorSummary summary = {};
    std::vector<CastOutcome> outcomes = {};  // one per recipe; empty: the second pass has not been there
    bool done() const { return !not_scanned.empty() || !outcomes.empty(); }
};

struct ScanSpec {
    std::vector<ScanRecipe> recipes;
    std::optional<TensorUse> use = {};                        // of all tensors; none: each by its name
    std::map<std::string, TensorUse, std::less<>> uses = {};  // of single tensors; before `use`
    std::string filter = {};  // only tensors with this in their name or kind, in any case
    // Larger tensors and models are sampled, so that a file of any size takes about a minute. Values.
    std::uint64_t most_per_tensor = std::uint64_t{64} << 20, most_of_all = std::uint64_t{512} << 20;
    bool unscaled_codes = false;  // codes without a scale are taken as values
    std::shared_ptr<ScanCache> cache =
        {};  // null: none. What it has is there at once; what is measured is added
};

// block128 has square blocks for w; for everything else the plan is that of x. Gradients are cast to the format of x
// as well: the recipes here name their format.
CastPlan scan_plan(const Recipe& recipe, TensorUse use);

class Scan {
  public:
    Scan(std::shared_ptr<const TensorStore> store, ScanSpec spec);

    // The next part of the work; false: there was none left. Throws as TensorStore::read_rows().
    bool step();
    // Moves a tensor to the front, because a view waits for it: its second pass comes next.
    void prefer(std::size_t tensor);
    bool summarised() const { return casts_; }  // the first pass is done
    const TensorStore& store() const { return *store_; }
    const std::shared_ptr<const TensorStore>& shared_store() const { return store_; }
    const ScanSpec& spec() const { return spec_; }
    const std::vector<ScanRow>& rows() const { return rows_; }  // one per tensor, in their order
    std::size_t scanned() const { return scanned_; }            // rows that are done()
    double progress() const;                                    // of the work, 0 to 1

  private:
    struct Piece {
        std::size_t row, first, count;  // row: of rows_; rows of the matrix
    };
    struct PieceCasts {  // per recipe that is missing
        std::vector<CastStats> stats;
        std::vector<double> worst_db;
    };
    std::vector<Piece> pieces_of(std::size_t row) const;
    std::vector<Piece> next_pieces(std::uint64_t values);
    void summarise(std::span<const Piece> pieces);
    void cast(std::span<const Piece> pieces);
    PieceCasts cast_piece(const Piece& piece) const;
    Narrowed read(const Piece& piece, std::vector<float>& values) const;
    void finish(std::size_t row);
    void start_pass(bool casts);
    void take_known(std::size_t row);
    double cost(std::size_t row, std::uint64_t values) const;  // of this pass
    CastPlan plan(std::size_t row, std::size_t recipe) const;

    std::shared_ptr<const TensorStore> store_;
    ScanSpec spec_;
    std::vector<ScanRow> rows_;
    std::vector<PieceCasts> sums_;                   // of the rows that are under way
    std::vector<std::vector<std::size_t>> missing_;  // recipes that a row has to be cast with
    std::vector<std::size_t> waiting_;               // rows of this pass, the next one last
    std::vector<Piece> pieces_;                      // of the row under way, the next one last
    bool casts_ = false;                             // the pass
    std::size_t scanned_ = 0;
    double work_ = 0, done_ = 0;  // in values of the first pass
};

// The results for a model, and for an earlier state that it is compared with. It holds values, so that another thread
// may go on scanning.
struct Scanned {
    std::shared_ptr<const TensorStore> store, before = {};  // before: null where nothing is compared
    std::vector<ScanRecipe> recipes = {};
    std::vector<ScanRow> rows = {}, rows_before = {};  // rows_before: of the first pass
    std::size_t scanned = 0;                           // rows that are done()
    double progress = 0;
};
Scanned scanned_by(const Scan& scan, const Scan* before);  // before: may be null

}  // namespace fp8lab
