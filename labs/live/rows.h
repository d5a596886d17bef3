// The rows of labs that train: each help line ends with when the setting acts.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "labs/table/row.h"

namespace fp8lab::live {

inline constexpr std::string_view kActsAtNextStep = " A change acts at the next step.",
                                  kActsIfDelayed = " Delayed scaling only; a change acts at the next step.",
                                  kActsOnReset = " A change acts on Reset.";

// Adds rows to a table: to the second tier where `more`, and `acts` to their help.
struct Adder {
    std::vector<table::Row>& out;
    bool more = false;
    std::string_view acts = {};

    table::Row& operator()(Field field) const {
        field.info.help += acts;
        return as_it_is(std::move(field));
    }
    // A help line that says it in other words.
    table::Row& as_it_is(Field field) const {
        field.info.more = more;
        return out.emplace_back(table::Row{std::move(field)});
    }
};

}  // namespace fp8lab::live
