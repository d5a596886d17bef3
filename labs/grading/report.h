// The report: predictions and results, evidence, explanations, figures and the machine, as one HTML file that
// loads nothing from a network and runs no script.
#pragma once

#include <functional>
#include <string>

#include "core/lesson/bundle.h"

namespace fp8lab {

// Repeats each evidence for its figures, and reports whether the values are the same on this machine. Numbers
// have 4 significant digits; the attribute `data-value` has the exact value. The submission is included as
// JSON under the id "submission". `told` hears how many are repeated. Throws input_error: assets are missing.
std::string report_html(const Bundle& submission,
                        const std::function<void(std::size_t done, std::size_t of)>& told = {});

}  // namespace fp8lab
