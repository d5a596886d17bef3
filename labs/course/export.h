// Writes figures to files together with the lab's fields and provenance.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "labs/lab.h"

namespace fp8lab {

// One SVG and one CSV per figure: "<id>-<figure>.svg" and ".csv" in `folder`, which is created, and "<id>-table.csv"
// of a lab with a table. Returns the paths. Throws Error{failed}.
std::vector<std::filesystem::path> export_figures(Lab& lab, const std::filesystem::path& folder);

// The lab's figures, each with lab, provenance, device and fields among its parameters.
std::vector<Figure> described_figures(Lab& lab);

// "L05_timeline_20261120-2312" for a figure and a local time (ISO 8601).
std::string export_stem(const LabInfo& info, std::string_view figure, std::string_view at);

// The default folder of exports: fp8lab in the documents folder.
std::filesystem::path export_folder();

}  // namespace fp8lab
