#include "core/backend/backend.h"

#include <doctest/doctest.h>

#include "core/base/error.h"

using namespace fp8lab;

TEST_CASE("the CPU backend always works and says what it runs on") {
    const auto backend = cpu_backend();
    CHECK(backend->device().provenance == Provenance::cpu_emulated);
    CHECK(backend->device().name.find(" thread") != std::string::npos);
    TrainOptions options;
    options.layers = std::vector{4, 4, 1};
    auto trainer = backend->make_trainer(make_train_spec(options));
    trainer->step(2);
    CHECK(trainer->steps_done() == 2);
}

TEST_CASE("auto takes the GPU or says why not, cuda is never silently something else") {
    auto cuda = cuda_backend();
    const ChosenBackend chosen = choose_backend("auto");
    REQUIRE(chosen.backend);
    if (cuda) {
        CHECK(chosen.reason.empty());
        CHECK(choose_backend("cuda").backend->device().provenance != Provenance::cpu_emulated);
        return;
    }
    CHECK(chosen.reason == cuda.reason());
    CHECK(chosen.reason.back() == '.');
    CHECK(chosen.backend->device().provenance == Provenance::cpu_emulated);
    try {
        choose_backend("cuda");
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::backend);
        CHECK(error.why() == cuda.reason());
    }
}

TEST_CASE("an unknown backend lists the valid ones") {
    CHECK_THROWS_WITH_AS(choose_backend("gpu"), "--backend: unknown backend 'gpu'; valid: auto cpu cuda",
                         Error);
}
