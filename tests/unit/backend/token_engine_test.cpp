// Formats of a served model, what its layers read, and backends that have no engine.
#include "core/backend/token_engine.h"

#include <doctest/doctest.h>

#include "core/backend/backend.h"
#include "core/backend/infer_case.h"
#include "core/base/error.h"

using namespace fp8lab;

TEST_CASE("formats of a served model are found by their names, and no others") {
    for (const ServedWeightsInfo& info : served_weights()) {
        CHECK(find_served_weights(info.name) == info.id);
        CHECK(&info_of(info.id) == &info);
    }
    CHECK(served_weights_names() == "bf16, e4m3, e4m3-row, e4m3-weight-only");
    for (const ServedCache cache : {ServedCache::bf16, ServedCache::e4m3})
        CHECK(find_served_cache(to_string(cache)) == cache);
    CHECK(served_cache_names() == "bf16, e4m3");
    CHECK_THROWS_AS(find_served_weights("e4m3-tensor"), Error);
    CHECK_THROWS_AS(find_served_cache("one"), Error);
}

TEST_CASE("the bytes of Llama-3-8B's layer are those that L17's specification counts") {
    InferCase of{.layers = 1, .formats = {ServedWeights::e4m3_row, ServedCache::bf16}};
    CHECK(weight_bytes(of) == 218'103'808);
    CHECK(cache_bytes(of) == 8'388'608);
    of.formats = {ServedWeights::bf16, ServedCache::e4m3};
    of.batch = 64;
    CHECK(weight_bytes(of) == 2.0 * 218'103'808);
    CHECK(cache_bytes(of) == 64 * 8'388'608 / 2.0);
}

TEST_CASE("the CPU reads no tokens for generate, and has no times of inference") {
    const auto cpu = cpu_backend();
    const auto kind_of = [](const auto& call) {
        try {
            call();
        } catch (const Error& error) {
            return error.kind();
        }
        return ErrorKind::failed;
    };
    CHECK(kind_of([&] { cpu->make_token_engine({}); }) == ErrorKind::backend);
    CHECK(kind_of([&] { cpu->time_infer({}, 1); }) == ErrorKind::backend);
}
