// What a step costs on a GPU: numbers from ArmSnapshot::cost, which is there only where they were measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "labs/train/model_figures.h"
#include "labs/train/model_history.h"

namespace fp8lab::train {

bool has_costs(const History& history);  // of any arm

double tflops(const ArmCost& cost);  // 0 before the first time

// How many times as fast as the first arm: ratio of the medians; lo and hi from quartile to quartile.
struct Speedup {
    double ratio = 0, lo = 0, hi = 0;
};
std::optional<Speedup> speedup_of(const History& history, std::size_t arm);

// "FP8 is 1.67 times as fast as BF16"; empty without two times.
std::string speedup_sentence(const History& history, const std::vector<ArmLook>& looks);
// "1.65 to 1.69 from quartile to quartile. IQR 0.02 and 0.03 ms, 100 steps. Memory 4.1 and 3.8 GB."
std::string cost_details(const History& history);

// Figure "step": the parts of one step, an arm a bar.
Figure step_figure(const History& history, const std::vector<ArmLook>& looks);

}  // namespace fp8lab::train
