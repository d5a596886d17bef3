#include "core/nn/tasks.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

DenseBatch batch_of(const TrainSpec& spec, int step) {
    Batch batch;
    make_task(spec)->draw(step, batch);
    return std::get<DenseBatch>(batch);
}

TrainSpec spec_of(std::string task, std::uint64_t seed = 1) {
    TrainOptions options;
    options.task = std::move(task);
    options.seed = seed;
    return make_train_spec(options);
}

double variance(const std::vector<float>& values) {
    double sum = 0, squares = 0;
    for (const float v : values)
        sum += static_cast<double>(v), squares += static_cast<double>(v) * static_cast<double>(v);
    const double n = static_cast<double>(values.size());
    return squares / n - sum / n * (sum / n);
}

}  // namespace

TEST_CASE("a batch is a function of seed and step alone") {
    for (const std::string name : {"teacher", "spiral"}) {
        CAPTURE(name);
        const TrainSpec spec = spec_of(name);
        const DenseBatch seventh = batch_of(spec, 7);
        auto task = make_task(spec);
        Batch batch;
        for (int step = 0; step <= 7; ++step) task->draw(step, batch);
        const DenseBatch& eighth = std::get<DenseBatch>(batch);  // drawn after others
        CHECK(eighth.x.values == seventh.x.values);
        CHECK(eighth.y.values == seventh.y.values);
        CHECK(batch_of(spec, 8).x.values != seventh.x.values);
        CHECK(batch_of(spec_of(name, 2), 7).x.values != seventh.x.values);
    }
}

TEST_CASE("the teacher is one function for every seed") {
    // A teacher built without any seed answers the batches of two seeds exactly as the task did.
    Matrix<float> y1, y2;
    const DenseBatch batch = batch_of(spec_of("teacher", 1), 0);
    Teacher(32, 1).answer(batch.x, y1);
    CHECK(y1.values == batch.y.values);
    const DenseBatch other = batch_of(spec_of("teacher", 99), 3);
    Teacher(32, 1).answer(other.x, y2);
    CHECK(y2.values == other.y.values);
    CHECK(y1.values != y2.values);
    // w2 has variance 1/64 over 64 hidden units of magnitude below 1: y is of order 1 and not constant.
    CHECK(variance(batch.y.values) > 0.1);
    CHECK(variance(batch.y.values) < 2);
    CHECK(variance(batch.x.values) == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("noise is one fixed batch") {
    const TrainSpec spec = spec_of("noise");
    const DenseBatch first = batch_of(spec, 0);
    CHECK(first.x.rows == 32);
    CHECK(first.y.cols == 768);
    CHECK(first.x.values == batch_of(spec, 5).x.values);
    CHECK(first.x.values != first.y.values);
    CHECK(variance(first.y.values) == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("the spiral has two arms of one and a half turns") {
    const DenseBatch data = spiral_points(1);
    CHECK(data.x.rows == 2048);
    CHECK(is_one_hot(data.y));
    double turned = 0, last = 0;
    for (std::size_t i = 256; i < data.x.rows;
         i += 2) {  // from a radius where jitter does not turn the angle
        const auto p = data.x.row(i), twin = data.x.row(i + 1);
        CHECK(std::hypot(p[0], p[1]) < 1.1F);
        CHECK(std::hypot(p[0] + twin[0], p[1] + twin[1]) < 0.25F);  // arm 1 is arm 0 turned by pi
        const double angle = std::atan2(static_cast<double>(p[1]), static_cast<double>(p[0]));
        if (i > 256) turned += std::remainder(angle - last, 2 * 3.14159265358979);
        last = angle;
    }
    CHECK(turned / 6.283185 == doctest::Approx(1.5 * 7 / 8).epsilon(0.05));
}

TEST_CASE("npy data brings layers and loss, and is refused with row and column") {
    const Scratch scratch;
    const std::vector<float> x = {0, 1, 2, 3, 4, 5}, one_hot = {1, 0, 0, 1, 0, 1};
    const std::size_t wide[] = {2, 3}, tall[] = {3, 2}, flat[] = {6};
    const auto put = [&](std::string name, const std::vector<float>& values,
                         std::span<const std::size_t> shape) {
        write_file((scratch.path / name), to_npy(values, shape));
        return (scratch.path / name).string();
    };
    const std::string x_path = put("x.npy", x, tall), y_path = put("y.npy", one_hot, tall);

    const TrainSpec spec = spec_of("npy:" + x_path + "," + y_path);
    CHECK(spec.layers == std::vector{2, 64, 64, 2});
    CHECK(spec.loss == LossKind::cross_entropy);
    const DenseBatch batch = batch_of(spec, 0);
    for (std::size_t r = 0; r < batch.x.rows; ++r) {  // every row is a sample with its own answer
        const auto sample = static_cast<std::size_t>(batch.x.row(r)[0]) / 2;
        CHECK(batch.y.row(r)[0] == one_hot[2 * sample]);
    }
    CHECK(spec_of("npy:" + x_path + "," + x_path).loss == LossKind::mse);

    CHECK_THROWS_AS(spec_of("npy:" + x_path + "," + put("wide.npy", x, wide)), Error);
    CHECK_THROWS_AS(spec_of("npy:" + x_path + "," + put("flat.npy", x, flat)), Error);
    std::vector<float> bad = x;
    bad[3] = std::numeric_limits<float>::infinity();
    try {
        spec_of("npy:" + put("bad.npy", bad, tall) + "," + y_path);
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(error.why().find("row 1, column 1") != std::string::npos);
    }
    TrainOptions options;
    options.task = "npy:" + x_path + "," + y_path;
    options.layers = {3, 2};
    CHECK_THROWS_AS(make_train_spec(options), Error);
    try {
        make_train_spec(options);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);  // a file decides
    }
}
