// The numbers that a lesson's text states, so that a test can hold each of them to a computed value.
#pragma once

#include <set>
#include <string>

namespace fp8lab::test {

// Decimal numbers and hexadecimal codes that stand on their own: not the 4 of E4M3. Defined in lessons_test.cpp.
std::set<std::string> lesson_numbers(const std::string& lab);

}  // namespace fp8lab::test
