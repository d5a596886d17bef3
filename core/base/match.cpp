#include "core/base/match.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace fp8lab {
namespace {

constexpr int kGaps = 1, kInside = 4, kWordStart = 16,
              kWhole = 64;  // far enough apart for queries of a few words

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

int word_score(std::string_view word, std::string_view text, bool gaps) {
    if (word == text) return kWhole;
    int best = 0;
    for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const bool starts = at == 0 || !is_letter(text[at - 1]);
        const bool ends = at + word.size() == text.size() || !is_letter(text[at + word.size()]);
        best = std::max(best, !starts ? kInside : ends ? 2 * kWordStart : kWordStart);
    }
    if (best > 0 || !gaps || word.size() < 3) return best;  // two letters are somewhere in everything
    std::size_t at = 0;
    for (const char c : word) {
        at = text.find(c, at);
        if (at == std::string_view::npos) return 0;
        ++at;
    }
    return kGaps;
}

}  // namespace

std::string lower_case(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

int match_score(std::string_view query, std::string_view text, bool gaps) {
    const std::string needle = lower_case(query), hay = lower_case(text);
    std::string_view rest = needle;
    int score = 1;
    while (true) {
        const auto start = rest.find_first_not_of(' ');
        if (start == std::string_view::npos) return score;
        rest.remove_prefix(start);
        const auto end = std::min(rest.find(' '), rest.size());
        const int word = word_score(rest.substr(0, end), hay, gaps);
        if (word == 0) return 0;
        score += word;
        rest.remove_prefix(end);
    }
}

}  // namespace fp8lab
