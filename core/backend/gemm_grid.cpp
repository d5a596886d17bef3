#include "core/backend/gemm_grid.h"

#include <algorithm>

#include "core/backend/layer_probe.h"

namespace fp8lab {
namespace {

template <class Point>
const Point* find_point(const std::vector<Point>& points, std::string_view product, int m, int n, int k,
                        std::string_view kind) {
    const auto found = std::ranges::find_if(points, [&](const Point& p) {
        return p.m == m && p.n == n && p.k == k && p.product == product && p.kind == kind;
    });
    return found == points.end() ? nullptr : &*found;
}

void raise(GridRoof& roof, const GridPoint& point) {
    if (point.ran() && point.tflops() > roof.tflops)
        roof = {point.tflops(), point.product, point.m, point.n, point.k};
}

}  // namespace

const GridPoint* GemmGrid::point(std::string_view product, int m, int n, int k, std::string_view kind) const {
    return find_point(points, product, m, n, k, kind);
}

const GridAlign* GemmGrid::aligned(std::string_view product, int m, int n, int k,
                                   std::string_view kind) const {
    return find_point(align, product, m, n, k, kind);
}

const GridCast* GemmGrid::cast(std::string_view what, std::string_view recipe, int m, int n, int k) const {
    const int rows = what == "w" ? n : m, cols = what == "dy" ? n : k;
    const auto found = std::ranges::find_if(casts, [&](const GridCast& c) {
        return c.rows == rows && c.cols == cols && c.what == what && c.recipe == recipe;
    });
    return found == casts.end() ? nullptr : &*found;
}

std::vector<int> GemmGrid::recorded_m(int n, int k) const {
    std::vector<int> out;
    for (const GridPoint& p : points)
        if (p.n == n && p.k == k && std::ranges::find(out, p.m) == out.end()) out.push_back(p.m);
    std::ranges::sort(out);
    return out;
}

std::vector<std::pair<int, int>> GemmGrid::recorded_layers() const {
    std::vector<std::pair<int, int>> out;
    for (const GridPoint& p : points)
        if (std::ranges::find(out, std::pair(p.n, p.k)) == out.end()) out.emplace_back(p.n, p.k);
    return out;
}

// The ceilings are 8192^3 fprop; a point of the grid may be faster.
GridRoofs roofs_of(const GemmGrid& grid) {
    GridRoofs roofs;
    const auto is_bf16 = [](std::string_view kind) { return kind == "bf16"; };
    for (const GridCeiling& c : grid.ceilings) {
        if (!c.ran()) continue;
        if (c.what == "copy") {
            roofs.memory_tb_s = std::max(roofs.memory_tb_s, kCopyMovedBytes / c.median_ms / 1e9);
            continue;
        }
        GridPoint point;
        static_cast<GridTime&>(point) = c;
        point.product = "fprop";
        point.m = point.n = point.k = kCeilingSize;
        raise(is_bf16(c.what) ? roofs.bf16 : roofs.fp8, point);
    }
    for (const GridPoint& point : grid.points) raise(is_bf16(point.kind) ? roofs.bf16 : roofs.fp8, point);
    return roofs;
}

const GridPoint* LayerTimes::point(std::string_view product, bool fp8) const {
    const auto found = std::ranges::find_if(
        points, [&](const GridPoint& p) { return p.product == product && (p.kind != "bf16") == fp8; });
    return found == points.end() ? nullptr : &*found;
}

const GridCast* LayerTimes::cast(std::string_view what) const {
    const auto found = std::ranges::find(casts, what, &GridCast::what);
    return found == casts.end() ? nullptr : &*found;
}

std::string kind_of(const LayerProbe& probe, std::string_view product) {
    if (probe.recipe == "block128") return "block128";
    if (probe.recipe == "rowwise") return "row";
    const bool fast =
        probe.fast_accum == FastAccum::all || (probe.fast_accum == FastAccum::fprop && product == "fprop");
    return fast ? "tensor-fast" : "tensor";
}

}  // namespace fp8lab
