// Figures to files: one SVG and one CSV each, with the lab's fields and provenance inside.
#pragma once

#include <filesystem>
#include <vector>

#include "labs/lab.h"

namespace fp8lab {

// "<id>-<figure>.svg" and ".csv" in `folder`, which is created. Returns the paths. Throws Error{failed}.
std::vector<std::filesystem::path> export_figures(Lab& lab, const std::filesystem::path& folder);

}  // namespace fp8lab
