// The ticks of an axis. Every tick is an integer times a step, so rounding errors do not add up.
#pragma once

#include <string>
#include <vector>

#include "core/figure/axis.h"

namespace fp8lab {

struct Tick {
    double value = 0;
    std::string label;  // empty: a minor tick
};

// Linear: steps of 1, 2 or 5 times a power of ten. log10: decades, with 1-3 or 1-2-5 where there are few.
// log2: powers ("2^-6"; plain numbers where all are from 1 to 65536). symlog: 0 and +-threshold times powers
// of ten. A logarithmic scale with fewer than two labels in view gets linear steps. At most `most` labels (2
// to 16) and 64 ticks; minor ticks only where they are at least 6 px apart.
std::vector<Tick> make_ticks(const Axis& axis, int most);

}  // namespace fp8lab
