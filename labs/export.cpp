#include "labs/export.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/figure/csv.h"
#include "core/figure/svg.h"

namespace fp8lab {

std::vector<std::filesystem::path> export_figures(Lab& lab, const std::filesystem::path& folder) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem) throw Error(ErrorKind::failed, folder.string(), problem.message());
    std::vector<std::filesystem::path> paths;
    for (Figure& figure : lab.figures()) {
        figure.parameters.emplace_back("lab", lab.info().id);
        figure.parameters.emplace_back("provenance", to_string(lab.provenance()));
        for (const Field& field : lab.fields()) figure.parameters.emplace_back(field.info.name, field_text(field));
        const std::string stem = std::string(lab.info().id) + "-" + figure.id;
        write_file(paths.emplace_back(folder / (stem + ".svg")), to_svg(figure));
        write_file(paths.emplace_back(folder / (stem + ".csv")), to_csv(figure));
    }
    return paths;
}

}  // namespace fp8lab
