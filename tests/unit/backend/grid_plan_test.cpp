#include "core/backend/grid_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>

using namespace fp8lab;

TEST_CASE("the grid has 72 layers, 1080 plans, and no product above 2^43") {
    const auto layers = grid_layers();
    CHECK(layers.size() == 72);
    CHECK(layers.size() * kGridProducts.size() * kGridKinds.size() == 1080);
    std::set<std::tuple<int, int, int>> once;
    for (const GridLayer& layer : layers) {
        CHECK(static_cast<long long>(layer.m) * layer.n * layer.k <= 1LL << 43);
        for (const int size : {layer.m, layer.n, layer.k}) CHECK(size % 16 == 0);
        once.emplace(layer.m, layer.n, layer.k);
    }
    CHECK(once.size() == layers.size());
    // What the time limit cuts first is the largest layer, and M rises.
    CHECK(layers.front() == GridLayer{16, 16384, 4096});
    CHECK(layers.back() == GridLayer{32768, 32768, 8192});
}

TEST_CASE("every tensor of every layer is cast, and once") {
    const auto tensors = grid_tensors();
    for (const GridLayer& layer : grid_layers())
        for (const GridTensor& tensor : {GridTensor{"x", layer.m, layer.k}, GridTensor{"w", layer.n, layer.k},
                                         GridTensor{"dy", layer.m, layer.n}})
            CHECK(std::ranges::count(tensors, tensor) == 1);
    CHECK(std::ranges::count(tensors, std::string_view("w"), &GridTensor::what) == 6);
}

TEST_CASE("alignment is asked around 4096, and of what each case is padded to") {
    const auto all = grid_alignments();
    int off = 0;
    for (const GridLayer& layer : all) {
        int odd = 0;
        for (const int size : {layer.m, layer.n, layer.k}) odd += size % 16 != 0;
        CHECK(odd <= 1);
        off += odd;
        const GridLayer padded = {padded_to_16(layer.m), padded_to_16(layer.n), padded_to_16(layer.k)};
        CHECK(std::ranges::count(all, padded) == 1);
    }
    CHECK(off == 6);
    CHECK(padded_to_16(4097) == 4112);
    CHECK(padded_to_16(4095) == 4096);
    CHECK(padded_to_16(16) == 16);
    CHECK(padded_to_16(1) == 16);
}

TEST_CASE("a sample has at least 0.2 ms of launches, long products have fewer samples") {
    CHECK(grid_launches(0.007) * 0.007 >= 0.2);
    CHECK(grid_launches(0.2) == 1);
    CHECK(grid_launches(0.19) == 2);
    CHECK(grid_launches(25) == 1);
    CHECK(grid_launches(0) <= 1000);  // a time that could not be resolved
    CHECK(grid_samples(20, 1) == 20);
    CHECK(grid_samples(20, 8.1) == 12);
    CHECK(grid_samples(3, 100) == 3);
}
