// The parts of the grid: the measurements of a unit alternate.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/bench/layer_operands.h"

namespace fp8lab::cuda {

struct GridUnit {
    std::string section, what;      // "points", "16384x4096, M=8192, fprop"
    double cost = 0;                // seconds, roughly, for the progress
    std::function<void()> measure;  // writes to the grid; what was stopped half-way is left out
};

// What the units share. Lives longer than they do.
struct GridBench {
    GemmGrid& grid;
    const Lt& lt;
    cudaStream_t stream;
    int repeats;
    AfterRound after;
    OperandPool pool{stream, false};
};

// The units in the order of the grid.
std::vector<GridUnit> grid_units(GridBench& bench);

// Each adds its own (grid_formats.cpp).
void add_formats(GridBench& bench, std::vector<GridUnit>& units);
void add_zeros(GridBench& bench, std::vector<GridUnit>& units);
void add_host_copy(GridBench& bench, std::vector<GridUnit>& units);

}  // namespace fp8lab::cuda
