// How well what was typed fits a name: for lists that are searched while one types.
#pragma once

#include <string_view>

namespace fp8lab {

// 0: not at all. Each word of the query must be in the text: as the start of a word best, then anywhere in
// it, then with gaps ("dlscl" is in "delayed scaling") where these are allowed: a long text has most words
// somehow. Case does not count. An empty query fits everything alike.
int match_score(std::string_view query, std::string_view text, bool gaps = true);

}  // namespace fp8lab
