#include "faulty.h"

#include <stdexcept>

#include "tests/unit/verify/faulty_files.h"

std::string write_faulty_file(const std::string& name, const std::filesystem::path& folder) {
    const faulty::Shape shape{.rows = 256, .cols = 256};
    for (const faulty::Case& each :
         faulty::cases_of(faulty::weights(1, shape), faulty::weights(2, shape), shape, 1))
        if (each.name == name) {
            faulty::write_case(folder, each, shape);
            return each.words;
        }
    throw std::out_of_range(name);
}
