// The pictures of L9. Every title is a sentence that is computed from the times.
#pragma once

#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "labs/speed/model_outcome.h"

namespace fp8lab::speed {

inline constexpr double kRoofsEnd = 8192;  // FLOP per byte at which the drawn roofs end; their names follow

Figure roofline_figure(const Outcome& outcome);                       // "roofline"
Figure sweep_figure(const Outcome& outcome);                          // "sweep"
Figure qkv_figure(const Outcome& outcome);                            // "qkv"
Figure align_figure(const Outcome& outcome);                          // "align": a map of three by three
Figure formats_figure(const Outcome& outcome);                        // "formats"
Figure step_figure(const Outcome& outcome, double bar_height = 0.4);  // "step"
Figure lower_figure(const Outcome& outcome);                          // the one of the four that `view` names
Figure thumbnail_figure(const Outcome& outcome);

// Sentences under a step: share and ratio, the formula with its numbers, the ceiling. Empty where Amdahl's law does
// not apply, or is hidden.
std::vector<std::string> amdahl_lines(const Outcome& outcome);

std::string missing_words(const Outcome& outcome);  // why there is no time of this layer; empty: there is one
std::string refusal_words(
    const Outcome& outcome);  // "K = 4097: cuBLASLt refuses 3 of 3 ..."; empty: none refused
std::string decision_words(
    const Outcome& outcome);  // the last line of the lesson, with this source's numbers

// "4096 -> 16384", K to N; "1.610", "0.0602" of ms; "1.92x".
std::string layer_text(const Layer& layer);
std::string ms_text(double ms);
std::string factor_text(double factor);
std::string step_name(const RecordedStep& step);  // "4096-16384-4096, batch 8192"
std::string cell_text(const AlignCell& cell);     // "0.190 ms", "refused (15)", "not recorded"

}  // namespace fp8lab::speed
