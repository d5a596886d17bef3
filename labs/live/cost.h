// What a step costs on a GPU: numbers from ArmSnapshot::cost, which is there only where they were measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "labs/live/looks.h"

namespace fp8lab::live {

bool has_costs(const History& history);  // of any arm

std::string step_text(double ms);    // of a step's time, everywhere the same: "0.058", "7.50", "140"
double tflops(const ArmCost& cost);  // 0 before the first time

// How many times as fast as the first arm: ratio of the medians; lo and hi from quartile to quartile.
struct Speedup {
    double ratio = 0, lo = 0, hi = 0;
};
std::optional<Speedup> speedup_of(const History& history, std::size_t arm);

// "FP8 is 1.67 times as fast as BF16"; empty without two times.
std::string speedup_sentence(const History& history, const std::vector<ArmLook>& looks);
// The same with its spread: "...: 1.65 to 1.69 from quartile to quartile, 64 steps."
std::string speedup_details(const History& history, const std::vector<ArmLook>& looks);

// Figure "step": the parts of one step, one bar per arm. `low`: for a place of little height, without axis and
// shares; so are more than two bars.
Figure step_figure(const History& history, const std::vector<ArmLook>& looks, bool low = false);

}  // namespace fp8lab::live
