// The report: predictions against results, evidence, explanations, figures and the machine, as one HTML file
// that asks nothing of a network and runs no script.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/folders.h"
#include "core/lesson/bundle.h"

namespace fp8lab {

// Each evidence is repeated, which gives the figures and says whether the values are the same here. Shown
// numbers have 4 significant digits; `data-value` beside them is exact. The submission itself is inside, as
// JSON under the id "submission". Throws input_error: assets are missing.
std::string report_html(const Bundle& submission);

// make_submission() and report_html(), to a file. Throws as they do, and Error{failed}.
void write_report(const ProfileFolders& folders, std::string student,
                  const std::filesystem::path& file);

}  // namespace fp8lab
