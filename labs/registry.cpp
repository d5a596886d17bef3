// The labs of list.h, by id or number.
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/match.h"
#include "labs/list.h"

namespace fp8lab {
namespace {

// "l01", "1" -> 1; anything else 0.
int number_of(std::string_view name) {
    if (name.starts_with('l')) name.remove_prefix(1);
    const bool digits = !name.empty() && name.size() <= 3 &&
                        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    int number = 0;
    for (const char c : digits ? name : std::string_view{}) number = number * 10 + (c - '0');
    return number;
}

}  // namespace

std::span<const LabEntry> lab_registry() {
#define FP8LAB_ENTRY(lab) lab::entry(),
    static const std::array kLabs = {FP8LAB_LABS(FP8LAB_ENTRY)};
#undef FP8LAB_ENTRY
    return kLabs;
}

const LabEntry& find_lab(std::string_view name, std::string_view where) {
    const std::string wanted = lower_case(name);
    const int number = number_of(wanted);
    for (const LabEntry& entry : lab_registry()) {
        if (entry.id == wanted || (number > 0 && entry.number == number)) return entry;
    }
    throw unknown_name(std::string(where), "lab", name, lab_registry(),
                       [](const LabEntry& entry) { return entry.id; });
}

}  // namespace fp8lab
