// A figure for who does not see it, or cannot point at it: as sentences and as a table. Both come from the
// same data as the picture.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/figure/figure.h"

namespace fp8lab {

// Title, axes with the ranges on show, then a sentence for each series: how many points, first and last,
// least and most with their places; and for each mark what it marks. Numbers as the window has them.
std::vector<std::string> to_words(const Figure& figure);

// The first `most` rows of to_csv(): numbers to 4 significant digits.
struct FigureTable {
    std::vector<std::string> header;             // "series", "x", "y"
    std::vector<std::vector<std::string>> rows;  // as wide as the header
    std::size_t total = 0;                       // rows that there are
};
FigureTable to_table(const Figure& figure, std::size_t most);

}  // namespace fp8lab
