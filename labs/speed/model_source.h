// Where the times of L9 come from: a recording of `bench gemm --grid`, or what was measured on this GPU.
// Nothing is estimated: a time that is in neither is absent.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/datasheet.h"
#include "core/backend/recording.h"
#include "labs/speed/model_params.h"

namespace fp8lab::speed {

// One layer that was measured on this GPU.
struct Measured {
    LayerProbe probe;
    LayerTimes times;
};

// What was measured on this GPU since the program started.
struct LiveTimes {
    std::string device;  // empty: nothing yet
    std::deque<Measured> layers;
    std::vector<RecordedStep> steps;
    const Measured* find(const LayerProbe& probe) const;  // null: not measured
    void take(Measured measured);                         // replaces an older one of the same layer
};

// The chosen source. Points into the recordings or the live times, which outlive it; both null: there is none.
struct Source {
    const Recording* recording = nullptr;
    const LiveTimes* live = nullptr;
    bool recorded() const { return recording != nullptr; }
    const GemmGrid* grid() const { return recording && recording->grid ? &*recording->grid : nullptr; }
    const std::vector<RecordedStep>& steps() const;
    std::string gpu() const;  // "NVIDIA H200"; empty: there is none
};

// The three products of a layer, in the order of kProducts, and its casts. A product without a time is empty; one
// that was refused has its status.
struct LayerRows {
    std::array<std::optional<GridPoint>, 3> bf16, fp8;
    std::optional<GridCast> x, w;  // of the recipe
};
LayerRows rows_of(const Source& source, const Params& params, const Layer& layer);
// The same with FP8 products of the layer padded to multiples of 16. The casts of a padded layer are not known.
LayerRows padded_rows_of(const Source& source, const Params& params, const Layer& layer);

// All M with times at this N and K, ascending; all (N, K) with times.
std::vector<int> recorded_m(const Source& source, const Params& params);
std::vector<std::pair<int, int>> recorded_layers(const Source& source);

// The best that this source has: TFLOP/s of BF16 and of the FP8 kinds that `params` uses, on random data, and
// the copy's TB/s. NaN where nothing was measured.
struct Roofs {
    double bf16 = 0, fp8 = 0, memory = 0;
    double ridge_bf16() const { return bf16 / memory; }  // FLOP per byte
    double ridge_fp8() const { return fp8 / memory; }
};
Roofs roofs_of(const Source& source, const Params& params);

}  // namespace fp8lab::speed
