#include "core/inspect/names.h"

#include <algorithm>
#include <array>
#include <vector>

namespace fp8lab {
namespace {

std::vector<std::string_view> parts_of(std::string_view name) {
    std::vector<std::string_view> parts;
    for (std::size_t from = 0; from <= name.size();) {
        const std::size_t dot = std::min(name.find('.', from), name.size());
        parts.push_back(name.substr(from, dot - from));
        from = dot + 1;
    }
    return parts;
}

bool is_number(std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

struct Word {
    std::string_view part;
    TensorUse use;
    bool first_only = false;  // m and v are too short to mean this anywhere
};
constexpr std::array kWords = {
    Word{"grad", TensorUse::dy},       Word{"dact", TensorUse::dy},
    Word{"dy", TensorUse::dy},         Word{"act", TensorUse::x},
    Word{"x", TensorUse::x},           Word{"adam", TensorUse::state},
    Word{"exp_avg", TensorUse::state}, Word{"exp_avg_sq", TensorUse::state},
    Word{"m", TensorUse::state, true}, Word{"v", TensorUse::state, true},
};

}  // namespace

std::string kind_of(std::string_view name) {
    std::string kind;
    for (const std::string_view part : parts_of(name)) {
        if (!kind.empty() || part.data() != name.data()) kind += '.';
        kind += is_number(part) ? std::string_view("*") : part;
    }
    return kind;
}

std::string_view to_string(TensorUse use) {
    switch (use) {
        case TensorUse::w:
            return "w";
        case TensorUse::x:
            return "x";
        case TensorUse::dy:
            return "dy";
        case TensorUse::state:
            return "state";
    }
    return "";
}

TensorUse use_of(std::string_view name) {
    bool first = true;
    for (const std::string_view part : parts_of(name)) {
        for (const Word& word : kWords)
            if (word.part == part && (first || !word.first_only)) return word.use;
        first = false;
    }
    return TensorUse::w;
}

}  // namespace fp8lab
