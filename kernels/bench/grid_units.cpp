#include "kernels/bench/grid_units.h"

#include <fmt/format.h>

#include <algorithm>

namespace fp8lab::cuda {
namespace {

constexpr double kUnitSeconds = 0.05;        // of heuristics and of short launches
constexpr double kSecondsPerFlop = 2.4e-13;  // of a contest and of all samples in all kinds, on an H200

double flop_of(const GridLayer& l) { return 2.0 * l.m * l.n * l.k; }

// Those that have a time or a refusal.
template <class T>
void append_measured(std::vector<T>& to, const std::vector<T>& from) {
    std::ranges::copy_if(from, std::back_inserter(to),
                         [](const T& t) { return t.status != 0 || t.median_ms > 0; });
}

// Times the products of one layer in some kinds, alternately. `Point` is GridPoint or derived from it.
template <class Point, class Kinds>
std::vector<Point> products_in_turns(GridBench& bench, std::string_view product, const GridLayer& layer,
                                     const Kinds& kinds, int groups, bool wants_graph) {
    std::vector<GemmSpec> specs;
    for (const std::string_view kind : kinds) specs.push_back(layer_product(product, layer, kind));
    for (const GemmSpec& spec : specs)
        bench.pool.of(spec, groups);  // all grow before the first address counts
    std::vector<Point> points(specs.size());
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < specs.size(); ++i) {
        Point& point = points[i];
        point.product = product;
        point.kind = kinds[i];
        point.out = specs[i].d == Element::f32 ? "f32" : "bf16";
        point.m = layer.m;
        point.n = layer.n;
        point.k = layer.k;
        Entry entry;
        entry.time = &point;
        entry.spec = lt_spec(specs[i], groups);
        entry.on = bench.pool.of(specs[i], groups);
        entry.wants_graph = wants_graph;
        entries.push_back(entry);
    }
    time_entries(entries, bench.lt, bench.repeats, bench.stream, bench.after);
    return points;
}

void add_points(GridBench& bench, std::vector<GridUnit>& units) {
    for (const GridLayer& layer : grid_layers())
        for (const std::string_view product : kGridProducts)
            units.push_back({"points", fmt::format("{}x{}, M={}, {}", layer.n, layer.k, layer.m, product),
                             kUnitSeconds + kSecondsPerFlop * flop_of(layer), [&bench, layer, product] {
                                 append_measured(bench.grid.points,
                                                 products_in_turns<GridPoint>(bench, product, layer,
                                                                              kGridKinds, 1, true));
                             }});
}

void add_casts(GridBench& bench, std::vector<GridUnit>& units) {
    for (const GridTensor& tensor : grid_tensors())
        units.push_back({"casts", fmt::format("{} of {}x{}", tensor.what, tensor.rows, tensor.cols),
                         kUnitSeconds, [&bench, tensor] {
                             std::vector<GridCast> casts;
                             time_casts_of(tensor, grid_recipes(), bench.pool, bench.repeats, bench.stream,
                                           bench.after, casts);
                             append_measured(bench.grid.casts, casts);
                         }});
}

void add_align(GridBench& bench, std::vector<GridUnit>& units) {
    for (const GridLayer& layer : grid_alignments())
        for (const std::string_view product : kGridProducts)
            units.push_back({"align", fmt::format("{}x{}x{}, {}", layer.m, layer.n, layer.k, product),
                             2 * kUnitSeconds, [&bench, layer, product] {
                                 append_measured(bench.grid.align,
                                                 products_in_turns<GridAlign>(bench, product, layer,
                                                                              kGridTwoKinds, 1, false));
                             }});
}

// Three weights behind each other, and the outputs too; the one product reads the same weights as (3d, d).
void measure_qkv(GridBench& bench, const GridFused& fused) {
    const auto [d, m] = fused;
    constexpr int kParts = 3;
    std::vector<GridQkv> out;
    std::vector<Entry> entries;
    out.reserve(kGridTwoKinds.size());  // entries point into it
    for (const std::string_view kind : kGridTwoKinds)
        bench.pool.of(layer_product("fprop", {m, kParts * d, d}, kind));
    for (const std::string_view kind : kGridTwoKinds) {
        const GemmSpec one = layer_product("fprop", {m, kParts * d, d}, kind),
                       part = layer_product("fprop", {m, d, d}, kind);
        GridQkv& qkv = out.emplace_back();
        qkv.d = d;
        qkv.m = m;
        qkv.kind = kind;
        Entry whole;
        whole.time = &qkv.one;
        whole.spec = lt_spec(one);
        whole.on = bench.pool.of(one);
        Entry three = whole;
        three.time = &qkv.three;
        three.spec = lt_spec(part);
        three.count = kParts;
        three.b_stride = matrix_elements(d, d) * static_cast<std::size_t>(bytes_of(one.b));
        three.d_stride = matrix_elements(m, d) * static_cast<std::size_t>(bytes_of(one.d));
        entries.push_back(three);
        entries.push_back(whole);
    }
    for (Entry& entry : entries) entry.wants_graph = true;
    time_entries(entries, bench.lt, bench.repeats, bench.stream, bench.after);
    for (const GridQkv& qkv : out)
        if ((qkv.three.ran() || qkv.three.status != 0) && (qkv.one.ran() || qkv.one.status != 0))
            bench.grid.qkv.push_back(qkv);
}

void add_qkv(GridBench& bench, std::vector<GridUnit>& units) {
    for (const GridFused& fused : grid_qkv())
        units.push_back({"qkv", fmt::format("d={}, M={}", fused.d, fused.m), 2 * kUnitSeconds,
                         [&bench, fused] { measure_qkv(bench, fused); }});
}

void add_groups(GridBench& bench, std::vector<GridUnit>& units) {
    for (const int groups : kGridGroups)
        for (const std::string_view product : kGridProducts)
            units.push_back({"groups", fmt::format("{} groups, {}", groups, product), 2 * kUnitSeconds,
                             [&bench, groups, product] {
                                 auto points = products_in_turns<GridGroup>(
                                     bench, product,
                                     {kGridGroupRows / groups, kGridGroupWidth, kGridGroupWidth},
                                     kGridTwoKinds, groups, false);
                                 for (GridGroup& point : points) point.groups = groups;
                                 append_measured(bench.grid.groups, points);
                             }});
}

}  // namespace

std::vector<GridUnit> grid_units(GridBench& bench) {
    std::vector<GridUnit> units;
    add_points(bench, units);
    add_casts(bench, units);
    add_align(bench, units);
    add_qkv(bench, units);
    add_formats(bench, units);
    add_zeros(bench, units);
    add_host_copy(bench, units);
    add_groups(bench, units);
    return units;
}

}  // namespace fp8lab::cuda
