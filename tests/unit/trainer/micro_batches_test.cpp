// Gradient accumulation on the CPU.
#include "core/trainer/micro_batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/bounded_file.h"
#include "core/threads/ask.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "core/trainer/gradient_sum.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainOptions mlp(const std::string& recipes, int steps = 40, std::uint64_t seed = 1) {
    TrainOptions options;
    options.recipes = recipes;
    options.layers = std::vector{32, 24, 16, 1};
    options.batch = 64;
    options.steps = steps;
    options.seed = seed;
    return options;
}

TrainOptions transformer(const std::string& task, const std::string& recipes, int steps) {
    TrainOptions options;
    options.model = "transformer";
    options.sizes = {{"d", 32}, {"blocks", 1}, {"heads", 2}, {"kv-heads", 1}, {"ffn", 48}, {"context", 32}};
    options.task = task;
    options.recipes = recipes;
    options.steps = steps;
    return options;
}

std::vector<StepRecord> records_of(const TrainOptions& options, std::size_t arm = 0) {
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    trainer->step(trainer->spec().steps);
    return trainer->snapshot().arms[arm].records;
}

std::vector<double> losses_of(const TrainOptions& options, std::size_t arm = 0) {
    std::vector<double> out;
    for (const StepRecord& record : records_of(options, arm)) out.push_back(record.loss);
    return out;
}

TrainOptions cut(TrainOptions options, int parts) {
    options.accumulate = parts;
    return options;
}

std::string why(const TrainOptions& options) {
    try {
        make_train_spec(options);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

double mean_saturated(const std::vector<StepRecord>& records, std::size_t tensor) {
    double sum = 0;
    for (const StepRecord& r : records) sum += static_cast<double>(r.tensors[tensor].saturated_casts);
    return sum / static_cast<double>(records.size());
}

}  // namespace

TEST_CASE(
    "micro-batches in FP32 give the losses of one batch within 1e-6, also where their targets count "
    "differently") {
    for (const TrainOptions& options :
         {mlp("fp32"), transformer("copying", "fp32", 12), transformer("text", "fp32", 12)}) {
        const std::vector<double> whole = losses_of(options);
        for (const int parts : {2, 8}) {
            const std::vector<double> summed = losses_of(cut(options, parts));
            REQUIRE(summed.size() == whole.size());
            for (std::size_t i = 0; i < whole.size(); ++i) {
                CAPTURE(options.task);
                CAPTURE(parts);
                CAPTURE(i);
                // The first losses are of the same weights; later ones have the rounding of the updates between.
                CHECK(summed[i] == doctest::Approx(whole[i]).epsilon(i == 0 ? 1e-6 : 1e-4));
            }
        }
    }
}

TEST_CASE("the gradient of micro-batches in FP32 is that of one batch within 1e-6") {
    // SGD without decay: the update is the gradient times the rate.
    for (TrainOptions options : {mlp("fp32", 1), transformer("copying", "fp32", 1)}) {
        options.optimizer = "sgd";
        options.clip = 0;
        options.lr = 1024;  // the weights are small beside it
        const auto weights = [&](int parts) {
            const Scratch scratch;
            const auto trainer = make_cpu_trainer(make_train_spec(cut(options, parts)));
            trainer->step();
            trainer->save(scratch.path);
            return load_checkpoints(scratch.path, trainer->spec()).arms[0].parameters;
        };
        const auto whole = weights(1);
        for (const int parts : {2, 8}) {
            const auto summed = weights(parts);
            double error = 0, size = 0;
            for (std::size_t p = 0; p < whole.size(); ++p)
                for (std::size_t i = 0; i < whole[p].values.size(); ++i) {
                    error += std::pow(double{summed[p].values[i]} - double{whole[p].values[i]}, 2);
                    size += std::pow(double{whole[p].values[i]}, 2);
                }
            CAPTURE(options.task);
            CAPTURE(parts);
            CHECK(std::sqrt(error / size) < 1e-6);
        }
    }
}

TEST_CASE("one micro-batch is today's step, to the byte of a checkpoint but its command line") {
    for (const std::string recipe : {"fp32", "bf16", "delayed", "current:round=stochastic", "mxfp8",
                                     "nvfp4-te", "delayed:wgrad_in=bf16", "unscaled:loss_scale=1024"}) {
        CAPTURE(recipe);
        CHECK(losses_of(mlp(recipe)) == losses_of(cut(mlp(recipe), 1)));
    }
}

TEST_CASE("a weight that is cast once a step gives what a cast in each micro-batch gives, to the bit") {
    for (const std::string recipe : {"delayed", "current", "mxfp8", "rowwise", "nvfp4:round=nearest"}) {
        TrainOptions once = cut(mlp(recipe), 8), each = once;
        each.weight_cache = "each";
        CAPTURE(recipe);
        CHECK(losses_of(once) == losses_of(each));
    }
}

TEST_CASE("weights that are never cast again stop the training from learning") {
    TrainOptions fresh = mlp("bf16,delayed", 300), stale = fresh;
    stale.weight_cache = "stale";
    const auto a = losses_of(fresh, 1), b = losses_of(stale, 1);
    CHECK(a.front() == b.front());
    CHECK(b.back() > 2 * a.back());
    CHECK(losses_of(fresh) == losses_of(stale));  // a cast to 16 bits is none that is kept
}

TEST_CASE("the amax of the last micro-batch saturates more casts than the largest of all") {
    const auto run = [](const std::string& amax_of) {
        TrainOptions options = cut(mlp("delayed", 300), 8);
        options.amax_of = amax_of;
        return records_of(options);
    };
    const auto largest = run("max"), last = run("last"), each = run("each");
    CHECK(mean_saturated(last, 0) > 2 * mean_saturated(largest, 0));
    CHECK(mean_saturated(each, 0) > 2 * mean_saturated(largest, 0));
    for (const StepRecord& r : largest) {
        REQUIRE(r.tensors[0].saturated_casts >= 0);
        REQUIRE(r.tensors[0].saturated_casts <= 8);
    }
}

TEST_CASE("records of micro-batches are of all of them together") {
    const auto whole = records_of(mlp("current", 1)), parts = records_of(cut(mlp("current", 1), 4));
    CHECK(parts[0].tensors[0].amax == whole[0].tensors[0].amax);
    CHECK(parts[0].tensors[1].amax == whole[0].tensors[1].amax);  // a weight
    CHECK(std::isnan(whole[0].tensors[0].saturated_casts));
    CHECK(std::isnan(whole[0].accumulate_error_pct));
    CHECK(parts[0].accumulate_error_pct < 1e-4);
    CHECK(parts[0].accumulate_error_pct >= 0);
}

TEST_CASE("a step that was given up between micro-batches gives the same bytes when it is done again") {
    for (const std::string amax_of : {"max", "each"}) {
        TrainOptions options = cut(mlp("delayed:interval=3", 30), 8);
        options.amax_of = amax_of;
        const std::vector<double> wanted = losses_of(options);
        const auto trainer = make_cpu_trainer(make_train_spec(options));
        int given_up = 0;
        std::vector<double> got;
        for (int step = 0; step < 30; ++step) {
            int left = 1 + step * 13 % 60;  // parts of loops until the step is given up, if it has so many
            try {
                const AskBetween ask([&] {
                    if (--left == 0) throw Cancelled();
                });
                trainer->step();
            } catch (const Cancelled&) {
                ++given_up;
                if (trainer->steps_done() == step) trainer->step();
            }
        }
        const Snapshot snapshot = trainer->snapshot();
        for (const StepRecord& r : snapshot.arms[0].records) got.push_back(r.loss);
        CHECK(given_up > 5);
        CHECK(got == wanted);
    }
}

TEST_CASE("sums of gradients: FP32 to rounding, fewer bits further from the sum in float64") {
    constexpr int kParts = 8;
    constexpr std::size_t kElements = 4096;
    std::vector<std::vector<float>> parts(kParts, std::vector<float>(kElements));
    for (int k = 0; k < kParts; ++k)
        Rng(7, static_cast<std::uint64_t>(k)).fill_normal(parts[static_cast<std::size_t>(k)]);
    double before = 0;
    for (const std::string format : {"fp32", "bf16", "e4m3", "e5m2"}) {
        CAPTURE(format);
        GradientSum sum({.micro_batches = kParts, .format = format}, {true});
        for (std::size_t k = 0; k < kParts; ++k) {
            std::span<float> part = parts[k];
            sum.add({&part, 1}, k == 0);
        }
        std::vector<float> mean(kElements);
        std::span<float> out = mean;
        sum.mean({&out, 1});
        double error = 0, size = 0;
        for (std::size_t i = 0; i < kElements; ++i) {
            double exact = 0;
            for (const auto& part : parts) exact += double{part[i]};
            error += std::pow(double{mean[i]} * kParts - exact, 2);
            size += exact * exact;
        }
        CHECK(sum.error_pct() == doctest::Approx(100 * std::sqrt(error / size)).epsilon(1e-5));
        CHECK(sum.error_pct() > before);
        before = sum.error_pct();
    }
    CHECK(before > 5);
    CHECK(before < 20);
}

TEST_CASE("a resumed run of micro-batches goes on to the byte") {
    for (const std::uint64_t seed : {1, 2, 3})
        for (const std::string cache : {"once", "each", "stale"})
            for (const std::string amax_of : {"max", "last", "each"}) {
                TrainOptions options = cut(mlp("delayed:interval=2,mxfp8", 24, seed), 4);
                options.weight_cache = cache, options.amax_of = amax_of;
                options.accumulate_in = seed == 1 ? "fp32" : seed == 2 ? "e4m3" : "bf16";
                CAPTURE(cache);
                CAPTURE(amax_of);
                CAPTURE(seed);
                const Scratch whole, half, both;
                const TrainSpec spec = make_train_spec(options);
                const auto a = make_cpu_trainer(spec);
                a->step(11);
                a->save(half.path);
                a->step(13);
                a->save(whole.path);
                const auto b = make_cpu_trainer(spec);
                b->load(half.path);
                b->step(13);
                b->save(both.path);
                int files = 0;
                for (const auto& file : std::filesystem::directory_iterator(whole.path)) {
                    CHECK(read_bytes(file.path()) == read_bytes(both.path / file.path().filename()));
                    ++files;
                }
                CHECK(files == 2);
            }
}

TEST_CASE("options of micro-batches that fit nothing or have no effect are refused by name") {
    const auto with = [](const std::function<void(TrainOptions&)>& change,
                         const std::string& recipes = "delayed") {
        TrainOptions options = mlp(recipes);
        change(options);
        return why(options);
    };
    CHECK(with([](TrainOptions& o) {
              o.accumulate = 7;
          }).find("--accumulate: 7 micro-batches do not divide a batch of 64") != std::string::npos);
    CHECK(with([](TrainOptions& o) { o.accumulate = 0; }).find("--accumulate") != std::string::npos);
    CHECK(with([](TrainOptions& o) {
              o.accumulate_in = "bf16";
          }).find("--accumulate-in: bf16 has no effect") != std::string::npos);
    CHECK(with([](TrainOptions& o) { o.accumulate = 8, o.accumulate_in = "fp16"; }).find("--accumulate-in") !=
          std::string::npos);
    CHECK(with([](TrainOptions& o) { o.weight_cache = "each"; }).find("--weight-cache: each has no effect") !=
          std::string::npos);
    CHECK(with([](TrainOptions& o) { o.weight_cache = "never"; }).find("--weight-cache") !=
          std::string::npos);
    CHECK(with([](TrainOptions& o) { o.accumulate = 8, o.amax_of = "last"; }, "current")
              .find("--amax-of: last has no effect without an arm of delayed scaling") != std::string::npos);
    CHECK(with([](TrainOptions& o) { o.amax_of = "last"; }).find("--amax-of: last has no effect") !=
          std::string::npos);
    CHECK(with([](TrainOptions& o) { o.accumulate = 8, o.amax_of = "last"; }, "current:wgrad_in=delayed") ==
          "");
    TrainOptions options = cut(mlp("delayed"), 8);
    options.accumulate_in = "e4m3", options.weight_cache = "stale", options.amax_of = "each";
    CHECK(command_line(make_train_spec(options))
              .ends_with(" --accumulate 8 --accumulate-in e4m3 --weight-cache stale --amax-of each"));
    CHECK(command_line(make_train_spec(mlp("delayed"))).find("accumulate") == std::string::npos);
}
