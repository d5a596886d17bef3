// A headline that tells numbers of one random draw names the draw: "RHT costs NVFP4 1.1 dB (seed 1)". Another seed may
// give another number; what holds for every seed needs no name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/figure/figure.h"

namespace fp8lab {

// " (seed 7)": what of_seed() adds.
std::string seed_text(int seed);

// The figures, the seed named in their titles, also where Figure::words repeat a title. A figure without a title has
// none to add to. `ids`: those that tell of the draw; empty: all.
std::vector<Figure> of_seed(int seed, std::vector<Figure> figures,
                            const std::vector<std::string_view>& ids = {});

}  // namespace fp8lab
