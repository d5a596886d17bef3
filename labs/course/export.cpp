#include "labs/course/export.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/figure/csv.h"
#include "core/figure/svg.h"
#include "core/files/documents.h"
#include "core/files/files.h"

namespace fp8lab {

std::vector<Figure> described_figures(Lab& lab) {
    std::vector<Figure> figures = lab.figures();
    for (Figure& figure : figures) {
        figure.parameters.emplace_back("lab", lab.info().id);
        figure.parameters.emplace_back("version", FP8LAB_VERSION);
        figure.parameters.emplace_back("provenance", to_string(lab.provenance()));
        if (!lab.device().empty()) figure.parameters.emplace_back("device", lab.device());
        for (const Field& field : lab.fields())
            figure.parameters.emplace_back(field.info.name, field_text(field));
    }
    return figures;
}

std::vector<std::filesystem::path> export_figures(Lab& lab, const std::filesystem::path& folder) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem) throw Error(ErrorKind::failed, folder.string(), problem.message());
    std::vector<std::filesystem::path> paths;
    for (const Figure& figure : described_figures(lab)) {
        const std::string stem = std::string(lab.info().id) + "-" + figure.id;
        write_file(paths.emplace_back(folder / (stem + ".svg")), to_svg(figure));
        write_file(paths.emplace_back(folder / (stem + ".csv")), to_csv(figure));
    }
    if (const std::string table = lab.table_csv(); !table.empty())
        write_file(paths.emplace_back(folder / (std::string(lab.info().id) + "-table.csv")), table);
    return paths;
}

std::string export_stem(const LabInfo& info, std::string_view figure, std::string_view at) {
    std::string stamp;
    for (const char c : at.substr(0, 16)) {
        if (c >= '0' && c <= '9') stamp += c;
        if (c == 'T') stamp += '-';
    }
    const std::string lab = info.number > 0 ? fmt::format("L{:02}", info.number) : std::string(info.id);
    return fmt::format("{}_{}_{}", lab, figure, stamp);
}

std::filesystem::path export_folder() { return documents_folder() / "fp8lab"; }

}  // namespace fp8lab
