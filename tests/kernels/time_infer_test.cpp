// `bench infer` on a GPU: what it measures is there, for each format and for odd shapes.
#include "core/base/error.h"
#include "kernels/infer/time.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;

TEST_CASE("the layers of a served transformer are timed in every format, beside a copy") {
    NEEDS_GPU();
    for (const ServedWeightsInfo& weights : served_weights())
        for (const ServedCache cache : {ServedCache::bf16, ServedCache::e4m3})
            for (const int batch : {1, 3, 8}) {
                CAPTURE(weights.name);
                CAPTURE(batch);
                const InferTime time = cuda::time_infer({.d = 512,
                                                         .heads = 4,
                                                         .kv_heads = 2,
                                                         .ffn = 1040,
                                                         .context = 97,
                                                         .layers = 3,
                                                         .batch = batch,
                                                         .formats = {weights.id, cache}},
                                                        3);
                CHECK(time.median_ms > 0);
                CHECK(time.q1_ms <= time.median_ms);
                CHECK(time.repeats >= 3);
                CHECK(time.copy_ms > 0);
                CHECK(time.memory_bytes > 0);
            }
}

TEST_CASE("a case that no GPU has the memory for is refused with both sizes") {
    NEEDS_GPU();
    try {
        cuda::time_infer({.layers = 1024, .formats = {}}, 1);
        FAIL("no refusal");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::backend);
        CHECK(std::string(error.what()).find("GB were asked for") != std::string::npos);
    }
}
