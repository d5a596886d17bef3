// Recipe fp32 against the same training in float64.
#include <doctest/doctest.h>

#include <cmath>

#include "core/trainer/cpu_trainer.h"
#include "tests/reference_training.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

constexpr int kSteps = 50;

ArmCheckpoint saved(const Trainer& trainer) {
    const Scratch scratch;
    trainer.save(scratch.path);
    return load_checkpoints(scratch.path, trainer.spec()).arms[0];
}

double relative_l2(std::span<const float> values, std::span<const double> expected) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double d = static_cast<double>(values[i]) - expected[i];
        difference += d * d, norm += expected[i] * expected[i];
    }
    return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("50 steps of recipe fp32 stay with float64: losses and every parameter") {
    struct Case {
        std::string task;
        int kv_heads, tie;
        double weight_decay, loss_bound, parameter_bound;
    };
    // A tied embedding is small: the first norm divides by its size, and multiplies what rounding left there.
    for (const Case& c : {Case{"text", 2, 0, 0, 1e-6, 1e-5}, Case{"copying", 1, 1, 0.1, 1e-4, 1e-3}}) {
        CAPTURE(c.task);
        TrainOptions options;
        options.model = "transformer";
        options.task = c.task;
        options.sizes = {{"d", 16},   {"heads", 2},    {"kv-heads", c.kv_heads},
                         {"ffn", 24}, {"context", 32}, {"tie", c.tie}};
        options.batch = 4;
        options.clip = 0.5;
        options.warmup = 10;
        options.weight_decay = c.weight_decay;
        options.recipes = "fp32";
        const TrainSpec spec = make_train_spec(options);
        const auto trainer = make_cpu_trainer(spec);
        test::ReferenceTraining reference(spec, saved(*trainer));
        trainer->step(kSteps);
        const Snapshot snapshot = trainer->snapshot();
        REQUIRE(snapshot.arms[0].records.size() == kSteps);
        double first = 0, last = 0, largest_norm = 0;
        for (const StepRecord& record : snapshot.arms[0].records) {
            CAPTURE(record.step);
            const auto [loss, norm] = reference.step();
            CHECK(std::abs(record.loss / loss - 1) < c.loss_bound);
            if (record.step == 0) first = loss;
            last = loss;
            largest_norm = std::max(largest_norm, norm);
        }
        CHECK(last < first);              // it trained,
        CHECK(largest_norm > spec.clip);  // and the limit of the norm acted
        const ArmCheckpoint end = saved(*trainer);
        for (std::size_t i = 0; i < end.parameters.size(); ++i) {
            CAPTURE(reference.model().plan().parameters[i].name);
            const double error =
                relative_l2(end.parameters[i].values, reference.model().parameters()[i].value);
            CHECK(error < c.parameter_bound);
        }
    }
}
