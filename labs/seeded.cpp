#include "labs/seeded.h"

#include <fmt/format.h>

#include <algorithm>

namespace fp8lab {

std::string seed_text(int seed) { return fmt::format(" (seed {})", seed); }

std::vector<Figure> of_seed(int seed, std::vector<Figure> figures, const std::vector<std::string_view>& ids) {
    for (Figure& figure : figures) {
        const bool drawn = ids.empty() || std::ranges::find(ids, figure.id) != ids.end();
        if (!drawn || figure.title.empty()) continue;
        const std::string named = figure.title + seed_text(seed);
        std::ranges::replace(figure.words, figure.title + ".", named + ".");
        figure.title = named;
    }
    return figures;
}

}  // namespace fp8lab
