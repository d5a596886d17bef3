// What a transformer's arm allocates, and what of it shares memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "core/nn/memory/lists.h"
#include "core/nn/models/transformer/model.h"

using namespace fp8lab;
using namespace fp8lab::cuda;

namespace {

TrainSpec model(int d, int heads, int ffn, int context, int blocks, int batch, int vocabulary = 256,
                bool tied = false) {
    TrainSpec spec;
    spec.model = "transformer";
    spec.task = TaskKind::text;
    spec.vocabulary = vocabulary;
    spec.batch = batch;
    spec.sizes = {{"d", d},      {"heads", heads},     {"kv-heads", 0},   {"ffn", ffn},
                  {"tie", tied}, {"context", context}, {"blocks", blocks}};
    return spec;
}

ArmMemory memory_of(const TrainSpec& spec, const std::string& recipe, Sharing sharing = Sharing::all) {
    const Engine engine = recipe.starts_with("bf16")    ? Engine::bf16
                          : recipe.starts_with("nvfp4") ? Engine::emulated
                                                        : Engine::fp8;
    return {spec,   parse_recipe(recipe), engine, spec.batch, materialised_attention(spec, spec.batch),
            sharing};
}

bool in_pool(const Allocation& one) { return !one.life.always(); }

// No two that a phase uses both have a byte in common.
void check_places(std::span<const Allocation> list, std::size_t pool) {
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Allocation& a = list[i];
        if (!in_pool(a)) continue;
        CHECK(a.offset % 512 == 0);
        CHECK(a.offset + a.bytes <= pool);
        for (std::size_t j = i + 1; j < list.size(); ++j) {
            const Allocation& b = list[j];
            const bool together = in_pool(b) && a.life.first <= b.life.last && b.life.first <= a.life.last;
            if (together && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
                FAIL("allocations ", i, " and ", j, " overlap");
        }
    }
}

}  // namespace

TEST_CASE("places in a pool: no two that live at once overlap, for 300 random lists") {
    std::mt19937 dice(7);
    const auto up_to = [&](int n) { return static_cast<int>(dice() % static_cast<unsigned>(n)); };
    for (int round = 0; round < 300; ++round) {
        std::vector<Allocation> list(static_cast<std::size_t>(1 + up_to(60)));
        std::size_t sum = 0;
        for (Allocation& one : list) {
            one.bytes = static_cast<std::size_t>(1 + up_to(1 << (4 + up_to(16))));
            const int first = up_to(40);
            if (up_to(8) > 0) one.life = {first, std::min(39, first + up_to(20))};
            if (in_pool(one)) sum += (one.bytes + 511) / 512 * 512;
        }
        std::vector<Allocation> again = list;
        const std::size_t pool = place_in_pool(list);
        check_places(list, pool);
        CHECK(pool <= sum);
        CHECK(pool >= most_at_once(list));
        CHECK(place_in_pool(again) == pool);
        CHECK(std::ranges::equal(list, again, {}, &Allocation::offset, &Allocation::offset));
    }
}

TEST_CASE("what a pool needs, counted by hand") {
    const auto of = [](std::size_t bytes, Life life) {
        return Allocation{ArmPart::qkv, 0, TensorClass::x, bytes, life};
    };
    std::vector<Allocation> one_by_one = {of(1024, {0, 1}), of(2048, {2, 3}), of(512, {4, 4})};
    CHECK(place_in_pool(one_by_one) == 2048);
    std::vector<Allocation> together = {of(1024, {0, 2}), of(2048, {2, 3}), of(512, {3, 4})};
    CHECK(place_in_pool(together) == 3072);  // an end and a beginning in the same phase meet
    CHECK(most_at_once(together) == 3072);
    std::vector<Allocation> always = {of(1024, {}), of(100, {0, 0})};
    CHECK(place_in_pool(always) == 512);
}

TEST_CASE("a transformer's lists: places are valid, the pool is as small as any, and what matters is kept") {
    for (const std::string recipe : {"bf16", "delayed", "rowwise", "block128", "mxfp8", "nvfp4-te",
                                     "bf16:wgrad=bf16", "delayed:act=smooth", "delayed:wide=1.down"})
        for (const bool tied : {false, true}) {
            CAPTURE(recipe);
            CAPTURE(tied);
            const TrainSpec spec = model(64, 2, 192, 64, 4, 4, 97, tied);
            const ArmMemory shared = memory_of(spec, recipe), apart = memory_of(spec, recipe, Sharing::none);
            check_places(shared.allocations(), shared.pool_bytes());
            CHECK(static_cast<double>(shared.pool_bytes()) <=
                  1.02 * static_cast<double>(most_at_once(shared.allocations())));
            CHECK(apart.pool_bytes() == 0);
            CHECK(shared.requested_bytes() < apart.requested_bytes());
            REQUIRE(shared.allocations().size() == apart.allocations().size());
            const int end = std::ranges::max(shared.allocations(), {}, [](const Allocation& a) {
                                return a.life.last;
                            }).life.last;
            for (const Allocation& one : shared.allocations()) {
                const bool state = one.part == ArmPart::master || one.part == ArmPart::m ||
                                   one.part == ArmPart::v || one.part == ArmPart::stats ||
                                   one.part == ArmPart::scale_inv || one.part == ArmPart::results;
                // Casts of weights are the next step's.
                if (state || one.tensor == TensorClass::w) CHECK(one.life.always());
                // The optimiser reads it on another stream.
                if (one.part == ArmPart::weight_gradient) CHECK(one.life.last == end);
                CHECK(apart.bytes(one.part, one.layer, one.tensor) == one.bytes);
            }
        }
}

TEST_CASE("a block of d 32 with two sequences of 16, counted by hand") {
    const TrainSpec spec = model(32, 2, 48, 16, 1, 2);
    const ArmMemory bf16 = memory_of(spec, "bf16"), fp8 = memory_of(spec, "delayed");
    const ModelPlan plan = transformer_plan(transformer_shape(spec));
    const auto of = [&](const ArmMemory& memory, ArmPart part, const char* tensor) {
        const TensorId id = *plan.find(tensor);
        return memory.bytes(part, id.index + 1, plan.tensor(id).tensor);
    };
    constexpr std::size_t kRows = 2 * 16;
    CHECK(bf16.bytes(ArmPart::qkv, 1) == kRows * 96 * 2);
    CHECK(bf16.bytes(ArmPart::gates, 1) == kRows * 96 * 2);
    CHECK(bf16.bytes(ArmPart::attention_kept, 1) == 2 * 2 * 16 * 16 * 4);
    CHECK(bf16.bytes(ArmPart::logits) == kRows * 256 * 2);
    CHECK(of(bf16, ArmPart::first, "1.qkv.x") == kRows * 32 * 2);
    CHECK(of(bf16, ArmPart::second, "1.qkv.x") == 0);
    CHECK(of(bf16, ArmPart::first, "1.out.x") == 0);    // read where attention leaves it
    CHECK(of(bf16, ArmPart::first, "1.down.dy") == 0);  // the stream's gradient
    CHECK(of(fp8, ArmPart::first, "1.out.x") == kRows * 32);
    CHECK(of(fp8, ArmPart::second, "1.out.x") == kRows * 32);
    CHECK(of(fp8, ArmPart::first, "head.x") == kRows * 32 * 2);  // the head stays in BF16
    CHECK(of(fp8, ArmPart::first, "1.gate_up.w") == 96 * 32);
    CHECK(bf16.bytes(ArmPart::head_gradient) == 0);
    const TrainSpec tied = model(32, 2, 48, 16, 1, 2, 256, true);
    CHECK(memory_of(tied, "bf16").bytes(ArmPart::head_gradient) == 256 * 32 * 4);
}

TEST_CASE("small models and odd numbers of tokens share nothing") {
    CHECK_FALSE(memory_of(model(64, 4, 192, 64, 2, 16), "bf16", Sharing::by_size).shares());
    const TrainSpec large = model(768, 12, 2048, 1024, 12, 8);
    CHECK(memory_of(large, "bf16", Sharing::by_size).shares());
    CHECK_FALSE(memory_of(large, "bf16", Sharing::none).shares());
    CHECK_FALSE(memory_of(model(768, 12, 2048, 1023, 12, 1), "bf16", Sharing::all).shares());
    TrainSpec mlp;
    CHECK_FALSE(ArmMemory(mlp, parse_recipe("bf16"), Engine::bf16, 16, {}, Sharing::all).shares());
}

TEST_CASE("large models need a third to half less memory where it is shared") {
    for (const std::string recipe : {"bf16", "delayed"}) {
        CAPTURE(recipe);
        const TrainSpec spec = model(768, 12, 2048, 1024, 12, 8);
        const auto bytes = [&](Sharing sharing) {
            return static_cast<double>(memory_of(spec, recipe, sharing).device_bytes());
        };
        CHECK(bytes(Sharing::all) < 0.66 * bytes(Sharing::none));
    }
}
