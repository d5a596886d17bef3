// The report: predictions and results, evidence, explanations, figures and the machine, as one HTML file that
// loads nothing from a network and runs no script.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/files/folders.h"
#include "core/lesson/bundle.h"

namespace fp8lab {

// Repeats each evidence for its figures, and reports whether the values are the same on this machine. Numbers
// have 4 significant digits; the attribute `data-value` has the exact value. The submission is included as
// JSON under the id "submission". `told` hears how many are repeated. Throws input_error: assets are missing.
std::string report_html(const Bundle& submission,
                        const std::function<void(std::size_t done, std::size_t of)>& told = {});

// make_submission() and report_html(), to a file. Throws as they do, and Error{failed}.
void write_report(const ProfileFolders& folders, std::string student, const std::filesystem::path& file);

}  // namespace fp8lab
