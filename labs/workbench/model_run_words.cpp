// What the tab "A run" says in words: all of it follows from the findings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/units.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {
namespace {

std::string pct_words(double pct) { return percent_text(pct) + " %"; }

// "a.x", "a.x and b.x", "a.x, b.x and 7 more".
std::string names_words(const Diagnosis& of, const std::vector<const RunFinding*>& group) {
    const std::string_view first = of.short_name(group[0]->tensor);
    if (group.size() == 1) return std::string(first);
    const std::string_view second = of.short_name(group[1]->tensor);
    if (group.size() == 2) return fmt::format("{} and {}", first, second);
    return fmt::format("{}, {} and {} more", first, second, group.size() - 2);
}

// The steps of its longest run of bins in which half or more becomes 0.
struct Stretch {
    double from = 0, to = 0;
    float least = 100;  // % of a bin
    std::int64_t bins = 0;
};
Stretch worst_stretch(const Diagnosis& of, const Lane& lane) {
    Stretch best, now;
    for (std::size_t b = 0; b < lane.pct.size(); ++b) {
        if (lane.pct[b] >= 0 && lane.pct[b] < 50) now = {};
        if (lane.pct[b] < 50) continue;
        if (now.bins == 0) now.from = of.step_of(static_cast<double>(b));
        now.to = of.step_of(static_cast<double>(b + 1)) - 1;
        now.least = std::min(now.least, lane.pct[b]);
        if (++now.bins > best.bins) best = now;
    }
    return best;
}

std::string step_words(double step) { return group_thousands(static_cast<std::int64_t>(step)); }

// The findings of one kind that begin in the same step, as one clause.
std::string clause(const Diagnosis& of, const std::vector<const RunFinding*>& group) {
    const RunFinding& first = *group.front();
    const bool one = group.size() == 1;
    const std::string names = names_words(of, group), step = step_words(first.step);
    const Lane& lane = of.lanes[first.tensor];
    switch (first.kind) {
        case FindingKind::infinite_scale:
            return fmt::format("the scale of {} is infinite in step {}", names, step);
        case FindingKind::overflow_nan:
            return fmt::format("{} overflow{} into NaN in step {}", names, one ? "s" : "", step);
        case FindingKind::not_fp8:
            return fmt::format("{} {} not finite from step {} on, before any cast", names, one ? "is" : "are",
                               step);
        case FindingKind::spike: {
            if (!first.lost_known)
                return fmt::format("after a spike in step {} it is not known how much {} {}", step, names,
                                   one ? "loses" : "lose");
            const Stretch stretch = worst_stretch(of, lane);
            const std::string lose = one ? "loses" : "lose";
            float least = stretch.least;
            for (const RunFinding* each : group)
                least = std::min(least, worst_stretch(of, of.lanes[each->tensor]).least);
            if (stretch.bins == 0)
                return fmt::format("after step {} {} {} {}", step, names, lose, pct_words(lane.most));
            return fmt::format("after step {} {} {} {} for {} steps", step, names, lose,
                               least >= 99.95F ? "everything"
                               : least >= 90   ? "nearly everything"
                                               : "more than half",
                               step_words(stretch.to - stretch.from + 1));
        }
        case FindingKind::below_window:
            return fmt::format("{} {} {} at scale 1", names, one ? "loses" : "lose",
                               pct_words(first.lost_pct));
        case FindingKind::outlier_channel:
        case FindingKind::stale_history:
        case FindingKind::loses:
            return fmt::format("{} {} up to {} from step {}", names, one ? "loses" : "lose",
                               pct_words(lane.most), step);
        case FindingKind::saturates:
            return fmt::format("{} saturate{} from step {} on", names, one ? "s" : "", step);
        case FindingKind::all_zero:
            return fmt::format("{} {} all 0 in step {}", names, one ? "is" : "are", step);
        case FindingKind::headroom:
            return fmt::format("{} {} a margin that is not needed", names, one ? "has" : "have");
        case FindingKind::fixed_scale:
            return fmt::format("the scale of {} stands still from step {} on", names, step);
        case FindingKind::resumed:
            return fmt::format("the scale of {} is back at 1 in step {}", names, step);
    }
    return "";
}

std::string capital(std::string words, std::string_view name) {
    const bool is_name = !name.empty() && words.starts_with(name);  // names of tensors stay as they are
    if (!words.empty() && !is_name)
        words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    return words;
}

std::string bounds_words(const LostBounds& lost, bool from_above) {
    if (from_above) return "at most " + pct_words(lost.high);
    return bounds_text(lost) + " %";
}

}  // namespace

std::string bounds_text(const LostBounds& lost) {
    const auto text = [](double pct) {
        return pct == 0       ? std::string("0")
               : pct < 0.05   ? "<0.1"
               : pct >= 99.95 ? "100"
                              : fmt::format("{:.1f}", pct);
    };
    const std::string low = text(lost.low), high = text(lost.high);
    return low == high ? low : low + " to " + high;
}

std::string lost_text(const RunFinding& finding) {
    using enum FindingKind;
    if (finding.kind == not_fp8 || finding.kind == overflow_nan || finding.kind == infinite_scale) return "-";
    return finding.lost_known ? bounds_text({finding.lost_pct, finding.lost_pct}) : "?";
}

std::string RunTab::loss_words() const {
    const auto odd = log() ? first_nonfinite_loss(*log()) : std::nullopt;
    if (!odd) return "";
    return fmt::format("{} in step {}", std::isnan(odd->loss) ? "NaN" : "Inf", step_words(odd->step));
}

std::string RunTab::not_known_words() const {
    std::string out;
    for (const std::string& each : diagnoses->not_known)
        out += (out.empty() ? "" : " ") + capital(each, "") + ".";
    return out;
}

std::string RunTab::file_name() const {
    const std::string lines = paths();
    if (lines.empty()) return "";
    const auto ends = std::ranges::count(lines, '\n');
    if (ends > 0) return fmt::format("{} files", ends + 1);
    std::filesystem::path path = lines;
    if (path.filename().empty()) path = path.parent_path();
    return path.filename().string();
}

std::string RunTab::told() const {
    const int pct = reads->progress.bytes == 0 ? 0 : static_cast<int>(100 * reads->progress.fraction());
    if (reads->cancelled) return fmt::format("stopped at {} %", pct);
    if (reads.busy()) return fmt::format("{} % read", std::min(pct, 99));
    if (reads->log && diagnoses->log != reads->log) return "read, being judged";
    return reads->log ? "read to the end" : "";
}

std::string RunTab::title() const {
    const Diagnosis& now = *diagnoses;
    if (!now.log) return reads.busy() ? "The log is being read" : "Open what a run wrote of its tensors";
    if (now.log->tensors.empty()) return "This log has no tensors";
    if (!now.judged) return "The log is being read, and judged at its end";
    std::string loss = loss_words();
    if (!loss.empty()) loss = "The loss is " + loss + "; ";
    if (now.findings.empty() && now.unknown > 0)
        return fmt::format("{}othing in the amaxes; what becomes 0 is not known of {} of {} tensors",
                           loss.empty() ? "N" : loss + "n",
                           group_thousands(static_cast<std::int64_t>(now.unknown)),
                           group_thousands(std::ssize(now.log->tensors)));
    if (now.findings.empty() && now.from_above) {
        const auto worst =
            std::ranges::max_element(now.lanes, {}, [](const Lane& lane) { return lane.lost.high; });
        return fmt::format("{}othing is found; at most {} of {} becomes 0", loss.empty() ? "N" : loss + "n",
                           pct_words(worst->lost.high),
                           now.short_name(static_cast<std::size_t>(worst - now.lanes.begin())));
    }
    if (now.findings.empty())
        return loss.empty() ? fmt::format("Nothing: {0} of {0} tensors are well",
                                          group_thousands(std::ssize(now.log->tensors)))
                            : loss + "no rule finds fault with the tensors";
    std::vector<std::vector<const RunFinding*>> groups;
    for (const RunFinding& each : now.findings) {
        const auto same = std::ranges::find_if(groups, [&](const auto& group) {
            const RunFinding& one = *group.front();
            return one.kind == each.kind && one.step == each.step && one.lost_known == each.lost_known;
        });
        if (same == groups.end())
            groups.push_back({&each});
        else
            (*same).push_back(&each);
    }
    std::string words = loss + clause(now, groups[0]);
    if (loss.empty()) words = capital(words, now.short_name(groups[0].front()->tensor));
    if (groups.size() > 1) words += "; " + clause(now, groups[1]);
    if (groups.size() > 2) {
        std::size_t more = 0;
        for (std::size_t g = 2; g < groups.size(); ++g) more += groups[g].size();
        words += fmt::format("; {} more", more);
    }
    return words;
}

std::string RunTab::findings_title() const {
    const Diagnosis& now = *diagnoses;
    if (!now.log) return "";
    if (!now.judged) return "No findings yet: the log is being read";
    const std::string all = group_thousands(std::ssize(now.log->tensors));
    // Whether a tensor is well cannot be said where not all of it is known.
    const char* const are = now.not_known.empty() ? "are well" : "have none";
    if (now.findings.empty()) return fmt::format("No findings; {0} of {0} tensors {1}", all, are);
    return fmt::format(
        "{} finding{}; {} of {} tensors {}", now.findings.size(), now.findings.size() == 1 ? "" : "s",
        group_thousands(static_cast<std::int64_t>(now.log->tensors.size() - now.ill)), all, are);
}

std::string RunTab::lane_words(std::size_t tensor) const {
    const Diagnosis& now = *diagnoses;
    const Lane& lane = now.lanes.at(tensor);
    const Stretch stretch = worst_stretch(now, lane);
    if (stretch.bins == 0) return "";
    if (stretch.least >= 99.95F)
        return fmt::format("{}100 % becomes 0, step {} to {}", now.from_above ? "at most " : "",
                           step_words(stretch.from), step_words(stretch.to));
    return fmt::format("{}{} or more becomes 0, step {} to {}", now.from_above ? "at most " : "",
                       pct_words(std::floor(static_cast<double>(stretch.least))), step_words(stretch.from),
                       step_words(stretch.to));
}

std::string RunTab::histories_title() const {
    const Chosen& now = *choices;
    if (now.histories.empty() || !selected()) return "";
    const std::string name(diagnoses->short_name(*selected()));
    const HistoryRow *least = nullptr, *most = nullptr;
    for (const HistoryRow& each : now.histories) {
        if (each.algo != AmaxAlgo::max) continue;
        if (!least || each.lost.low < least->lost.low) least = &each;
        if (!most || each.lost.low >= most->lost.low) most = &each;
    }
    if (most->lost.high <= 0) return name + " under other histories: it loses nothing";
    if (least->lost.low == 0 && most->lost.low == 0 && most->lost.high >= 100)
        return name + " under other histories: what it loses is not known";
    if (bounds_text(least->lost) == bounds_text(most->lost))
        return fmt::format("{} under other histories: {} in each", name, bounds_words(most->lost, false));
    return fmt::format("{} under other histories: {} loses {:.1f} %, {} loses {:.0f} %", name,
                       group_thousands(least->history), least->lost.low, group_thousands(most->history),
                       most->lost.low);
}

std::string RunTab::step_title() const {
    const TensorPoint* const at = point();
    const ReplayStep* const step = replayed();
    if (!at || !step || !selected()) return "";
    const TensorSeries& series = log()->tensors[*selected()];
    const std::string head =
        fmt::format("{} in step {}: ", diagnoses->short_name(*selected()), step_words(at->step));
    if (at->nonfinite) return head + "not finite";
    if (at->amax == 0)
        return head + (series.resolution() > 0 ? "amax below what the log shows" : "all of it is 0");
    if (std::isnan(at->amax)) return head + "no amax was logged";
    if (choices->replay.from_above) return head + "at most " + pct_words(step->lost.high) + " becomes 0";
    const LostBounds& lost = step->lost;
    if (lost.low >= 100) return head + "all of it is below the window";
    if (lost.low <= 0 && lost.high >= 100) return head + "how much is below the window is not known";
    if (step->saturates)
        return head + fmt::format("the amax is {}-fold above the window",
                                  format_number(static_cast<double>(step->over), 3));
    if (lost.high <= 0) return head + "all of it is inside the window";
    return head + bounds_words(lost, false) + " below the window";
}

std::string RunTab::recipe_words() const {
    const Diagnosis& now = *diagnoses;
    return now.log ? recipe_label(recipe_text(now.recipe)) : "";
}

}  // namespace fp8lab::workbench
