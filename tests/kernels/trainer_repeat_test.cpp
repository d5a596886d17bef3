// Training on the GPU gives the same bytes run after run, however its steps are launched.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/kernels/gpu.h"
#include "tests/kernels/training.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::test;

namespace {

// The losses of every step and the weights, moments and scales in the end, run once more in other ways.
void check_same_bytes(const TrainSpec& spec, int steps) {
    CAPTURE(spec.arms[0].name);
    CAPTURE(spec.layers);
    const Scratch folder;
    const auto first = cuda::make_cuda_trainer(spec, device());
    const std::vector<double> losses = run(*first, steps).losses;
    const auto bytes = bytes_after(*first, folder, "first");
    REQUIRE(losses.size() == static_cast<std::size_t>(steps));
    REQUIRE(bytes.size() > 1000);
    struct Variant {
        std::string name;
        cuda::Launching launching;
        int per_call;
    };
    for (const auto& [name, launching, per_call] : {Variant{"again", cuda::Launching::graphs, 8},
                                                    Variant{"one step a launch", cuda::Launching::graphs, 1},
                                                    Variant{"no graph", cuda::Launching::one_by_one, 8}}) {
        CAPTURE(name);
        const auto other = cuda::make_cuda_trainer(spec, device(), launching);
        const std::vector<double> found = run(*other, steps, per_call).losses;
        const auto differs = std::mismatch(found.begin(), found.end(), losses.begin()).first - found.begin();
        CHECK_MESSAGE(found == losses, "from step " << differs << " on");
        CHECK(bytes_after(*other, folder, name) == bytes);
    }
}

}  // namespace

TEST_CASE("200 steps give the same bytes again, with and without graphs, one and eight steps a launch") {
    NEEDS_GPU();
    for (const std::string recipe :
         {"bf16", "delayed", "current", "rowwise", "block128", "mxfp8", "delayed:round_bwd=stochastic",
          "bf16:wgrad=bf16", "int8:master=none:round_update=stochastic", "nvfp4-te",
          "nvfp4:rht=1:target=4or6:wide=first"})
        check_same_bytes(reference(recipe), 200);
    TrainSpec narrow = reference("bf16");
    narrow.state = StateType::bf16;
    check_same_bytes(narrow, 200);
}

// One step a launch has nothing to overlap with: equal bytes say that nothing is read too late or written too
// early.
TEST_CASE("steps that overlap give the bytes of steps one at a time") {
    NEEDS_GPU();
    const auto spec = [](const std::string& task, std::vector<int> layers, const std::string& recipe) {
        TrainOptions options;
        options.task = task;
        options.layers = std::move(layers);
        options.batch = 32;  // the update multiplies the weight gradient itself
        options.steps = 80;
        options.recipes = recipe;
        return make_train_spec(options);
    };
    for (const std::string recipe : {"bf16", "delayed", "current", "bf16:wgrad=bf16"}) {
        check_same_bytes(spec("noise", {768, 3072, 768}, recipe), 80);  // too large for statistics a step
        check_same_bytes(spec("noise", {64, 64}, recipe), 80);
        check_same_bytes(spec("teacher", {64, 128, 48, 80, 32}, recipe), 80);  // a new batch in every step
        check_same_bytes(spec("spiral", {2, 64, 64, 2}, recipe), 80);          // classes
    }
}
