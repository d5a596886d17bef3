// Backend::measure_grid() and Backend::measure_layer() on the device (core/backend/backend.h).
#pragma once

#include "core/backend/gemm_grid.h"
#include "core/backend/grid_plan.h"
#include "core/backend/layer_probe.h"

namespace fp8lab::cuda {

GemmGrid measure_grid(const GridOptions& options, const GridProgress& progress);
LayerTimes measure_layer(const LayerProbe& probe, const LayerProgress& progress);

}  // namespace fp8lab::cuda
