#include "core/inspect/scan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/inspect/compare.h"
#include "core/inspect/detail.h"
#include "core/inspect/recommend.h"
#include "core/inspect/report.h"
#include "core/inspect/table.h"
#include "core/tensors/npy.h"
#include "core/tensors/safetensors.h"
#include "core/threads/parallel.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

// Log-normal: values over many binades, of both signs.
std::vector<float> wide_values(std::size_t n, unsigned seed, double sigma = 4) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<float> out(n);
    for (float& value : out) {
        const double size = std::exp(sigma * normal(random));
        value = static_cast<float>(random() % 2 ? size : -size);
    }
    return out;
}

std::shared_ptr<const TensorStore> store_of(const Scratch& scratch, const SafeTensors& file,
                                            const std::string& name = "m.safetensors") {
    write_file(scratch.path / name, to_safetensors(file));
    return std::make_shared<TensorStore>(scratch.path / name);
}

Scan scan_all(std::shared_ptr<const TensorStore> store, ScanSpec spec = {.recipes = scan_recipes()}) {
    Scan scan(std::move(store), std::move(spec));
    while (scan.step()) {
    }
    return scan;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("a scan in bands gives what one cast of the whole tensor gives, for every recipe") {
    const Scratch scratch;
    SafeTensors file;
    // More than one band and piece, a partial last band, partial blocks, and one row.
    file.tensors["grad.wide"] = {{1000, 300}, wide_values(300'000, 1)};
    file.tensors["weights"] = {{700, 500}, wide_values(350'000, 2)};
    file.tensors["act.row"] = {{777}, wide_values(777, 3)};
    const Scan scan = scan_all(store_of(scratch, file));
    REQUIRE(scan.scanned() == 3);
    for (const ScanRow& row : scan.rows()) {
        const StoredTensor& tensor = scan.store().tensors()[row.tensor];
        CAPTURE(tensor.name);
        const std::vector<float>& x = file.tensors[tensor.name].values;
        const MatrixShape shape = tensor.matrix();
        for (std::size_t r = 0; r < row.outcomes.size(); ++r) {
            CAPTURE(scan.spec().recipes[r].id);
            std::vector<float> q(x.size());
            const CastPlan plan = scan_plan(scan.spec().recipes[r].recipe, row.use);
            const QuantizeResult whole = quantize(plan, x, q, {.rows = shape.rows, .cols = shape.cols});
            const CastOutcome& o = row.outcomes[r];
            CHECK(o.sqnr_db == doctest::Approx(whole.stats.sqnr_db()).epsilon(1e-9));
            CHECK(o.underflow_pct == whole.stats.underflow_pct());
            CHECK(o.overflow_pct == whole.stats.overflow_pct());
            double worst = INFINITY;
            for (std::size_t i = 0; i < shape.rows; ++i) {
                double signal = 0, noise = 0;
                for (std::size_t c = i * shape.cols; c < (i + 1) * shape.cols; ++c) {
                    const double value = static_cast<double>(x[c]), error = value - static_cast<double>(q[c]);
                    signal += value * value, noise += error * error;
                }
                worst = std::min(worst, 10 * std::log10(signal / noise));
            }
            CHECK(o.worst_row_db == doctest::Approx(worst).epsilon(1e-5));
            CHECK(o.bits == bits_per_element(plan, shape.rows, shape.cols));
        }
    }
}

TEST_CASE("the first pass counts what a loop in float64 counts") {
    const Scratch scratch;
    std::vector<float> x = wide_values(70'000, 4, 9);
    x[5] = 0, x[6] = -0.0F, x[7] = 1e-45F, x[8] = NAN, x[9] = INFINITY, x[10] = -INFINITY;
    SafeTensors file;
    file.tensors["t"] = {{70, 1000}, x};
    const ScanRow row = scan_all(store_of(scratch, file)).rows()[0];
    double amax = 0, least = INFINITY;
    std::int64_t zeros = 0, at_ten = 0;
    for (const float value : x) {
        const double size = std::fabs(static_cast<double>(value));
        if (!std::isfinite(size)) continue;
        zeros += size == 0;
        if (size == 0) continue;
        amax = std::max(amax, size), least = std::min(least, size);
        at_ten += size >= 1024 && size < 2048;
    }
    CHECK(row.summary.n == 70'000);
    CHECK(row.summary.excluded.nan == 1);
    CHECK(row.summary.excluded.inf == 2);
    CHECK(row.summary.zeros == zeros);
    CHECK(static_cast<double>(row.summary.amax) == amax);
    CHECK(static_cast<double>(row.summary.least) == least);
    CHECK(row.summary.binades() == doctest::Approx(std::log2(amax / least)));
    CHECK(row.summary.histogram.counts[10 - Binades::kLowest] == at_ten);
    CHECK(row.summary.histogram.counts[0] == 1);  // 2^-149
    // Not finite: as if it were 0.
    for (const CastOutcome& o : row.outcomes) CHECK(std::isfinite(o.sqnr_db));
}

TEST_CASE("no result depends on the number of threads") {
    const Scratch scratch;
    SafeTensors file;
    for (int i = 0; i < 9; ++i)
        file.tensors["t" + std::to_string(i)] = {{300, 200}, wide_values(60'000, static_cast<unsigned>(i))};
    const auto store = store_of(scratch, file);
    const int before = threads();
    set_threads(1);
    const Scan one = scan_all(store);
    set_threads(3);
    const Scan three = scan_all(store);
    set_threads(before);
    for (std::size_t i = 0; i < one.rows().size(); ++i)
        for (std::size_t r = 0; r < one.rows()[i].outcomes.size(); ++r) {
            const CastOutcome &a = one.rows()[i].outcomes[r], &b = three.rows()[i].outcomes[r];
            CHECK((same(a.sqnr_db, b.sqnr_db) && same(a.worst_row_db, b.worst_row_db)));
        }
}

TEST_CASE("a scan that is stopped keeps what it has, and the preferred tensor comes first") {
    const Scratch scratch;
    SafeTensors file;
    for (const char* name : {"a", "b", "c", "d"})
        file.tensors[name] = {{2048, 1024}, wide_values(1 << 21, 7)};
    Scan scan(store_of(scratch, file), {.recipes = scan_recipes()});
    while (!scan.summarised()) REQUIRE(scan.step());
    for (const ScanRow& row : scan.rows()) CHECK(row.summarised);
    scan.prefer(2);
    while (scan.scanned() == 0) REQUIRE(scan.step());
    CHECK(scan.rows()[2].done());
    CHECK_FALSE(scan.rows()[0].done());
    CHECK(scan.progress() > 0);
    CHECK(scan.progress() < 1);
}

TEST_CASE("tensors of integers, scales and no elements are listed without numbers") {
    const Scratch scratch;
    SafeTensors file;
    file.tensors["empty"] = {{0, 4}, {}};
    file.tensors["zeros"] = {{2, 4}, std::vector<float>(8)};
    const Scan scan = scan_all(store_of(scratch, file));
    CHECK(scan.rows()[0].not_scanned == "empty");
    const ScanRow& zeros = scan.rows()[1];
    CHECK(zeros.summary.binades() == 0);
    const Recommendation advice = recommend(zeros, scan.spec().recipes, {});
    CHECK_FALSE(advice.recipe);
    CHECK(advice.reasons.at(0) == "All values are 0: every recipe is exact.");
    const Scan numpy =
        scan_all(std::make_shared<TensorStore>(FP8LAB_SOURCE "/tests/unit/tensors/published/savez.npz"));
    for (const ScanRow& row : numpy.rows()) {
        const std::string& name = numpy.store().tensors()[row.tensor].name;
        CHECK((row.not_scanned == "not a float") == (name == "ids" || name == "mask"));
    }
}

TEST_CASE("a large tensor is sampled by bands of 128 rows, and only these are read") {
    const Scratch scratch;
    std::vector<float> x(1280 * 64, 1.0F);
    for (std::size_t band = 1; band < 10; ++band)  // what is not read would show
        if (band % 4 != 0)
            std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(band * 128 * 64), 128 * 64, NAN);
    SafeTensors file;
    file.tensors["t"] = {{1280, 64}, x};
    const Scan scan =
        scan_all(store_of(scratch, file), {.recipes = scan_recipes(), .most_per_tensor = 1280 * 16});
    const ScanRow& row = scan.rows()[0];
    CHECK(row.every == 4);
    CHECK(row.summary.n == 3 * 128 * 64);
    CHECK(row.summary.excluded.nan == 0);
    const auto table = table_rows(scan.store(), scan.rows(), {});
    CHECK(table[0].note == "1 of 4 bands of 128 rows");
}

TEST_CASE("which elements become 0: by place and by binade") {
    const Scratch scratch;
    std::vector<float> x(384, 1.0F);
    for (std::size_t i = 128; i < 256; ++i) x[i] = 1e-9F;
    SafeTensors file;
    file.tensors["grad.bias"] = {{384}, x};
    std::vector<float> rows(100 * 8, 1.0F);
    for (const std::size_t r : {12, 40, 41})
        std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(8 * r), 8, 1e-9F);
    file.tensors["rows"] = {{100, 8}, rows};
    file.tensors["sat"] = {{100, 8}, std::vector<float>(800, 1000.0F)};
    const Scan scan = scan_all(store_of(scratch, file));
    const CastDetail bias = cast_detail(scan.store(), scan.rows()[0], parse_recipe("current"));
    CHECK(bias.unit == PlaceUnit::element);
    CHECK(bias.title() == "Where: elements 128 to 255, one run");
    CHECK(bias.underflow == 128);
    CHECK(bias.lost.counts[static_cast<std::size_t>(std::ilogb(1e-9F) - Binades::kLowest)] == 128);
    CHECK(bias.lost_l1_pct == doctest::Approx(100 * 128e-9 / 256).epsilon(1e-4));
    const auto cells = bias.cells(64);
    REQUIRE(cells.size() == 64);
    for (std::size_t i = 0; i < 64; ++i)
        if (i != 21 && i != 42)  // those that hold an edge
            CHECK((cells[i] == CastDetail::Place::lost) == (i > 21 && i < 42));
    CHECK(cast_detail(scan.store(), scan.rows()[1], parse_recipe("current")).title() ==
          "Where: rows 12, 40, 41");
    CHECK(cast_detail(scan.store(), scan.rows()[1], parse_recipe("mxfp8")).title() ==
          "Where: nothing becomes 0");
    const CastDetail cut = cast_detail(scan.store(), scan.rows()[2], parse_recipe("unscaled"));
    CHECK(cut.places[0] == CastDetail::Place::cut);
}
