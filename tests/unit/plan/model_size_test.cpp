#include "core/plan/model_size.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/error.h"
#include "core/plan/architecture.h"
#include "tests/unit/plan/published.h"

using namespace fp8lab;
using namespace fp8lab::plan;

namespace {

std::string llama(const std::string& more = "", const std::string& type = R"("model_type": "llama", )") {
    return "{" + type +
           R"("num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
              "vocab_size": 100)" +
           more + "}";
}

void refused(const std::string& config, const char* why) {
    CAPTURE(config);
    CHECK_THROWS_WITH_AS(read_model_size(config, "c.json"), doctest::Contains(why), Error);
}

}  // namespace

TEST_CASE("twenty published models have the parameters of transformers' models, to the last one") {
    for (const PublishedModel& model : kPublished) {
        CAPTURE(model.name);
        const ModelSize size = read_model_size(model.config, model.name);
        CHECK(size.parameters == model.parameters);
        CHECK(size.active == model.active);
        CHECK(2 * size.kv_numbers(1) == model.kv_bytes_per_token);
        CHECK(2 * size.kv_numbers(131072) == model.kv_bytes);
        CHECK(read_model_size(compact_config(model.config, "c"), "c") == size);
    }
    // What a maker calls active: gpt-oss counts 3.6 G, without the embedding table.
    const auto& oss = *std::ranges::find(kPublished, std::string("gpt-oss-20b"), &PublishedModel::name);
    const ModelSize size = read_model_size(oss.config, "c");
    CHECK(size.active - size.embedding == doctest::Approx(3.6e9).epsilon(0.01));
}

TEST_CASE("every row of the table is a published model's") {
    for (const Architecture& row : architectures()) {
        CAPTURE(row.type);
        if (row.type == "gemma") continue;  // Gemma 2 without what is its own
        CHECK(std::ranges::any_of(kPublished, [&](const PublishedModel& model) {
            return read_model_size(model.config, "c").model_type == row.type;
        }));
    }
}

TEST_CASE("what is not known is refused by name, and nothing is guessed") {
    refused(llama("", ""), "'model_type' is missing: parameters are not guessed; known: llama, mistral");
    refused(llama("", R"("model_type": "falcon9", )"), "model_type 'falcon9' is not known");
    refused(llama("", R"("model_type": 7, )"), "'model_type' is missing");
    refused(llama("", R"("model_type": "nemotron_h", )"),
            "model_type 'nemotron_h' is not counted: Mamba layers");
    refused(llama("", R"("model_type": "qwen3_next", )"), "linear attention");
    refused(llama("", R"("model_type": "deepseek_v4", )"), "compressed attention");
    refused(llama("", R"("model_type": "t5", )"), "an encoder and a decoder");
    refused(llama("", R"("model_type": "gemma2", "sliding_window": null, )"), "'sliding_window' is missing");
    refused(llama("", R"("model_type": "mixtral", )"), "'num_local_experts' is missing");
    refused(llama(R"(, "num_local_experts": 4, "num_experts_per_tok": 5)", R"("model_type": "mixtral", )"),
            "'num_experts_per_tok' is 5, there are 4 experts");
    refused(llama("", R"("model_type": "minicpm3", )"), "'kv_lora_rank' is missing");
}

TEST_CASE("a config that is broken is refused with the size that is wrong") {
    refused("[1", "c.json");
    refused("[]", "not an object");
    refused("{}", "'model_type' is missing");
    refused(R"({"model_type": "llama"})", "'num_hidden_layers' is missing");
    refused(R"({"model_type": "llama", "num_hidden_layers": 1e9})", "'num_hidden_layers'");
    refused(R"({"model_type": "llama", "num_hidden_layers": -1})", "'num_hidden_layers'");
    refused(llama(R"(, "num_key_value_heads": 3)"), "3 KV heads do not divide 4 heads");
    refused(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 65, "intermediate_size": 1,
                "num_attention_heads": 4, "vocab_size": 9})",
            "4 heads do not divide a hidden size of 65");
}

TEST_CASE("of a model with a vision part the language part is counted, and that is said") {
    const std::string inner =
        R"("hidden_size": 2560, "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4,
           "head_dim": 256, "intermediate_size": 10240, "vocab_size": 262208, "sliding_window": 1024)";
    const std::string config =
        R"({"model_type": "gemma3", "vision_config": {"hidden_size": 1152}, "text_config": {)" + inner + "}}";
    const ModelSize size = read_model_size(config, "c");
    CHECK(size.model_type == "gemma3_text");
    CHECK(size.parameters == 3'880'263'168);
    CHECK(size.note == "The language part alone: nothing of the vision part is counted.");
    CHECK(read_model_size(compact_config(config, "c"), "c") == size);
    refused(R"({"model_type": "mllama", "text_config": {"model_type": "llama"}})", "cross-attention");
    const ModelSize predicting = read_model_size(
        R"({"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
            "intermediate_size": 128, "moe_intermediate_size": 32, "n_routed_experts": 8,
            "num_experts_per_tok": 2, "first_k_dense_replace": 1, "vocab_size": 100,
            "num_nextn_predict_layers": 1})",
        "c");
    CHECK(predicting.note == "The layers for multi-token prediction are not counted.");
}

TEST_CASE("what a config leaves out is as transformers takes it for its model_type") {
    // As google/gemma-3-4b-it has it: no heads, no vocabulary.
    const ModelSize gemma = read_model_size(
        R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
            "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024}})",
        "c");
    CHECK(gemma.parameters == 3'880'263'168);
    const ModelSize deepseek = read_model_size(
        R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
            "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8,
            "num_attention_heads": 128, "num_hidden_layers": 61, "kv_lora_rank": 512, "q_lora_rank": 1536,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "vocab_size": 129280})",
        "c");
    CHECK(deepseek.parameters == 671'026'404'352);
    CHECK(deepseek.active == 37'552'282'624);
}

TEST_CASE("an entry of the config changes what it says, and by how much") {
    const auto parameters = [](const std::string& more, const std::string& type = "llama") {
        return read_model_size(llama(more, R"("model_type": ")" + type + R"(", )"), "c").parameters;
    };
    const double d = 64, f = 128, layers = 2, vocabulary = 100, plain = parameters("");
    CHECK(plain == 2 * vocabulary * d + d + layers * (4 * d * d + 3 * d * f + 2 * d));
    CHECK(parameters(R"(, "tie_word_embeddings": true)") == plain - vocabulary * d);
    CHECK(parameters(R"(, "attention_bias": true)") == plain + layers * 4 * d);
    CHECK(parameters(R"(, "mlp_bias": true)") == plain + layers * (2 * f + d));
    CHECK(parameters(R"(, "head_dim": 32)") == plain + layers * 4 * d * d);  // twice the attention
    CHECK(parameters(R"(, "num_key_value_heads": 1)") == plain - layers * 2 * d * (d - d / 4));
    CHECK(parameters("", "qwen2") == plain + layers * 3 * d);
    // Half of Qwen3's layers with experts, and one of the rest named as dense: the experts of layer 3 alone.
    const std::string experts = R"(, "num_hidden_layers": 4, "num_experts": 8, "moe_intermediate_size": 32,
                                     "num_experts_per_tok": 2, "decoder_sparse_step": 2, "mlp_only_layers": [1])";
    const ModelSize sparse = read_model_size(
        R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
            "vocab_size": 100)" +
            experts + "}",
        "c");
    CHECK(sparse.parameters - sparse.active == 6 * 3 * d * 32);
}
