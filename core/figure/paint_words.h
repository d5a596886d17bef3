// The rectangle of the words of a mark, before they are painted.
#pragma once

#include "core/figure/paint.h"

namespace fp8lab {

// Of text marks and brackets, logical px; empty for other shapes and where nothing is painted.
Rect words_area(const Series& series, const FigureLayout& layout, Canvas& canvas);

}  // namespace fp8lab
