// Frames of the window: how long one takes until its pixels are there, alone and beside a training.
#pragma once

#ifdef FP8LAB_GUI

#include <nlohmann/json.hpp>
#include <vector>

#include "app/window/window_loop.h"

namespace fp8lab::cli {

double frame_to_pixels_ms(WindowLoop& loop);

// Median and quartiles as of every timing, and "p99_ms", "largest_ms". `ms` is not empty.
nlohmann::json frames_to_json(std::vector<double> ms);

// Times frames of the screen of a lab that trains, alternately while it trains and while it is paused: `repeats` of
// each in each of seven rounds. A training that comes to its end begins again.
nlohmann::json time_frames_beside(WindowLoop& loop, Lab& lab, int repeats);

}  // namespace fp8lab::cli

#endif
