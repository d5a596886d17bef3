// Names in any case, and how well a query matches one, for lists that are searched during typing.
#pragma once

#include <string>
#include <string_view>

namespace fp8lab {

// The text with the letters A to Z as a to z; other bytes, also those of UTF-8, stay.
std::string lower_case(std::string_view text);

// 0: no match. Each word of the query must be in the text. The start of a word scores best, then any place,
// then with gaps ("dlscl" is in "delayed scaling") where gaps are allowed; in long texts they would match
// nearly everything. Case is ignored. An empty query matches every text equally.
int match_score(std::string_view query, std::string_view text, bool gaps = true);

}  // namespace fp8lab
