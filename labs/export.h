// Figures to files, with the lab's fields and provenance inside.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "labs/lab.h"

namespace fp8lab {

// One SVG and one CSV a figure: "<id>-<figure>.svg" and ".csv" in `folder`, which is created. Returns the
// paths. Throws Error{failed}.
std::vector<std::filesystem::path> export_figures(Lab& lab, const std::filesystem::path& folder);

// The lab's figures, each with lab, provenance, device and fields among its parameters.
std::vector<Figure> described_figures(Lab& lab);

// "L05_timeline_20261120-2312": of a figure at a local time, ISO 8601.
std::string export_stem(const LabInfo& info, std::string_view figure, std::string_view at);

// Where a person finds them: fp8lab in the documents folder.
std::filesystem::path export_folder();

}  // namespace fp8lab
