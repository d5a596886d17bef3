// The numbers that a lesson's text states, so that a test can hold each of them to a computed value.
#pragma once

#include <regex>
#include <set>
#include <string>

#include "core/files/files.h"

namespace fp8lab::test {

// Decimal numbers and hexadecimal codes that stand on their own: not the 4 of E4M3.
inline std::set<std::string> lesson_numbers(const std::string& lab) {
    const std::string text = read_text(std::string(FP8LAB_SOURCE) + "/assets/text/" + lab + ".md");
    const std::regex number(R"(\b(0x[0-9A-F]+|\d+(\.\d+)?)\b)");
    std::set<std::string> out;
    for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
        out.insert(at->str());
    return out;
}

}  // namespace fp8lab::test
