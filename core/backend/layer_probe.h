// Measures the products and casts of one linear layer on this GPU, for lab L9.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/backend/gemm_grid.h"
#include "core/scaling/recipe.h"

namespace fp8lab {

struct LayerProbe {
    int m = 8192, n = 16384, k = 4096;  // of x (m, k), w (n, k); any values: cuBLASLt is asked, not our rules
    std::string recipe = "delayed";     // or current, rowwise, block128
    FastAccum fast_accum = FastAccum::fprop;  // block128 has none
    int groups = 1;                           // a strided batch of that many products, m rows in each
    bool zeros = false;                       // operands that are 0 instead of random ones
    int repeats = 20;
};

// What is measured so far is kept when it is stopped: a product that has no time is absent from `points`.
struct LayerTimes {
    // The products fprop, dgrad and wgrad, in "bf16" and in the kind of the recipe (gemm_grid.h).
    std::vector<GridPoint> points;
    std::vector<GridCast> casts;  // x, w and dy of the recipe; none where FP8 refuses the shape of the tensor
    GridRoofs roofs;              // 8192^3 and a copy of 1 GiB, measured as the load before
    GridClocks clocks;            // 0: no sensors
    // Sentences for the screen: the GPU works for others too, or its clocks fell. Empty: none.
    std::vector<std::string> notices;
    bool whole = false;  // false: stopped before the end

    const GridPoint* point(std::string_view product, bool fp8) const;
    const GridCast* cast(std::string_view what) const;
};

// "block128", "row", "tensor" or "tensor-fast": what `product` of the probe is in FP8.
std::string kind_of(const LayerProbe& probe, std::string_view product);

// Called on the measuring thread after every round with what is there so far (medians of the samples until
// then) and the share that is done, 0 to 1. Returns false to stop.
using LayerProgress = std::function<bool(const LayerTimes& so_far, double done)>;

}  // namespace fp8lab
