#include "core/backend/grid_plan.h"

#include <algorithm>
#include <cmath>

#include "core/scaling/recipe_lists.h"

namespace fp8lab {
namespace {

constexpr long long kMostProduct = 1LL << 43;
constexpr int kOff = 4096;  // the size that alignment is asked around

template <class T>
void add_once(std::vector<T>& to, const T& value) {
    if (std::ranges::find(to, value) == to.end()) to.push_back(value);
}

}  // namespace

const std::vector<std::string_view>& grid_recipes() {
    static const std::vector<std::string_view> kAll = [] {
        std::vector<std::string_view> out;
        for (const ListedRecipe& listed : listed_recipes(RecipeList::gemm_grid)) out.push_back(listed.id);
        return out;
    }();
    return kAll;
}

std::vector<GridLayer> grid_layers() {
    constexpr std::array<std::array<int, 2>, 6> kLayers = {
        {{16384, 4096}, {3072, 768}, {4096, 1024}, {8192, 2048}, {4096, 4096}, {32768, 8192}}};
    std::vector<GridLayer> out;
    for (const auto& [n, k] : kLayers)
        for (int m = 1 << 4; m <= 1 << 15; m *= 2)
            if (static_cast<long long>(m) * n * k <= kMostProduct) out.push_back({m, n, k});
    return out;
}

std::vector<GridTensor> grid_tensors() {
    std::vector<GridTensor> out;
    for (const GridLayer& layer : grid_layers()) {
        add_once(out, {"x", layer.m, layer.k});
        add_once(out, {"w", layer.n, layer.k});
        add_once(out, {"dy", layer.m, layer.n});
    }
    return out;
}

std::vector<GridLayer> grid_alignments() {
    std::vector<GridLayer> out, padded;
    for (int which = 0; which < 3; ++which)
        for (const int off : {1, -1}) {
            std::array<int, 3> mnk = {kOff, kOff, kOff};
            mnk[static_cast<std::size_t>(which)] += off;
            out.push_back({mnk[0], mnk[1], mnk[2]});
            add_once(padded, {padded_to_16(mnk[0]), padded_to_16(mnk[1]), padded_to_16(mnk[2])});
        }
    out.insert(out.end(), padded.begin(), padded.end());
    return out;
}

std::vector<GridFused> grid_qkv() {
    std::vector<GridFused> out;
    for (const int d : {1024, 2048, 4096, 8192})
        for (const int m : {128, 512, 2048, 8192}) out.push_back({d, m});
    return out;
}

int grid_samples(int repeats, double ms) {
    constexpr double kLongMs = 8;
    constexpr int kFewest = 3;
    return ms > kLongMs ? std::max(std::min(repeats, kFewest), repeats * 3 / 5) : repeats;
}

int grid_launches(double ms) {
    constexpr double kSampleMs = 0.2, kShortestMs = 1e-3;
    return std::max(1, static_cast<int>(std::ceil(kSampleMs / std::max(ms, kShortestMs))));
}

}  // namespace fp8lab
