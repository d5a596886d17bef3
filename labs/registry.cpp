// The labs, by number. A lab is one line here and one in views.cpp.
#include <algorithm>
#include <array>
#include <cctype>

#include "core/base/error.h"
#include "labs/adding/model.h"
#include "labs/bits/model.h"
#include "labs/blocks/model.h"
#include "labs/delayed/model.h"
#include "labs/error/model.h"
#include "labs/lab.h"
#include "labs/ruler/model.h"
#include "labs/train/model.h"
#include "labs/window/model.h"

namespace fp8lab {
namespace {

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

// "l01", "1" -> 1; anything else 0.
int number_of(std::string_view name) {
    if (name.starts_with('l')) name.remove_prefix(1);
    const bool digits = !name.empty() && name.size() <= 3 &&
                        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    int number = 0;
    for (const char c : digits ? name : std::string_view{}) number = number * 10 + (c - '0');
    return number;
}

template <class Model>
std::unique_ptr<Lab> make() {
    return std::make_unique<Model>();
}

}  // namespace

std::span<const LabEntry> lab_registry() {
    static constexpr std::array kLabs = {
        LabEntry{"bits", make<bits_lab::BitsLab>},
        LabEntry{"ruler", make<ruler::RulerLab>},
        LabEntry{"error", make<error::ErrorLab>},
        LabEntry{"window", make<window_lab::WindowLab>},
        LabEntry{"delayed", make<delayed::DelayedLab>},
        LabEntry{"blocks", make<blocks::BlocksLab>},
        LabEntry{"adding", make<adding::AddingLab>},
        LabEntry{"train", make<train::TrainLab>},
    };
    return kLabs;
}

const LabEntry& find_lab(std::string_view name, std::string_view where) {
    const std::string wanted = lower(name);
    const int number = number_of(wanted);
    for (const LabEntry& entry : lab_registry()) {
        if (entry.id == wanted || (number > 0 && entry.make()->info().number == number)) return entry;
    }
    throw unknown_name(std::string(where), "lab", name, lab_registry(),
                       [](const LabEntry& entry) { return entry.id; });
}

}  // namespace fp8lab
