// A figure as sentences and as a table, for readers who cannot see it or cannot use a pointer. Both come from
// the same data as the picture.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/figure/figure.h"

namespace fp8lab {

// Title, axes with the ranges that are shown, then a sentence for each series (number of points, first, last,
// smallest and largest value with their x) and for each mark. Numbers are formatted as in the window.
std::vector<std::string> to_words(const Figure& figure);

// The first `most` rows of to_csv(): numbers to 4 significant digits.
struct FigureTable {
    std::vector<std::string> header;             // "series", "x", "y"
    std::vector<std::vector<std::string>> rows;  // as wide as the header
    std::size_t total = 0;                       // rows that there are
};
FigureTable to_table(const Figure& figure, std::size_t most);

}  // namespace fp8lab
