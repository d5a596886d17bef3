// A training gives the same bytes with any number of threads (architecture.md, "Threads").
#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <set>

#include "core/files/files.h"
#include "core/threads/parallel.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

constexpr int kSteps = 50;

// Every row of the table, and what rounds at random.
TrainSpec every_recipe(const std::string& activation) {
    TrainOptions options;
    // Large enough that products, casts, activations and updates are all cut into several ranges.
    options.layers = std::vector{448, 160, 16};
    options.batch = 208;
    options.steps = kSteps;
    options.activation = activation;
    options.recipes =
        "delayed:round=stochastic:round_bwd=stochastic,delayed:master=none:round_update=stochastic";
    for (const Recipe& recipe : recipes()) options.recipes += "," + recipe.name;
    return make_train_spec(options);
}

// Weights, moments and scales of each arm as its checkpoint has them, and the numbers of its records.
struct Outcome {
    std::vector<std::string> checkpoints;
    std::vector<std::vector<std::uint64_t>> records;
};

Outcome train(const TrainSpec& spec, int thread_count) {
    set_threads(thread_count);
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(kSteps);
    Outcome out;
    const Scratch scratch;
    trainer->save(scratch.path);
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path)) files.insert(entry.path());
    for (const auto& file : files) out.checkpoints.push_back(read_text(file));
    for (const ArmSnapshot& arm : trainer->snapshot().arms) {
        std::vector<std::uint64_t> numbers;
        for (const StepRecord& record : arm.records) {
            numbers.push_back(std::bit_cast<std::uint64_t>(record.loss));
            for (const TensorRecord& t : record.tensors)
                for (const float number : {t.amax, t.scale, t.underflow_pct, t.overflow_pct, t.sqnr_db})
                    numbers.push_back(std::bit_cast<std::uint32_t>(number));
        }
        out.records.push_back(std::move(numbers));
    }
    return out;
}

}  // namespace

TEST_CASE("50 steps of every recipe leave the same bytes with 1, 2 and 3 threads") {
    for (const std::string activation : {"tanh", "gelu"}) {
        CAPTURE(activation);
        const TrainSpec spec = every_recipe(activation);
        const Outcome one = train(spec, 1);
        REQUIRE(one.checkpoints.size() == spec.arms.size());
        for (const int count : {2, 3}) {
            CAPTURE(count);
            const Outcome many = train(spec, count);
            REQUIRE(many.checkpoints.size() == spec.arms.size());
            for (std::size_t arm = 0; arm < spec.arms.size(); ++arm) {
                CAPTURE(spec.arms[arm].name);
                CHECK(one.records[arm].size() >= kSteps);
                CHECK((many.records[arm] == one.records[arm]));
                CHECK((many.checkpoints[arm] == one.checkpoints[arm]));
            }
        }
    }
    set_threads(1);
}
