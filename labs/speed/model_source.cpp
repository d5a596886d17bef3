#include "labs/speed/model_source.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace fp8lab::speed {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();

template <class Point>
std::optional<GridPoint> copy(const Point* point) {
    return point ? std::optional<GridPoint>(*point) : std::nullopt;
}

bool same_layer(const LayerProbe& a, const LayerProbe& b) {
    return a.m == b.m && a.n == b.n && a.k == b.k && a.recipe == b.recipe && a.fast_accum == b.fast_accum &&
           a.groups == b.groups && a.zeros == b.zeros;
}

std::optional<GridPoint> zeros_point(const GemmGrid& grid, std::string_view product, const LayerProbe& probe,
                                     bool fp8) {
    for (const GridZeros& row : grid.zeros) {
        const bool same = row.n == probe.m && row.n == probe.n && row.n == probe.k;
        if (!same || product != "fprop" || (row.kind == "bf16") == fp8) continue;
        GridPoint out;
        static_cast<GridTime&>(out) = row;
        out.product = product, out.kind = row.kind, out.out = "bf16";
        out.m = out.n = out.k = row.n;
        return out;
    }
    return std::nullopt;
}

std::optional<GridPoint> group_point(const GemmGrid& grid, std::string_view product, const LayerProbe& probe,
                                     bool fp8) {
    for (const GridGroup& row : grid.groups)
        if (row.groups == probe.groups && row.product == product && row.m == probe.m && row.n == probe.n &&
            row.k == probe.k && (row.kind == "bf16") != fp8)
            return row;
    return std::nullopt;
}

// The recording's fp8 rows are tensor-fast in fprop and tensor in dgrad and wgrad: those stand for these kinds only.
bool fp8_stands_for(std::string_view product, std::string_view kind) {
    return kind == (product == "fprop" ? "tensor-fast" : "tensor");
}

std::optional<GridPoint> recorded_point(const GemmGrid& grid, std::string_view product,
                                        const LayerProbe& probe, bool fp8) {
    const std::string kind = fp8 ? kind_of(probe, product) : "bf16";
    if (kind == "row" && probe.fast_accum != FastAccum::fprop &&
        (product == "fprop") == (probe.fast_accum == FastAccum::none))
        return std::nullopt;  // rows are recorded with fast accumulation in fprop only
    const bool fits = !fp8 || fp8_stands_for(product, kind);
    if (probe.zeros) return fits ? zeros_point(grid, product, probe, fp8) : std::nullopt;
    if (probe.groups > 1) return fits ? group_point(grid, product, probe, fp8) : std::nullopt;
    if (const auto point = copy(grid.point(product, probe.m, probe.n, probe.k, kind))) return point;
    return fits ? copy(grid.aligned(product, probe.m, probe.n, probe.k, fp8 ? "fp8" : "bf16")) : std::nullopt;
}

std::optional<GridPoint> find_point(const Source& source, std::string_view product, const LayerProbe& probe,
                                    bool fp8) {
    if (const GemmGrid* grid = source.grid()) return recorded_point(*grid, product, probe, fp8);
    const Measured* measured = source.live ? source.live->find(probe) : nullptr;
    return measured ? copy(measured->times.point(product, fp8)) : std::nullopt;
}

std::optional<GridCast> find_cast(const Source& source, std::string_view what, const LayerProbe& probe) {
    const GridCast* cast = nullptr;
    if (probe.groups > 1 || probe.zeros) return std::nullopt;
    if (const GemmGrid* grid = source.grid()) {
        cast = grid->cast(what, probe.recipe, probe.m, probe.n, probe.k);
    } else if (const Measured* measured = source.live ? source.live->find(probe) : nullptr) {
        cast = measured->times.cast(what);
    }
    return cast && cast->ran() ? std::optional(*cast) : std::nullopt;
}

// The kinds that these settings use, over the three products.
std::set<std::string> kinds_in_use(const Params& params) {
    std::set<std::string> out;
    for (const std::string_view product : kProducts)
        out.insert(kind_of(probe_of(params, params.layer()), product));
    return out;
}

class Best {
  public:
    explicit Best(std::set<std::string> kinds) : kinds_(std::move(kinds)) {}
    // "fp8" is both tensor kinds, see gemm_grid.h; counted where one of them is in use.
    void take(const std::string& kind, double flop, const GridTime& time) {
        if (!time.ran()) return;
        const double tflops = flop / time.median_ms / 1e9;
        if (kind == "bf16") bf16 = std::fmax(bf16, tflops);
        const bool used = kinds_.contains(kind) || (kind == "fp8" && kinds_.contains("tensor")) ||
                          (kind == "fp8-fast" && kinds_.contains("tensor-fast"));
        if (used) fp8 = std::fmax(fp8, tflops);
    }
    double bf16 = kNoTime, fp8 = kNoTime;

  private:
    std::set<std::string> kinds_;
};

void take_grid(Best& best, const GemmGrid& grid) {
    for (const GridPoint& point : grid.points) best.take(point.kind, point.flop(), point);
    for (const GridFormat& row : grid.formats) best.take(row.kind, 2.0 * row.n * row.n * row.n, row);
    for (const GridAlign& row : grid.align)
        best.take(row.kind == "fp8" && row.product == "fprop" ? "fp8-fast" : row.kind, row.flop(), row);
    for (const GridGroup& row : grid.groups)
        best.take(row.kind == "fp8" && row.product == "fprop" ? "fp8-fast" : row.kind,
                  row.groups * row.flop(), row);
    constexpr double kEdge = 8192;  // of the ceilings
    for (const GridCeiling& row : grid.ceilings) best.take(row.what, 2 * kEdge * kEdge * kEdge, row);
}

}  // namespace

const Measured* LiveTimes::find(const LayerProbe& probe) const {
    const auto found = std::ranges::find_if(
        layers, [&](const Measured& measured) { return same_layer(measured.probe, probe); });
    return found == layers.end() ? nullptr : &*found;
}

void LiveTimes::take(Measured measured) {
    const auto found = std::ranges::find_if(
        layers, [&](const Measured& one) { return same_layer(one.probe, measured.probe); });
    if (found == layers.end())
        layers.push_back(std::move(measured));
    else
        *found = std::move(measured);
}

const std::vector<RecordedStep>& Source::steps() const {
    static const std::vector<RecordedStep> kNone;
    return recording ? recording->steps : live ? live->steps : kNone;
}

std::string Source::gpu() const { return recording ? recording->gpu : live ? live->device : ""; }

LayerRows rows_of(const Source& source, const Params& params, const Layer& layer) {
    const LayerProbe probe = probe_of(params, layer);
    LayerRows out;
    for (std::size_t i = 0; i < kProducts.size(); ++i) {
        out.bf16.at(i) = find_point(source, kProducts.at(i), probe, false);
        out.fp8.at(i) = find_point(source, kProducts.at(i), probe, true);
    }
    out.x = find_cast(source, "x", probe);
    out.w = find_cast(source, "w", probe);
    return out;
}

LayerRows padded_rows_of(const Source& source, const Params& params, const Layer& layer) {
    LayerRows out = rows_of(source, params, layer);
    if (padded(layer) == layer) return out;
    LayerRows wide = rows_of(source, params, padded(layer));
    out.fp8 = std::move(wide.fp8);
    out.x.reset(), out.w.reset();
    return out;
}

std::vector<int> recorded_m(const Source& source, const Params& params) {
    if (const GemmGrid* grid = source.grid()) return grid->recorded_m(params.n, params.k);
    std::set<int> out;
    if (source.live)
        for (const Measured& measured : source.live->layers)
            if (same_layer(measured.probe, probe_of(params, {measured.probe.m, params.n, params.k})))
                out.insert(measured.probe.m);
    return {out.begin(), out.end()};
}

std::vector<std::pair<int, int>> recorded_layers(const Source& source) {
    return source.grid() ? source.grid()->recorded_layers() : std::vector<std::pair<int, int>>{};
}

Roofs roofs_of(const Source& source, const Params& params) {
    Best best(kinds_in_use(params));
    double memory = kNoTime;
    if (const GemmGrid* grid = source.grid()) {
        take_grid(best, *grid);
        memory = grid->roofs.memory_tb_s;
    } else if (source.live) {
        for (const Measured& measured : source.live->layers) {
            if (measured.probe.zeros) continue;
            for (const GridPoint& point : measured.times.points)
                best.take(point.kind, measured.probe.groups * point.flop(), point);
            const GridRoofs& roofs = measured.times.roofs;
            best.bf16 = std::fmax(best.bf16, roofs.bf16.tflops);
            best.fp8 = std::fmax(best.fp8, roofs.fp8.tflops);
            memory = std::fmax(memory, roofs.memory_tb_s);
        }
    }
    return {best.bf16, best.fp8, memory > 0 ? memory : kNoTime};
}

}  // namespace fp8lab::speed
