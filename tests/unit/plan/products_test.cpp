#include "core/plan/products.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/backend/grid_plan.h"
#include "core/base/error.h"
#include "core/plan/flop.h"
#include "tests/unit/plan/published.h"

using namespace fp8lab;
using namespace fp8lab::plan;

namespace {

ModelSize published(const std::string& name) {
    const auto found = std::ranges::find(kPublished, name, &PublishedModel::name);
    REQUIRE(found != std::end(kPublished));
    return read_model_size(found->config, name);
}

const Recording& recorded(const std::string& id) {
    const Recording* found = shipped()->find(id);
    REQUIRE(found);
    return *found;
}

ModelSize blocks_as_model(const RecordedBlocks& blocks) {
    const auto at = [&](const char* name) { return blocks.sizes.at(name); };
    return read_model_size(
        fmt::format(
            R"({{"model_type": "llama", "num_hidden_layers": {}, "hidden_size": {}, "intermediate_size": {},
                 "num_attention_heads": {}, "vocab_size": 1000}})",
            at("blocks"), at("d"), at("ffn"), at("heads")),
        "blocks");
}

std::size_t products_of(const std::string& name) {
    return step_products(published(name), {1, 8192, "delayed"}, recorded("h100")).products.size();
}

}  // namespace

TEST_CASE("ratios of all recorded blocks are within the error that is told, milliseconds within 22 %") {
    int arms = 0;
    for (const Recording& gpu : shipped()->recordings)
        for (const RecordedBlocks& blocks : gpu.blocks) {
            if (blocks.steps > 0) continue;
            const double bf16 = blocks.step.find("bf16")->part_ms("GEMM");
            for (const RecordedArm& arm : blocks.step.arms) {
                if (std::ranges::find(grid_recipes(), arm.recipe) == grid_recipes().end()) continue;
                CAPTURE(gpu.id);
                CAPTURE(blocks.name());
                CAPTURE(arm.recipe);
                const ModelSize model = blocks_as_model(blocks);
                const StepProducts step =
                    step_products(model, {blocks.step.batch, blocks.sizes.at("context"), arm.recipe}, gpu);
                const double measured = arm.part_ms("GEMM") / bf16;
                CHECK(std::fabs(step.ratio() / measured - 1) < step.error);
                CHECK(std::fabs(step.fp8_ms / arm.part_ms("GEMM") - 1) < 0.22);
                CHECK(std::fabs(step.bf16_ms / bf16 - 1) < 0.22);
                // What is told of a whole step is that arm's own, with the ratio of the products changed.
                REQUIRE(step.parts.size() >= 1);
                CHECK(step.parts[0].gemm_share > 0.4);
                CHECK(step.parts[0].gemm_share < 0.9);
                ++arms;
            }
        }
    CHECK(arms >= 12);
}

TEST_CASE(
    "the products of a layer: twelve, fifteen with latent attention, eighteen where queries are latent too") {
    CHECK(products_of("Llama-3.1-8B") == 12);
    CHECK(products_of("Phi-2") == 12);
    CHECK(products_of("MiniCPM3-4B") == 18);
    // One dense layer at the start, shared experts and experts: an MLP of each.
    CHECK(products_of("DeepSeek-V2-Lite") == 3 * (3 + 2 + 2 + 2));
    const StepProducts llama =
        step_products(published("Llama-3.1-8B"), {2, 4096, "current"}, recorded("h200"));
    const StepProduct &qkv = llama.products[0], &down = llama.products[11];
    CHECK(qkv.linear == "qkv");
    CHECK(qkv.m == 8192);
    CHECK(qkv.n == 6144);
    CHECK(qkv.k == 4096);
    CHECK(qkv.count == 32);
    CHECK(down.product == "wgrad");
    CHECK(down.m == 4096);
    CHECK(down.n == 14336);
    CHECK(down.k == 8192);
    CHECK_FALSE(qkv.far);
}

TEST_CASE("a recorded product has the recorded time, and what is far away says so") {
    const Recording& gpu = recorded("h100");
    const auto config = [](int d, int ffn) {
        return read_model_size(
            fmt::format(
                R"({{"model_type": "gpt_neox", "num_hidden_layers": 1, "hidden_size": {}, "intermediate_size": {},
                             "num_attention_heads": 1, "vocab_size": 10}})",
                d, ffn),
            "c");
    };
    const StepProducts step = step_products(config(4096, 16384), {1, 2048, "rowwise"}, gpu);
    const auto up = std::ranges::find(step.products, std::string("up"), &StepProduct::linear);
    REQUIRE(up != step.products.end());
    CHECK(up->bf16_ms == doctest::Approx(gpu.grid->point("fprop", 2048, 16384, 4096, "bf16")->median_ms));
    CHECK(up->fp8_ms == doctest::Approx(gpu.grid->point("fprop", 2048, 16384, 4096, "row")->median_ms));
    CHECK(step.error == 0.08);
    CHECK(step.far_share == 0);
    CHECK(step_products(config(64, 256), {1, 2048, "delayed"}, gpu).far_share == 1);
    CHECK_THROWS_WITH_AS(step_products(config(72, 256), {1, 64, "delayed"}, gpu),
                         doctest::Contains("multiples of 16"), Error);
    // The file and its field, not the model_type.
    CHECK_THROWS_WITH_AS(step_products(config(72, 256), {1, 64, "delayed"}, gpu, "my/config.json"),
                         doctest::Contains("my/config.json: 'hidden_size'"), Error);
    CHECK_THROWS_WITH_AS(step_products(config(64, 200), {1, 64, "delayed"}, gpu, "c"),
                         doctest::Contains("c: 'intermediate_size'"), Error);
    for (const StepProduct& p : step_products(config(64, 256), {1, 2048, "delayed"}, gpu).products)
        CHECK(p.far);
    CHECK(step_products(config(64, 256), {1, 2048, "delayed"}, gpu).parts.empty());
}

TEST_CASE("rows of an expert are padded, to 128 for blocks, and no step is told of experts") {
    const ModelSize moe = published("Qwen3-30B-A3B");  // 8 of 128
    const auto rows = [&](int tokens, const char* recipe) {
        const StepProducts step = step_products(moe, {1, tokens, recipe}, recorded("h200"));
        CHECK(step.parts.empty());
        return std::ranges::find(step.products, std::string("expert gate_up"), &StepProduct::linear)->m;
    };
    CHECK(rows(8192, "delayed") == 512);
    CHECK(rows(8200, "delayed") == 528);
    CHECK(rows(8200, "block128") == 640);
    CHECK(rows(1, "current") == 16);
    // One token goes to 8 of the 128 experts of each of 48 layers: the others do nothing.
    const StepProducts one = step_products(moe, {1, 1, "delayed"}, recorded("h200"));
    const auto expert = std::ranges::find(one.products, std::string("expert gate_up"), &StepProduct::linear);
    CHECK(expert->count == 48 * 8);
    CHECK(one.products[0].m == 16);
}

TEST_CASE("FLOP of a token: Llama 3.1 8B at 8,192 tokens, with and without the causal mask") {
    const ModelSize llama = published("Llama-3.1-8B");
    const TokenFlop causal = training_flop(llama, 8192, true), full = training_flop(llama, 8192, false);
    CHECK(causal.matrices == 6 * (llama.parameters - llama.embedding - (2 * 32 + 1) * 4096.0));
    CHECK(causal.attention == 6.0 * 32 * 32 * 128 * 8192);
    CHECK(full.attention == 2 * causal.attention);
    CHECK(causal.all() / 1e9 == doctest::Approx(51.5).epsilon(0.001));
    CHECK(full.all() / 1e9 == doctest::Approx(57.9).epsilon(0.001));
    CHECK(mfu(causal, 19215, 989.5) == doctest::Approx(1).epsilon(0.001));
    // A window bounds the keys: Mistral 7B has 4,096.
    const ModelSize mistral = published("Mistral-7B-v0.1");
    CHECK(training_flop(mistral, 4096, true).attention == 6.0 * 32 * 4096 * 4096);
    CHECK(training_flop(mistral, 32768, false).attention == 12.0 * 32 * 4096 * 4096);
    double keys = 0;  // counted one by one
    for (int i = 0; i < 32768; ++i) keys += std::min(i + 0.5, 4096.0);
    CHECK(training_flop(mistral, 32768, true).attention ==
          doctest::Approx(12.0 * 32 * 4096 * keys / 32768).epsilon(1e-6));
}

TEST_CASE(
    "the matrices of all published models are their parameters but for vectors and the embedding table") {
    for (const PublishedModel& model : kPublished) {
        CAPTURE(model.name);
        const ModelSize size = read_model_size(model.config, model.name);
        const double matrices = size.matrices + (size.tied ? 0 : size.embedding);
        CHECK(matrices < size.active);
        CHECK(matrices > 0.99 * size.active);
    }
}

TEST_CASE("what cannot be planned is refused") {
    const ModelSize llama = published("Llama-3.1-8B");
    const Recording& gpu = recorded("h100");
    CHECK_THROWS_WITH_AS(step_products(llama, {1, 1, "mxfp8"}, gpu), doctest::Contains("block128"), Error);
    CHECK_THROWS_AS(step_products(llama, {0, 1, "delayed"}, gpu), Error);
    CHECK_THROWS_AS(step_products(llama, {1 << 20, 1 << 20, "delayed"}, gpu), Error);
    Recording without = gpu;
    without.grid.reset();
    CHECK_THROWS_WITH_AS(step_products(llama, {1, 1, "delayed"}, without), doctest::Contains("no products"),
                         Error);
}
