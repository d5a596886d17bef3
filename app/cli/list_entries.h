// The parts of `list` that print more than one line: lessons, terms of the glossary, claim cards.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fp8lab::cli {

struct ListEntry {
    std::string name, description;  // one line
    std::string text = {};          // in full, with a newline at its end; empty: the line is all
    nlohmann::json more = {};       // what --json has besides name and description
};

std::vector<ListEntry> lesson_entries();  // by the id of the lab
std::vector<ListEntry> term_entries();
std::vector<ListEntry> claim_entries();

}  // namespace fp8lab::cli
