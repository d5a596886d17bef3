// The findings of L11 from a training that is done here, seeds 1 to 3.
#include <doctest/doctest.h>

#include "core/inference/cascade.h"
#include "core/inference/data.h"
#include "core/inference/mixes.h"
#include "core/nn/tasks.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainedMlp trained(std::uint64_t seed) {
    TrainOptions options;
    options.task = "digits", options.recipes = "fp32", options.seed = seed;
    const TrainSpec spec = make_train_spec(options);
    const auto trainer = make_cpu_trainer(spec);
    trainer->step(spec.steps);
    const Scratch scratch;
    trainer->save(scratch / "model");
    return read_mlp(scratch / "model/1-fp32.safetensors");
}

void check_findings(std::uint64_t seed) {
    const TrainedMlp network = trained(seed);
    const InferenceData data = data_of_task(network);
    const Reference reference = reference_of(forward(network, data.test.x), true, data.test.y);
    CHECK(accuracy_pct_of(reference.answers, reference.right) > 95.5);

    const auto divergence = [&](const char* id) {
        const Mix mix = uniform_mix(4, find_low_format(id, "test"));
        return divergence_of(reference, run_lowered(network, data.test.x, mix).y);
    };
    const double bf16 = divergence("bf16"), int8 = divergence("int8"), e4m3 = divergence("e4m3"),
                 e2m3 = divergence("mxfp6-e2m3"), e5m2 = divergence("e5m2"), nvfp4 = divergence("nvfp4");
    CHECK(bf16 < int8);
    CHECK(int8 < std::min(e4m3, e2m3));
    CHECK(std::max(e4m3, e2m3) < e5m2);
    CHECK(e5m2 < nvfp4);
    CHECK(nvfp4 < std::min(divergence("mxfp4"), divergence("e2m1")));

    const auto alone = sensitivities(network, data.test.x, reference, find_low_format("nvfp4", "test"), true);
    CHECK(std::ranges::min_element(alone) - alone.begin() == 1);  // layer 2

    std::vector<const LowFormat*> formats;
    for (const char* id : {"bf16", "int8", "e4m3", "mxfp8", "mxfp6-e2m3", "nvfp4", "mxfp4", "e2m1"})
        formats.push_back(&find_low_format(id, "test"));
    const AllMixes all = all_mixes(network, data.test.x, reference, formats, true);
    CHECK(all.points.size() == 4096);
    const Neighbours near = neighbours_of(all.points, 5.5, 0);
    CHECK(all.points[near.worst].divergence > 7 * all.points[near.best].divergence);
    const Mix best = all.mix(*best_within(all.points, 5.6));
    CHECK(width_bits(*best.weights[1]->weights.format) == 4);  // layer 2 gets the four bits
    CHECK(width_bits(*best.weights[0]->weights.format) > 4);

    const auto outputs = [&](const char* id) {
        return run_lowered(network, data.test.x, uniform_mix(4, find_low_format(id, "test"))).y;
    };
    const CascadeRun run = cascade_run(outputs("mxfp4"), outputs("mxfp8"));
    const Cascade at = cascade_of(reference, run, 0.9);
    CHECK(at.accuracy_pct > at.accuracy_low_pct);
    CHECK(at.repeated_pct < 15);
}

}  // namespace

TEST_CASE("the findings of L11 from a fresh training, seed 1") { check_findings(1); }
TEST_CASE("the findings of L11 from a fresh training, seed 2") { check_findings(2); }
TEST_CASE("the findings of L11 from a fresh training, seed 3") { check_findings(3); }
