#include "core/inspect/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/names.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/inspect/compare.h"
#include "core/inspect/table.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

// A text of CSV: in quotes where it has to be.
std::string cell(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == text.npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
}

std::string reason_of(const Recommendation& advice) {
    return fmt::format("{}", fmt::join(advice.reasons, " "));
}

std::string recommended(const Recommendation& advice, std::span<const ScanRecipe> recipes) {
    return advice.recipe ? recipes[*advice.recipe].id : "none";
}

std::string cells_of(const std::optional<AgainstOriginal>& a) {
    return a ? fmt::format(",{},{},{},{},{}", shortest(a->sqnr_db), shortest(a->rel_l2), shortest(a->cosine),
                           a->worst_row, shortest(a->worst_row_db))
             : ",,,,,";
}

}  // namespace

json to_json(const ScaleHealth& health) {
    return {{"nan", health.nan},
            {"inf", health.inf},
            {"zero", health.zero},
            {"subnormal", health.subnormal},
            {"negative", health.negative}};
}

std::string InspectReport::csv() const {
    const auto& recipes = scanned.recipes;
    std::string out = fmt::format("# file {}\n# min_sqnr_db {}, max_underflow_pct {}\n",
                                  printable(scanned.store->path().string()), shortest(demands.min_sqnr_db),
                                  shortest(demands.max_underflow_pct));
    out += "name,kind,class,dtype,shape,values,amax,least,binades,zeros_pct";
    for (const ScanRecipe& recipe : recipes)
        for (const char* column : {"sqnr_db", "underflow_pct", "overflow_pct", "worst_row_db", "bits"})
            out += "," + cell(fmt::format("{}_{}", column, recipe.id));
    out += ",recommended,reason,nan,inf,sampled_every";
    if (scanned.before) out += ",before_amax,before_least,before_binades,change";
    out += ",beyond_float32,below_float32,scale_nan,scale_inf,scale_zero,scale_subnormal,scale_negative";
    if (against) out += ",against_sqnr_db,against_rel_l2,against_cosine,worst_row,worst_row_db";
    out += '\n';
    for (const ScanRow& row : scanned.rows) {
        const StoredTensor& tensor = scanned.store->tensors()[row.tensor];
        if (!matches(tensor.name, filter)) continue;
        const TensorSummary& s = row.summary;
        out += fmt::format("{},{},{},{},{},{}", cell(printable(tensor.name)), cell(printable(row.kind)),
                           to_string(row.use), cell(printable(tensor.dtype)), fmt::join(tensor.shape, "x"),
                           tensor.values());
        if (row.summarised)
            out += fmt::format(",{},{},{},{}", shortest(s.amax), shortest(s.least), shortest(s.binades()),
                               shortest(s.zeros_pct()));
        else
            out += ",,,,";
        for (std::size_t r = 0; r < recipes.size(); ++r) {
            if (row.outcomes.empty()) {
                out += ",,,,,";
                continue;
            }
            const CastOutcome& o = row.outcomes[r];
            for (const double value : {o.sqnr_db, o.underflow_pct, o.overflow_pct, o.worst_row_db, o.bits})
                out += "," + shortest(value);
        }
        const Recommendation advice = recommend(row, recipes, demands);
        out += row.outcomes.empty()
                   ? ",," + cell(row.not_scanned)
                   : "," + cell(recommended(advice, recipes)) + "," + cell(reason_of(advice));
        out += row.summarised ? fmt::format(",{},{},{}", s.excluded.nan, s.excluded.inf, row.every) : ",,,";
        if (scanned.before) {
            const auto [change, old] = before_of(scanned, row);
            if (old && old->summarised)
                out += fmt::format(",{},{},{}", shortest(old->summary.amax), shortest(old->summary.least),
                                   shortest(old->summary.binades()));
            else
                out += ",,,";
            out += fmt::format(",{}", change);
        }
        out += row.summarised ? fmt::format(",{},{}", s.excluded.beyond, s.excluded.below) : ",,";
        out += s.scales.scales > 0 ? fmt::format(",{},{},{},{},{}", s.scales.nan, s.scales.inf, s.scales.zero,
                                                 s.scales.subnormal, s.scales.negative)
                                   : ",,,,,";
        if (against) out += cells_of(against->rows[static_cast<std::size_t>(&row - scanned.rows.data())]);
        out += '\n';
    }
    return out;
}

json InspectReport::json() const {
    const auto& recipes = scanned.recipes;
    nlohmann::json out;
    out["file"] = scanned.store->path().string();
    out["tensors"] = scanned.rows.size();
    out["demands"] = {{"min_sqnr_db", demands.min_sqnr_db}, {"max_underflow_pct", demands.max_underflow_pct}};
    const Tally counts = tally(scanned.rows, recipes.size(), demands);
    out["cast"] = counts.done;
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        out["losing"][recipes[r].id] = counts.losing[r];
        out["meeting"][recipes[r].id] = counts.meeting[r];
    }
    if (against)
        out["against"] = {{"file", against->original->path().string()},
                          {"unmatched", against->unmatched},
                          {"unmatched_there", against->unmatched_there}};
    out["rows"] = nlohmann::json::array();
    for (const ScanRow& row : scanned.rows) {
        const StoredTensor& tensor = scanned.store->tensors()[row.tensor];
        if (!matches(tensor.name, filter)) continue;
        nlohmann::json entry = {{"name", tensor.name},         {"kind", row.kind},
                                {"class", to_string(row.use)}, {"dtype", tensor.dtype},
                                {"shape", tensor.shape},       {"values", tensor.values()}};
        if (!row.not_scanned.empty()) entry["not_scanned"] = row.not_scanned;
        if (const std::string scales = tensor.scale_words(); !scales.empty()) entry["scales"] = scales;
        if (const ScaleHealth& health = row.summary.scales; !health.is_usual())
            entry["odd_scales"] = to_json(health);
        if (against)
            if (const auto& a = against->rows[static_cast<std::size_t>(&row - scanned.rows.data())])
                entry["against"] = {{"sqnr_db", number(a->sqnr_db)},
                                    {"rel_l2", number(a->rel_l2)},
                                    {"cosine", number(a->cosine)},
                                    {"worst_row", a->worst_row},
                                    {"worst_row_db", number(a->worst_row_db)}};
        if (row.summarised) {
            entry["amax"] = static_cast<double>(row.summary.amax);
            entry["least"] = static_cast<double>(row.summary.least);
            entry["binades"] = row.summary.binades();
            entry["zeros_pct"] = row.summary.zeros_pct();
            entry["nan"] = row.summary.excluded.nan;
            entry["inf"] = row.summary.excluded.inf;
            entry["beyond_float32"] = row.summary.excluded.beyond;
            entry["below_float32"] = row.summary.excluded.below;
            entry["sampled_every"] = row.every;
        }
        for (std::size_t r = 0; r < row.outcomes.size(); ++r) {
            const CastOutcome& o = row.outcomes[r];
            entry["recipes"][recipes[r].id] = {{"sqnr_db", number(o.sqnr_db)},
                                               {"underflow_pct", number(o.underflow_pct)},
                                               {"overflow_pct", number(o.overflow_pct)},
                                               {"worst_row_db", number(o.worst_row_db)},
                                               {"bits", number(o.bits)}};
        }
        if (!row.outcomes.empty()) {
            const Recommendation advice = recommend(row, recipes, demands);
            entry["recommended"] = recommended(advice, recipes);
            entry["reason"] = reason_of(advice);
        }
        if (scanned.before) {
            const auto [change, old] = before_of(scanned, row);
            entry["change"] = change;
            if (old && old->summarised)
                entry["before"] = {{"amax", static_cast<double>(old->summary.amax)},
                                   {"least", static_cast<double>(old->summary.least)},
                                   {"binades", old->summary.binades()}};
        }
        out["rows"].push_back(std::move(entry));
    }
    if (scanned.before) {
        const Comparison changes = compare(scanned);
        out["comparison"] = {{"kinds", changes.same()},
                             {"grown", changes.grown()},
                             {"new", changes.added},
                             {"missing", changes.missing},
                             {"reshaped", changes.reshaped}};
    }
    return out;
}

std::string InspectReport::excluded() const {
    std::vector<std::string> tensors;
    for (const ScanRow& row : scanned.rows)
        if (row.summary.excluded.count() > 0)
            tensors.push_back(quote_from(scanned.store->tensors()[row.tensor].name) + " " +
                              row.summary.excluded.words());
    if (tensors.empty()) return {};
    return fmt::format("{} {} values that count as 0: {}", with_commas(tensors.size()),
                       tensors.size() == 1 ? "tensor has" : "tensors have",
                       some_names(
                           tensors, [](const std::string& text) { return text; }, "; "));
}

std::string InspectReport::odd_scales() const {
    std::vector<std::string> tensors;
    for (const ScanRow& row : scanned.rows)
        if (const std::string words = row.summary.scales.words(); !words.empty())
            tensors.push_back(quote_from(scanned.store->tensors()[row.tensor].name) + " " + words);
    if (tensors.empty()) return {};
    return fmt::format("{} scales that are NaN, infinite, 0, subnormal or negative: {}",
                       tensors.size() == 1 ? "1 tensor has" : with_commas(tensors.size()) + " tensors have",
                       some_names(
                           tensors, [](const std::string& text) { return text; }, "; "));
}

std::string InspectReport::foot() const {
    const auto& recipes = scanned.recipes;
    const Tally counts = tally(scanned.rows, recipes.size(), demands);
    std::vector<std::string> losing, meeting;
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        losing.push_back(fmt::format("{} {}", recipes[r].id, counts.losing[r]));
        meeting.push_back(fmt::format("{} {}", recipes[r].id, counts.meeting[r]));
    }
    std::string out = fmt::format("of {} tensors lose more than {} %: {}\n", counts.done,
                                  format_number(demands.max_underflow_pct), fmt::join(losing, ", "));
    out += fmt::format("of {} tensors meet {} dB and {} %: {}\n", counts.done,
                       format_number(demands.min_sqnr_db), format_number(demands.max_underflow_pct),
                       fmt::join(meeting, ", "));
    for (const std::string& text : {excluded(), odd_scales()})
        if (!text.empty()) out += printable(text) + "\n";
    if (!scanned.before) return out;
    const Comparison changes = compare(scanned);
    return out +
           fmt::format(
               "{} of {} kinds grew by more than a binade; {} tensors are new, {} missing, {} reshaped\n",
               changes.grown(), changes.same(), changes.added.size(), changes.missing.size(),
               changes.reshaped.size());
}

}  // namespace fp8lab
