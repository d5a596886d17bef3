// What a second scan of the same files takes from the first, and what the tables show of an earlier state.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/inspect/compare.h"
#include "core/inspect/table.h"
#include "core/tensors/safetensors.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

SafeTensors made_file(unsigned seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    SafeTensors file;
    for (const char* name : {"blocks.0.w", "blocks.1.w", "grad.blocks.0.w"}) {
        SafeTensor tensor{{300, 200}, std::vector<float>(60'000)};
        for (float& v : tensor.values) v = std::exp(4 * normal(random));
        file.tensors[name] = tensor;
    }
    return file;
}

std::shared_ptr<const TensorStore> open(const Scratch& scratch, const std::string& name = "m.safetensors") {
    return std::make_shared<TensorStore>(scratch.path / name);
}

ScanSpec spec_with(const std::shared_ptr<ScanCache>& cache, MxRule rule = MxRule::up) {
    ScanSpec spec{.recipes = scan_recipes(rule)};
    spec.cache = cache;
    return spec;
}

Scan run(Scan scan) {
    while (scan.step()) {
    }
    return scan;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void check_same(const Scan& a, const Scan& b) {
    REQUIRE(a.rows().size() == b.rows().size());
    for (std::size_t i = 0; i < a.rows().size(); ++i) {
        const ScanRow &one = a.rows()[i], &other = b.rows()[i];
        CHECK(one.summary.amax == other.summary.amax);
        CHECK(one.summary.histogram.counts == other.summary.histogram.counts);
        REQUIRE(one.outcomes.size() == other.outcomes.size());
        for (std::size_t r = 0; r < one.outcomes.size(); ++r) {
            CAPTURE(a.spec().recipes[r].id);
            CHECK(same(one.outcomes[r].sqnr_db, other.outcomes[r].sqnr_db));
            CHECK(same(one.outcomes[r].underflow_pct, other.outcomes[r].underflow_pct));
            CHECK(same(one.outcomes[r].worst_row_db, other.outcomes[r].worst_row_db));
            CHECK(one.outcomes[r].bits == other.outcomes[r].bits);
        }
    }
}

// A file that is read after it was changed is refused, so that nothing of it can have been read.
void spoil(const Scratch& scratch) { std::ofstream(scratch / "m.safetensors", std::ios::app) << "x"; }

}  // namespace

TEST_CASE("a second scan of the same file has everything at once and reads nothing") {
    const Scratch scratch;
    write_file(scratch.path / "m.safetensors", to_safetensors(made_file()));
    const auto cache = std::make_shared<ScanCache>();
    const Scan first = run(Scan(open(scratch), spec_with(cache)));
    const auto again = open(scratch);
    spoil(scratch);
    Scan second(again, spec_with(cache));
    CHECK(second.scanned() == 3);
    CHECK(second.progress() == 1);
    CHECK_NOTHROW(second = run(std::move(second)));
    check_same(first, second);
    CHECK_THROWS_AS(run(Scan(again, spec_with(nullptr))), Error);  // the file is spoilt indeed
}

TEST_CASE("another MX rule casts the MX recipes only, another use of a tensor its weight blocks only") {
    const Scratch scratch;
    write_file(scratch.path / "m.safetensors", to_safetensors(made_file()));
    const auto cache = std::make_shared<ScanCache>();
    run(Scan(open(scratch), spec_with(cache)));
    for (const MxRule rule : {MxRule::floor, MxRule::even, MxRule::up}) {
        Scan known = run(Scan(open(scratch), spec_with(cache, rule)));
        check_same(run(Scan(open(scratch), spec_with(nullptr, rule))), known);
    }
    ScanSpec other = spec_with(cache);
    other.uses = {{"grad.blocks.0.w", TensorUse::w}};
    Scan changed(open(scratch), other);
    CHECK(changed.scanned() == 2);  // the third has to be cast as a weight
    changed = run(std::move(changed));
    ScanSpec fresh = other;
    fresh.cache = nullptr;
    const Scan wanted = run(Scan(open(scratch), fresh));
    check_same(wanted, changed);
    CHECK(changed.rows()[2].use == TensorUse::w);
    CHECK(changed.rows()[0].use == TensorUse::w);
    // The use is part of what is kept: by its name the tensor has its own numbers still.
    check_same(run(Scan(open(scratch), spec_with(nullptr))), run(Scan(open(scratch), spec_with(cache))));
    // No recipe that has no blocks of 128 depends on it.
    const Scan by_name = run(Scan(open(scratch), spec_with(nullptr)));
    for (std::size_t r = 0; r < wanted.spec().recipes.size(); ++r) {
        const bool same_number =
            wanted.rows()[2].outcomes[r].sqnr_db == by_name.rows()[2].outcomes[r].sqnr_db;
        CHECK(same_number == (wanted.spec().recipes[r].id != "block128"));
    }
}

TEST_CASE("a file that was changed is measured anew") {
    const Scratch scratch;
    const auto cache = std::make_shared<ScanCache>();
    write_file(scratch.path / "m.safetensors", to_safetensors(made_file(1)));
    run(Scan(open(scratch), spec_with(cache)));
    write_file(scratch.path / "m.safetensors", to_safetensors(made_file(2)));
    const Scan second = run(Scan(open(scratch), spec_with(cache)));
    check_same(run(Scan(open(scratch), spec_with(nullptr))), second);
}

TEST_CASE("a scan that was stopped leaves what it measured, and the next one goes on from there") {
    const Scratch scratch;
    write_file(scratch.path / "m.safetensors", to_safetensors(made_file()));
    const auto cache = std::make_shared<ScanCache>();
    {
        Scan stopped(open(scratch), spec_with(cache));
        while (!stopped.summarised()) stopped.step();
    }
    Scan next(open(scratch), spec_with(cache));
    for (const ScanRow& row : next.rows()) CHECK(row.summarised);
    CHECK(next.progress() == 0);  // of what is left
    next = run(std::move(next));
    CHECK(next.progress() == 1);
    check_same(run(Scan(open(scratch), spec_with(nullptr))), next);
}

TEST_CASE("the rows of the table have what an earlier state had, the worst of the members") {
    const Scratch scratch;
    SafeTensors now = made_file(1), old = made_file(2);
    old.tensors.erase("grad.blocks.0.w");
    old.tensors["gone"] = {{2, 2}, {1, 2, 3, 4}};
    old.tensors["blocks.1.w"] = {{100, 600}, old.tensors["blocks.1.w"].values};
    write_file(scratch.path / "m.safetensors", to_safetensors(now));
    write_file(scratch.path / "old.safetensors", to_safetensors(old));
    const Scan scan = run(Scan(open(scratch), spec_with(nullptr))),
               before = run(Scan(open(scratch, "old.safetensors"), spec_with(nullptr)));
    const Scanned scanned = scanned_by(scan, &before);
    auto table = table_rows(*scanned.store, scanned.rows, {});
    add_before(table, scanned);
    for (const TableRow& row : table) {
        CAPTURE(row.name);
        if (row.name != "blocks.0.w") {
            CHECK(row.before.change == (row.name == "blocks.1.w" ? "reshaped" : "new"));
            CHECK(row.before.underflow_pct.empty());
            continue;
        }
        const ScanRow& other = before.rows()[0];
        CHECK(row.before.change == "same");
        CHECK(row.before.amax == other.summary.amax);
        CHECK(row.before.least == other.summary.least);
        CHECK(row.before.binades == other.summary.binades());
        for (std::size_t r = 0; r < row.before.underflow_pct.size(); ++r)
            CHECK(row.before.underflow_pct[r] == other.outcomes[r].underflow_pct);
        CHECK(row.before.underflow_pct.size() == scanned.recipes.size());
    }
    auto folded = table_rows(*scanned.store, scanned.rows, {.fold = true});
    add_before(folded, scanned);
    CHECK(folded.size() == 2);
}

TEST_CASE("NaN and Inf are counted in the table, over the members of a kind") {
    const Scratch scratch;
    SafeTensors file = made_file();
    file.tensors["blocks.0.w"].values[3] = std::nanf("");
    file.tensors["blocks.1.w"].values[4] = -INFINITY;
    file.tensors["blocks.1.w"].values[5] = INFINITY;
    write_file(scratch.path / "m.safetensors", to_safetensors(file));
    const Scan scan = run(Scan(open(scratch), spec_with(nullptr)));
    std::int64_t flat = 0;
    for (const TableRow& row : table_rows(scan.store(), scan.rows(), {})) flat += row.not_finite;
    CHECK(flat == 3);
    for (const TableRow& row : table_rows(scan.store(), scan.rows(), {.fold = true}))
        CHECK(row.not_finite == (row.name == "blocks.*.w" ? 3 : 0));
}
