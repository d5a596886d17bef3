// A figure's numbers in full resolution: one row per sample, also of what is hidden or outside the zoom.
//   # figure: loss              parameters first, one "# name: value" line each
//   series,x,y                  x_hi (edge) for bars, y_hi for bands, value for heatmaps (x: column, y: row)
//   FP8,0,1.25
// Numbers are the shortest decimals that read back to the same double; nan, inf, -inf as words.
#pragma once

#include <string>

#include "core/figure/figure.h"

namespace fp8lab {

std::string to_csv(const Figure& figure);

// A cell of a CSV file: in quotes, as RFC 4180 has them, where it has a comma or a quote, or starts as a comment does.
std::string csv_cell(std::string text);

}  // namespace fp8lab
