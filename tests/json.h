// JSON in tests. What reads and writes it is compiled once, in json.cpp: in each test it would take half of the time.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

nlohmann::json parsed(const std::string& text);  // throws nlohmann::json::parse_error

// How a check that fails shows a value.
template <>
struct doctest::StringMaker<nlohmann::json> {
    static String convert(const nlohmann::json& value);
};
