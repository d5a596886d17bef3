// The tensors of a quantised model against its original.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/base/names.h"
#include "core/base/units.h"
#include "labs/workbench/model.h"

namespace fp8lab::workbench {

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
        if (!worst || each->diagnosis->rel_l2 > worst->diagnosis->rel_l2) worst = each;
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

std::string Workbench::verified_title() const {
    std::size_t compared = 0, faults = 0;
    for (const auto& each : scans->verified)
        if (each) ++compared, faults += each->is_fault();
    if (compared == 0)
        return scans.busy() ? "Comparing with the original"
                            : "The original has none of these tensors, by name and shape";
    return faults == 0
               ? fmt::format("{} tensors are as near to the original as a cast can be", with_commas(compared))
               : fmt::format("{} of {} tensors {} a fault", with_commas(faults), with_commas(compared),
                             faults == 1 ? "has" : "have");
}

std::string Workbench::verified_words() const {
    const ScanRow* const now = row();
    if (!is_verified() || !now) return {};
    const Verified* const found = verified();
    if (!found)
        return scans->done && scanned().store->tensors()[now->tensor].is_judged(true)
                   ? "The original has no tensor of this name and shape"
                   : "";
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
    std::string words = diagnosis.words;
    words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
    return std::isnan(diagnosis.mended) ? fmt::format("{}: relative L2 {}", words, error)
                                        : fmt::format("{}: relative L2 {}, {} without this fault", words,
                                                      error, number(diagnosis.mended));
}

// NaN and "none" where nothing is compared.
void Workbench::add_verified(std::vector<table::MetricRow>& out) const {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    double faults = 0;
    for (const auto& each : scans->verified) faults += each && each->is_fault() ? 1 : 0;
    const Verified* const found = verified();
    const auto& diagnosis = found ? found->diagnosis : std::nullopt;
    out.push_back(table::known("faults", is_verified() ? faults : kNan));
    out.push_back(table::known_word("fault", !diagnosis               ? "none"
                                             : !diagnosis->is_fault() ? "fine"
                                                                      : std::string(diagnosis->fault)));
    out.push_back(table::known("against_rel_l2", diagnosis ? diagnosis->rel_l2 : kNan));
    out.push_back(table::known("mended_rel_l2", diagnosis ? diagnosis->mended : kNan));
}

}  // namespace fp8lab::workbench
