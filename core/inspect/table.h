// The rows of the Workbench's table: tensors, or kinds of tensors with the worst of their members.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/inspect/recommend.h"
#include "core/inspect/scan.h"

namespace fp8lab {

// The same of an earlier state, of the members that are in it with the same shape.
struct TableBefore {
    std::string_view change =
        {};  // "same", "new", "reshaped": of the worst member; empty: nothing is compared
    float amax = 0, least = 0;
    double binades = 0;
    std::vector<double> underflow_pct = {};  // empty until one is cast
};

struct TableRow {
    std::string name;  // of the tensor or kind
    TensorUse use = TensorUse::w;
    std::vector<std::size_t> members;  // of Scan::rows(); not empty
    std::size_t worst = 0;  // the member with the most underflow under the recipe of the order, then binades
    std::string dtype, shape;               // "384 x 128"; of the worst member
    bool summarised = false, done = false;  // all members
    // Largest amax, smallest value above 0, largest number of binades of one member.
    float amax = 0, least = 0;
    double binades = 0;
    std::vector<double> underflow_pct;  // the highest of its members, per recipe; empty until done
    std::int64_t not_finite = 0;        // NaN, Inf and values beyond float32, of all members
    ScaleHealth scales = {};            // of all members
    bool unscaled = false;              // a member holds codes without a scale
    // "2 NaN, 1 zero", "none found"; empty: there is nothing to say of the scales.
    std::string scale_words() const { return unscaled ? "none found" : scales.words(); }
    TableBefore before = {};
    std::string note;  // why it has no numbers, or "1 of 4 bands of 128 rows"
};

struct TableQuery {
    bool fold = false;
    std::optional<TensorUse> use = {};  // none: all
    std::string filter = {};            // part of the name or of the kind, in any case
    std::size_t recipe = 0;             // whose underflow orders
};

// Most underflow first, then most binades, then by name; tensors without numbers last.
std::vector<TableRow> table_rows(const TensorStore& store, std::span<const ScanRow> rows,
                                 const TableQuery& query);

// Fills TableRow::before; `scanned.before` is not null.
void add_before(std::span<TableRow> table, const Scanned& scanned);

std::string shape_text(std::span<const std::size_t> shape);  // "384 x 128"; "scalar"

// How many tensors lose more than the demand, or meet the demands; of all that are cast.
struct Tally {
    int tensors = 0;  // that have numbers, or will
    int done = 0;
    std::vector<int> losing, meeting;  // per recipe
};
Tally tally(std::span<const ScanRow> rows, std::size_t recipes, const Demands& demands);

}  // namespace fp8lab
