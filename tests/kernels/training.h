// What the tests of the trainer on the GPU share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/files/files.h"
#include "kernels/trainer/trainer.h"
#include "tests/scratch.h"

namespace fp8lab::test {

inline std::shared_ptr<cuda::Device> device() {
    static const auto shared = std::make_shared<cuda::Device>();
    return shared;
}

// L8's training, curriculum.md 3.8.
inline TrainSpec reference(const std::string& recipes, int steps = 200) {
    TrainOptions options;
    options.layers = std::vector{32, 64, 64, 1};
    options.steps = steps;
    options.schedule = "cosine";
    options.recipes = recipes;
    return make_train_spec(options);
}

struct Run {
    std::vector<double> losses;
    ArmSnapshot last;
    std::optional<NonFinite> stopped;
};

inline Run run(Trainer& trainer, int steps, int per_call = 8) {
    Run out;
    for (int done = 0; done < steps; done += per_call) {
        trainer.step(std::min(per_call, steps - done));
        if (done % 64 != 0) continue;
        Snapshot snapshot = trainer.snapshot();
        for (const StepRecord& r : snapshot.arms[0].records) out.losses.push_back(r.loss);
    }
    Snapshot snapshot = trainer.snapshot();
    for (const StepRecord& r : snapshot.arms[0].records) out.losses.push_back(r.loss);
    out.stopped = snapshot.arms[0].stopped;
    out.last = std::move(snapshot.arms[0]);
    return out;
}

// The state of the only arm: weights, moments, scales.
inline std::vector<std::byte> bytes_after(Trainer& trainer, const Scratch& folder, const std::string& name) {
    trainer.save(folder.path / name);
    const std::vector<std::filesystem::path> files{std::filesystem::directory_iterator(folder.path / name),
                                                   {}};
    REQUIRE(files.size() == 1);
    return read_bytes(files.front());
}

}  // namespace fp8lab::test
