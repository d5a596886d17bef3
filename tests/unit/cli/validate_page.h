// What holds for every page of `validate --report`.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/json.h"

using nlohmann::json;

inline void add_numbers(const json& value, std::set<double>& out) {
    if (value.is_number()) out.insert(value.get<double>());
    if (value.is_structured())
        for (const json& each : value) add_numbers(each, out);
}

inline std::vector<double> numbers_of_page(const std::string& page) {
    std::vector<double> out;
    const std::string mark = "data-value=\"";
    for (std::size_t at = 0; (at = page.find(mark, at)) != std::string::npos; at += mark.size())
        out.push_back(std::strtod(page.c_str() + at + mark.size(), nullptr));
    return out;
}

// Nothing that a browser would fetch or run.
inline void check_loads_nothing(const std::string& page) {
    for (const char* part : {"http:", "https:", "<script", "<link", "<img", "<iframe",
                             " src=", " href=", "url(", "@import", "javascript:"}) {
        CAPTURE(part);
        CHECK(page.find(part) == std::string::npos);
    }
    CHECK(page.find("default-src 'none'") != std::string::npos);
    CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK(page.ends_with("</html>\n"));
}

inline void check_numbers(const std::string& page, const json& report) {
    std::set<double> known;
    add_numbers(report, known);
    const std::vector<double> shown = numbers_of_page(page);
    if (report["passed"].get<bool>())
        CHECK(page.find("All " + std::to_string(report["checks"].size()) + " of them passed.") !=
              std::string::npos);
    for (const double number : shown) {
        CAPTURE(number);
        CHECK(known.contains(number));
    }
    for (const json& arm : report["recipes"]["arms"])
        for (const char* member : {"first_loss", "tail_loss", "gap_pct"})
            if (arm[member].is_number()) CHECK(std::ranges::count(shown, arm[member].get<double>()) > 0);
}
