// A step that is given up changes nothing: what is saved then, and what comes after, have the same bits as in an
// undisturbed training.
#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <set>

#include "core/files/files.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

std::vector<std::string> checkpoints(const Trainer& trainer) {
    const Scratch scratch;
    trainer.save(scratch.path);
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path)) files.insert(entry.path());
    std::vector<std::string> out;
    for (const auto& file : files) out.push_back(read_text(file));
    return out;
}

// The numbers of a snapshot as bits; without times.
std::vector<std::uint64_t> numbers(const Snapshot& snapshot) {
    std::vector<std::uint64_t> out;
    const auto add = [&](double value) { out.push_back(std::bit_cast<std::uint64_t>(value)); };
    for (const ArmSnapshot& arm : snapshot.arms) {
        for (const StepRecord& record : arm.records) {
            add(record.step), add(record.loss), add(record.accuracy);
            for (const TensorRecord& t : record.tensors)
                for (const float value : {t.amax, t.scale, t.underflow_pct, t.overflow_pct, t.sqnr_db,
                                          t.lost_l1_pct, t.lost_energy_pct, t.kurtosis})
                    add(static_cast<double>(value));
        }
        if (arm.evaluation) {
            add(arm.evaluation->step), add(arm.evaluation->loss), add(arm.evaluation->accuracy);
            for (const char c : arm.evaluation->continuation) add(c);
        }
        if (arm.watched)
            for (const std::int64_t count : arm.watched->before.counts)
                out.push_back(static_cast<std::uint64_t>(count));
    }
    return out;
}

// One step, given up `at` its 1st, 2nd, ... question. True: it had fewer and is done.
bool step_until(Trainer& trainer, int steps, int at) {
    std::atomic<int> asked = 0;
    const AskBetween ask([&] {
        if (++asked >= at) throw Cancelled();
    });
    try {
        trainer.step(steps);
        return true;
    } catch (const Cancelled&) {
        return false;
    }
}

void send(Trainer& trainer, int step) {
    if (step == 1) trainer.set(PoisonBatch{3});
    if (step == 2) trainer.set(SetRecipe{1, parse_recipes("mxfp8").front()});
    if (step == 3) trainer.set(Watch{TensorId{0}});
}

// Gives up each step once after every `stride` questions.
void compare(const TrainSpec& spec, int stride) {
    const auto undisturbed = make_cpu_trainer(spec), disturbed = make_cpu_trainer(spec);
    int given_up = 0;
    for (int step = 0; step < spec.steps; ++step) {
        CAPTURE(step);
        send(*undisturbed, step), send(*disturbed, step);
        const auto before = checkpoints(*undisturbed);
        int at = 1;
        while (disturbed->steps_done() == step && !step_until(*disturbed, 1, at)) {
            ++given_up;
            if (disturbed->steps_done() == step && (at == 1 || at % 7 == 0) && step != 2)
                CHECK(checkpoints(*disturbed) == before);  // of step 2 the names have the new recipe already
            at += stride;
        }
        for (at = 1; !step_until(*disturbed, 0, at); at += stride) ++given_up;  // the evaluation of this step
        undisturbed->step();
        CHECK(disturbed->steps_done() == step + 1);
        CHECK(checkpoints(*disturbed) == checkpoints(*undisturbed));
        CHECK(numbers(disturbed->snapshot()) == numbers(undisturbed->snapshot()));
    }
    CHECK(given_up > 2 * spec.steps);
}

}  // namespace

TEST_CASE("perceptron: steps that are given up anywhere and done again change no bit of any arm") {
    for (const int count : {1, 2}) {
        set_threads(count);
        TrainOptions options;
        options.layers = std::vector{96, 300, 8};
        options.batch = 64;
        options.steps = 5;
        options.recipes = "fp32,delayed,delayed:master=none:round_update=stochastic,nvfp4-te";
        compare(make_train_spec(options), 1);
    }
}

TEST_CASE("transformer: steps and evaluations that are given up anywhere and done again change no bit") {
    set_threads(2);
    TrainOptions options;
    options.model = "transformer";
    options.sizes = {{"d", 32}, {"heads", 2}, {"ffn", 48}, {"context", 32}, {"blocks", 1}};
    options.batch = 4;
    options.steps = 4;
    options.recipes = "bf16,delayed:scope=all:act=smooth,nvfp4-te";
    compare(make_train_spec(options), 23);
}

TEST_CASE("an evaluation that was given up is made before the next step") {
    set_threads(2);
    TrainOptions options;
    options.model = "transformer";
    options.sizes = {{"d", 16}, {"heads", 2}, {"ffn", 16}, {"context", 16}, {"blocks", 1}};
    options.batch = 1;
    options.steps = 60;
    options.recipes = "bf16,current";
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    trainer->step(kEvaluationSteps - 1);
    for (int at = 1; trainer->steps_done() < kEvaluationSteps; ++at) step_until(*trainer, 1, at);
    for (const ArmSnapshot& arm : trainer->snapshot().arms) CHECK_FALSE(arm.evaluation);
    trainer->step();
    CHECK(trainer->steps_done() == kEvaluationSteps + 1);
    for (const ArmSnapshot& arm : trainer->snapshot().arms) {
        REQUIRE(arm.evaluation);
        CHECK(arm.evaluation->step == kEvaluationSteps);
    }
}
