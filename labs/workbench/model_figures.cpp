// The figures of the selected tensor, what changed between two files, and how near it is to its original.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/names.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/json/read_json.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {
namespace {

// What a format holds under this scale, in the tensor's own units. Block formats: of the block with the tensor's amax.
Range window_of(const CastPlan& plan, float amax) {
    const double top = max_finite(*plan.format), least = min_subnormal(*plan.format);
    const double scale = plan.scaled && amax > 0 ? top / static_cast<double>(amax) : 1;
    return {least / scale, top / scale};
}

bool has_blocks(const CastPlan& plan) { return plan.granularity != Granularity::tensor; }

struct Span {
    int lo = 0, hi = 0;  // exponents: [2^lo, 2^hi)
};
Span span_of(const Binades& histogram) {
    Span out{Binades::kLowest + Binades::kBins, Binades::kLowest};
    for (int b = 0; b < Binades::kBins; ++b) {
        if (histogram.counts[static_cast<std::size_t>(b)] == 0) continue;
        out.lo = std::min(out.lo, b + Binades::kLowest);
        out.hi = std::max(out.hi, b + Binades::kLowest + 1);
    }
    return out;
}

}  // namespace

std::string Workbench::histogram_title() const {
    if (!scanned().store) return {};  // before the first scan
    const ScanRow* const now = row();
    if (now && !now->not_scanned.empty()) return "Not judged: " + now->not_scanned;
    if (!now || !now->summarised) return "No tensor is selected";
    if (now->summary.amax == 0) return "All values are 0";
    const ScanRecipe& recipe = scanned().recipes[this->recipe()];
    if (now->outcomes.empty() || !detail()) return "Values per binade";
    const CastOutcome& o = now->outcomes[this->recipe()];
    if (o.overflow_pct > 0) return fmt::format("{} % saturates", percent_text(o.overflow_pct));
    if (detail()->underflow == 0) return fmt::format("All of it fits into {}", recipe.label);
    if (has_blocks(scan_plan(recipe.recipe, now->use)))
        return fmt::format("{} % becomes 0 in {}", percent_text(o.underflow_pct), recipe.label);
    return fmt::format("{} % lies below {}\u2019s window", percent_text(o.underflow_pct),
                       recipe.recipe.fwd->label);
}

Figure Workbench::histogram() const {
    Figure figure{.id = "histogram", .title = histogram_title()};
    figure.x = {.label = "|x|", .scale = Scale::log2, .range = Range{0x1p-40, 1}};
    figure.y = {.label = "elements", .range = Range{0, 1}, .visible = false};
    const ScanRow* const now = row();
    if (!now || !now->summarised || now->summary.amax == 0) return figure;
    const Recipe& recipe = scanned().recipes[this->recipe()].recipe;
    const CastPlan plan = scan_plan(recipe, now->use);
    const Range window = window_of(plan, now->summary.amax);
    Span shown = span_of(now->summary.histogram);
    shown.lo = std::max(std::min(shown.lo, shown.hi - 24), shown.hi - 96);
    std::vector<double> edges, kept, lost;
    for (int e = shown.lo; e <= shown.hi; ++e) edges.push_back(std::ldexp(1.0, e));
    double top = 1;
    for (int e = shown.lo; e < shown.hi; ++e) {
        const auto bin = static_cast<std::size_t>(e - Binades::kLowest);
        const auto all = static_cast<double>(now->summary.histogram.counts[bin]);
        const double gone = detail() ? static_cast<double>(detail()->lost.counts[bin]) : 0;
        kept.push_back(all);
        lost.push_back(std::min(gone, all));
        top = std::max(top, all);
    }
    figure.x.range = Range{std::ldexp(1.0, shown.lo - 1), std::ldexp(1.0, shown.hi + 2)};
    figure.y.range = Range{0, 1.2 * top};
    const bool narrow = width_bits(*plan.format) <= 8;
    if (narrow)
        figure.xspan(has_blocks(plan) ? "window of the largest block" : "window",
                     std::max(window.lo, figure.x.range->lo), std::min(window.hi, figure.x.range->hi),
                     {.color = {has_blocks(plan) ? Role::under : recipe.role}});
    const Data shared = data(std::move(edges));
    figure.bars("elements", shared, data(std::move(kept)), {.color = {Role::truth, Tone::fill}});
    if (detail() && detail()->underflow > 0)
        figure.bars("became 0", shared, data(std::move(lost)), {.color = {Role::under, Tone::fill}});
    if (detail() && detail()->underflow > 0)
        figure.add("", TextMark{figure.x.range->lo, 1.1 * top,
                                fmt::format("{} of {} become 0", group_thousands(detail()->underflow),
                                            group_thousands(now->summary.n)),
                                Anchor::left, true, 2, 0});
    return figure;
}

Figure Workbench::where() const {
    Figure figure{.id = "where", .title = detail() ? detail()->title() : ""};
    figure.x = {.label = "element", .range = Range{0, 1}};
    figure.y = {.label = "most of it", .range = Range{0, 1}, .visible = false};
    if (!detail()) return figure;
    constexpr std::size_t kCells = 64;
    const auto cells = detail()->cells(kCells);
    const auto unit_of = [&](std::size_t cell) {
        return static_cast<double>(cell * detail()->units / std::max<std::size_t>(cells.size(), 1));
    };
    figure.x.label = detail()->unit == PlaceUnit::row      ? "row"
                     : detail()->unit == PlaceUnit::column ? "column"
                                                           : "element";
    figure.x.range = Range{0, static_cast<double>(detail()->units)};
    using enum CastDetail::Place;
    const auto add = [&](const char* name, CastDetail::Place place, Color color) {
        std::vector<double> edges, heights;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            edges.push_back(unit_of(i));
            heights.push_back(cells[i] == place ? 1 : 0);
        }
        edges.push_back(static_cast<double>(detail()->units));
        figure.bars(name, data(std::move(edges)), data(std::move(heights)), {.color = color});
    };
    add("kept", kept, {Role::truth, Tone::fill});
    add("became 0", lost, {Role::under, Tone::fill});
    add("saturated", cut, {Role::sat, Tone::fill});
    add("all 0", zero, {Role::field});
    return figure;
}

Figure Workbench::change() const {
    Figure figure{.id = "change", .title = {}};
    figure.x = {.label = "kind, by its change"};
    figure.y = {.label = "log2 amax after / before"};
    if (!comparison) return figure;
    std::vector<double> changes;
    for (const KindChange& kind : comparison->kinds)
        if (std::isfinite(kind.amax_log2())) changes.push_back(kind.amax_log2());
    figure.title = comparison->kinds.empty() ? "The two files have no tensor in common"
                                             : fmt::format("{} of {} kinds grew by more than a binade",
                                                           comparison->grown(), changes.size());
    std::ranges::sort(changes);
    std::vector<double> places;
    for (std::size_t i = 0; i < changes.size(); ++i) places.push_back(static_cast<double>(i + 1));
    figure.hline("no change", 0, {.color = {Role::axis}, .width = 1, .in_legend = false});
    figure.scatter("kinds", data(std::move(places)), data(std::move(changes)),
                   {.color = {Role::truth}, .marker = Marker::disc, .in_legend = false});
    return figure;
}

std::vector<Figure> Workbench::figures() const {
    if (shows_run()) return doctor.figures();
    if (scanned().before) return {histogram(), change()};
    return {histogram(), where()};
}

// Weights and gradients of one layer: two humps, of which one window takes one.
Figure Workbench::thumbnail() const {
    Figure figure{.id = "thumbnail", .title = {}};
    std::vector<double> edges, heights;
    for (int i = 0; i <= 24; ++i) edges.push_back(i);
    for (int i = 0; i < 24; ++i)
        heights.push_back(0.55 * std::exp(-0.12 * (i - 6) * (i - 6)) + std::exp(-0.06 * (i - 17) * (i - 17)));
    figure.x = {.label = "", .range = Range{0, 24}, .visible = false};
    figure.y = {.label = "", .range = Range{0, 1.15}, .visible = false};
    figure.xspan("", 10.5, 23, {.color = {Role::e4m3}, .in_legend = false});
    figure.bars("", data(std::move(edges)), data(std::move(heights)), {.color = {Role::truth, Tone::fill}});
    return figure;
}

namespace {

// "*attention.p": a text in which * stands for anything.
bool fits(std::string_view pattern, std::string_view name) {
    const std::size_t star = pattern.find('*');
    if (star == pattern.npos) return pattern == name;
    if (!name.starts_with(pattern.substr(0, star))) return false;
    for (std::size_t at = star; at <= name.size(); ++at)
        if (fits(pattern.substr(star + 1), name.substr(at))) return true;
    return false;
}

struct Note {
    std::string pattern, text;
};
const std::vector<Note>& notes() {
    static const std::vector<Note> kNotes = [] {
        std::vector<Note> out;
        const auto path = asset("workbench_notes.json");
        for (const auto& entry : parse_json(read_text(path), path.string()))
            out.push_back({entry.at("name").get<std::string>(), entry.at("text").get<std::string>()});
        return out;
    }();
    return kNotes;
}

}  // namespace

std::string Workbench::note() const {
    const ScanRow* const now = row();
    if (!now) return "";
    for (const Note& note : notes())
        if (fits(note.pattern, scanned().store->tensors()[now->tensor].name)) return note.text;
    return "";
}

// The tensors of a quantised model against its original.

const Verified* Workbench::verified() const {
    const auto index = selected();
    return index && *index < scans->verified.size() ? scans->verified[*index].get() : nullptr;
}

const Verified* Workbench::verified_of(const TableRow& row) const {
    const Verified* worst = nullptr;
    for (const std::size_t member : row.members) {
        const Verified* const each =
            member < scans->verified.size() ? scans->verified[member].get() : nullptr;
        if (!each) continue;
        if (each->is_fault()) return each;
        const auto error = [](const Verified& of) { return of.diagnosis ? of.diagnosis->rel_l2 : -1; };
        if (!worst || error(*each) > error(*worst)) worst = each;
    }
    return worst;
}

// A row stands for its member with a fault; in the usual order such rows are the first ones.
void Workbench::put_faults_first() {
    const auto is_faulty = [&](const TableRow& row) {
        const Verified* const found = verified_of(row);
        return found && found->is_fault();
    };
    for (TableRow& row : list) {
        if (!is_faulty(row)) continue;
        const Verified* const found = verified_of(row);
        row.worst = *std::ranges::find_if(
            row.members, [&](std::size_t member) { return scans->verified[member].get() == found; });
    }
    if (params.order == "underflow" && !params.ascending) std::ranges::stable_partition(list, is_faulty);
}

std::span<const std::string> Workbench::missing() const {
    if (comparison) return comparison->missing;
    if (tells_faults() && scans->missing) return *scans->missing;
    return {};
}

std::string Workbench::verified_title() const {
    const std::vector<std::shared_ptr<const Verified>>& all = scans->verified;
    const auto count = [&](VerifiedAs verdict) {
        return static_cast<std::size_t>(
            std::ranges::count_if(all, [&](const auto& each) { return each && each->verdict() == verdict; }));
    };
    const std::size_t verified = all.size() - static_cast<std::size_t>(std::ranges::count(all, nullptr)),
                      fine = count(VerifiedAs::fine), faults = count(VerifiedAs::fault);
    if (verified == 0)
        return scans.busy() ? "Comparing with the original"
                            : "The original has none of these tensors, by name";
    const auto tensors = [](std::size_t n) { return with_commas(n) + (n == 1 ? " tensor" : " tensors"); };
    std::string out = faults == 0 ? fmt::format("{} {} as near to the original as a cast can be",
                                                tensors(fine), fine == 1 ? "is" : "are")
                                  : fmt::format("{} of {} {} a fault", with_commas(faults), tensors(verified),
                                                faults == 1 ? "has" : "have");
    for (const VerifiedAs each : {VerifiedAs::not_read, VerifiedAs::not_compared})
        if (count(each) > 0) out += fmt::format(", {} {}", with_commas(count(each)), to_string(each));
    if (const std::size_t n = missing().size(); n > 0)
        out += fmt::format("; {} of the original {} not in the model", with_commas(n), n == 1 ? "is" : "are");
    return out;
}

std::string Workbench::verified_words() const {
    const ScanRow* const now = row();
    if (!tells_faults() || !now) return {};
    const Verified* const found = verified();
    if (!found) return {};
    const auto capital = [](std::string words) {
        words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
        return words;
    };
    // What the diagnosis of the values does not say.
    if (!found->diagnosis || (found->is_fault() && !found->diagnosis->is_fault()))
        return capital(found->sentence());
    const fp8lab::Diagnosis& diagnosis = *found->diagnosis;
    const auto number = [](double value) {
        return std::isinf(value) ? std::string("not finite") : screen_number(value, 3);
    };
    const std::string error = number(diagnosis.rel_l2);
    if (!diagnosis.is_fault())
        return diagnosis.rel_l2 == 0
                   ? "The same as the original"
                   : fmt::format("As near to the original as a cast can be: relative L2 {}", error);
    if (diagnosis.fault == "none")
        return fmt::format("No single fault explains it: relative L2 {}, at most {} is usual", error,
                           number(diagnosis.limit));
    const std::string words = capital(diagnosis.words);
    return std::isnan(diagnosis.mended) ? fmt::format("{}: relative L2 {}", words, error)
                                        : fmt::format("{}: relative L2 {}, {} without this fault", words,
                                                      error, number(diagnosis.mended));
}

std::string Workbench::scale_words() const {
    const ScanRow* const now = row();
    if (!now || params.covered || now->summary.scales.is_usual()) return {};
    return fmt::format("Of its {} scales: {}",
                       with_commas(static_cast<std::size_t>(now->summary.scales.scales)),
                       now->summary.scales.words());
}

// NaN and "none" where nothing is compared.
void Workbench::add_verified(std::vector<table::MetricRow>& out) const {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    double faults = 0;
    for (const auto& each : scans->verified) faults += each && each->is_fault() ? 1 : 0;
    const Verified* const found = verified();
    const auto& diagnosis = found ? found->diagnosis : std::nullopt;
    out.push_back(table::known("faults", is_verified() ? faults : kNan));
    out.push_back(table::known_word(
        "fault", std::string(!found                               ? "none"
                             : diagnosis && diagnosis->is_fault() ? diagnosis->fault
                                                                  : to_string(found->verdict()))));
    out.push_back(table::known("against_rel_l2", diagnosis ? diagnosis->rel_l2 : kNan));
    out.push_back(table::known("mended_rel_l2", diagnosis ? diagnosis->mended : kNan));
}

}  // namespace fp8lab::workbench
