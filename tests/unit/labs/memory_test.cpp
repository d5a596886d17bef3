// Oracles: the published formulas written out here a second time (Korthikanti et al. 2022, equations 1 and 2;
// ZeRO's 2 + 2 + K), Transformer Engine's documented layer, the seed's table, and recorded bytes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/backend/recording.h"
#include "core/base/error.h"
#include "core/figure/palette.h"
#include "core/figure/words.h"
#include "labs/memory/model.h"
#include "labs/set_fields.h"
#include "tests/fake_gpu.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::memory;

namespace {

double metric_of(const Lab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}
std::string word_of(const Lab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->text;
}

struct Made {
    MemoryLab lab;
    Made(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
    double operator()(std::string_view name) const { return metric_of(lab, name); }
    std::string word(std::string_view name) const { return word_of(lab, name); }
};

bool near(double value, double wanted, double by) { return std::fabs(value - wanted) <= by; }

}  // namespace

TEST_CASE("parameters of the published models, and of the seed's seven billion") {
    struct Row {
        const char* model;
        double parameters, tolerance;
    };
    // Llama 2 7B, Llama 3 8B and 70B: the makers' counts. GPT-3: 174.6 x 10^9 (Brown et al. 2020).
    for (const Row& row : {Row{"llama2-7b", 6'738'415'616, 0}, Row{"llama3-8b", 8'030'261'248, 0},
                           Row{"llama3-70b", 70'553'706'496, 0}, Row{"gpt3-175b", 174.6e9, 0.1e9},
                           Row{"gpt-7b", 6.66e9, 0.01e9}, Row{"seed7b", 7e9, 0}}) {
        CAPTURE(row.model);
        CHECK(near(Made{std::string("model=") + row.model}("parameters"), row.parameters, row.tolerance));
    }
}

TEST_CASE("bytes per parameter of every preset, and GB for seven billion") {
    struct Row {
        const char* plan;
        double bytes, gigabytes;
    };
    for (const Row& row :
         {Row{"fp32", 16, 112}, Row{"bf16", 16, 112}, Row{"bf16-megatron", 18, 126}, Row{"bf16-pure", 8, 56},
          Row{"te", 18, 126}, Row{"te-primary", 16, 112}, Row{"fp8-lm", 8, 56}, Row{"seed-printed", 20, 140},
          Row{"seed", 18, 126}, Row{"seed-offload", 2, 14}, Row{"inference-bf16", 2, 14},
          Row{"inference-fp8", 1, 7}}) {
        CAPTURE(row.plan);
        const Made made{std::string("plan=") + row.plan};
        CHECK(made("bytes_per_parameter") == row.bytes);
        CHECK(near(made("state_gb"), row.gigabytes, 1e-9));
    }
}

TEST_CASE("activations are Korthikanti's 34 s b h + 5 a s^2 b per layer, to the byte") {
    const ModelShape& gpt = *find_model("gpt3-175b");
    const double h = 12288, a = 96, s = 2048, b = 3;
    Load load{.batch = b, .sequence = s, .scores = true};
    const double layer = layer_bytes(gpt, Inputs::bf16, load) * b * s;
    CHECK(layer == 34 * s * b * h + 5 * a * s * s * b);
    CHECK(5 * a * s / h == 80);  // their example: the scores are 80 of 114
    load.recompute = Recompute::selective;
    CHECK(layer_bytes(gpt, Inputs::bf16, load) * b * s == 34 * s * b * h);
    load.recompute = Recompute::full;
    CHECK(layer_bytes(gpt, Inputs::bf16, load) * b * s == 2 * s * b * h);
    // 32 layers of h 4096 at s 4096, from the formula: 18.25 GB.
    const Load selective{.batch = 1, .sequence = 4096, .recompute = Recompute::selective, .scores = true};
    const double seven = 32 * layer_bytes(*find_model("gpt-7b"), Inputs::bf16, selective) * 4096;
    CHECK(near(seven, 18.25e9, 0.01e9));
}

TEST_CASE("a whole model: layers, then norm, head and FP32 logits, full recomputation has one layer whole") {
    const ModelShape& llama = *find_model("llama3-8b");
    const Load load{.batch = 2, .sequence = 1024};
    const double tokens = 2048, h = 4096, f = 14336, v = 128256, kv = 8.0 / 32, a = 32;
    const double layer =
        2 * h + 2 * h + 2 * h + 2 * h + 4 * h * kv + 2 * h + 4 * a + 2 * h + 2 * f + 2 * f + 2 * f;
    CHECK(activation_bytes(llama, Inputs::bf16, load) == tokens * (32 * layer + 4 * (h + v)));
    Load full = load;
    full.recompute = Recompute::full;
    CHECK(activation_bytes(llama, Inputs::bf16, full) == tokens * (32 * 2 * h + layer + 4 * (h + v)));
}

TEST_CASE("what FP8 saves of a layer: only inputs of linears") {
    struct Row {
        const char *model, *attention;
        double wide, narrow;
    };
    for (const Row& row :
         {Row{"gpt-7b", "scores", 34, 27}, Row{"gpt-7b", "flash", 34.03, 29.03},
          Row{"llama2-7b", "flash", 32.16, 28.47}, Row{"llama3-8b", "flash", 34.03, 29.53}}) {
        CAPTURE(row.model);
        CAPTURE(row.attention);
        const Made made{std::string("model=") + row.model, std::string("attention=") + row.attention,
                        "checkpointing=selective"};
        CHECK(near(made("act_compare_sbh"), row.wide, 0.005));
        CHECK(near(made("act_sbh"), row.narrow, 0.005));
        CHECK(made("act_layer_saving_pct") ==
              doctest::Approx(100 * (1 - row.narrow / row.wide)).epsilon(0.01));
    }
    CHECK(near(Made{"model=llama3-70b"}("act_layer_saving_pct"), 13.4, 0.05));
    // Both copies of every input are as large as one in BF16, and flash attention's output comes on top.
    const ModelShape& gpt = *find_model("gpt-7b");
    const Load kept{.recompute = Recompute::selective, .scores = true};
    CHECK(layer_bytes(gpt, Inputs::fp8_both, kept) == layer_bytes(gpt, Inputs::bf16, kept));
}

TEST_CASE("one linear of 1024 x 1024 after its forward pass is what Transformer Engine's page measures") {
    // performance_considerations.rst, "Memory usage": 6 MB in BF16, 6 MB in FP8 with BF16 weights, 3 MB in inference
    // with FP8 weights.
    CHECK(Made{"plan=bf16"}("linear_forward_mib") == 6);
    CHECK(Made{"plan=te"}("linear_forward_mib") == 6);
    CHECK(Made{"plan=inference-fp8"}("linear_forward_mib") == 3);
}

TEST_CASE("the default: 142.9 against 130.9 GB, even at 28 966 tokens") {
    const Made made{};
    CHECK(near(made("gpu_gb"), 142.9, 0.05));
    CHECK(near(made("compare_gpu_gb"), 130.9, 0.05));
    CHECK(near(made("diff_gb"), 12.0, 0.05));
    CHECK(near(made("break_even_tokens"), 28966, 30));
    CHECK(near(Made{"batch=8"}("break_even_tokens"), 28966, 30));
    // At the break-even the two plans are equal.
    const double even = made("break_even_tokens");
    CHECK(near(difference_at(*made.lab->outcome, even), 0, 1e4));
    CHECK(near(Made{"checkpointing=full"}("diff_gb"), 13.9, 0.05));
    CHECK(made("fits") == 1);
    CHECK(Made{"gpu=80"}("fits") == 0);
}

TEST_CASE(
    "the table of the FP8 tutorial: as printed 140 GB, corrected 126, offloaded 14 with 84 on the CPU") {
    CHECK(near(Made{"plan=seed-printed"}("state_gb"), 140, 1e-9));
    const Made corrected{"plan=seed"}, offloaded{"plan=seed-offload"};
    CHECK(near(corrected("gpu_gb"), 126, 1e-9));  // no activations, no workspace
    CHECK(near(corrected("weights_gb"), 7, 1e-9));
    CHECK(near(offloaded("gpu_gb"), 14, 1e-9));
    CHECK(near(offloaded("cpu_gb"), 84, 1e-9));
    CHECK(near(offloaded("offload_s"), 0.56, 1e-9));
    CHECK(near(offloaded("offload_overlapped_s"), 0.28, 1e-9));
    CHECK(corrected("offload_s") == 0);
}

TEST_CASE("ZeRO divides what its stage says: 2 + 2 + 12 / N and so on") {
    const double billions = 7;
    for (const int n : {1, 2, 8, 64}) {
        for (int stage = 0; stage <= 3; ++stage) {
            CAPTURE(n);
            CAPTURE(stage);
            const Made made{"plan=bf16", "compare=te", fmt::format("gpus={}", n),
                            fmt::format("zero={}", stage)};
            const double w = stage >= 3 ? 2.0 / n : 2, g = stage >= 2 ? 2.0 / n : 2,
                         rest = stage >= 1 ? 12.0 / n : 12;
            CHECK(near(made("state_gb"), billions * (w + g + rest), 1e-9));
        }
    }
    const Made te{"gpus=8", "zero=1"};
    CHECK(near(te("gpu_gb"), 69.4, 0.05));
    CHECK(near(te("compare_gpu_gb"), 57.4, 0.05));
    CHECK(near(Made{"gpus=8", "zero=2"}("state_gb"), 40.25, 1e-9));
    // Stage 3 has one layer's weights and copies whole while it is computed: 4 bytes of 1/32 of them.
    const Made third{"gpus=8", "zero=3"};
    CHECK(near(third("state_gb"), 15.75, 1e-9));
    CHECK(near(third("workspace_gb"), 1 + 7.0 * 4 / 32, 1e-9));
}

TEST_CASE("a cell overrides the plan, in any order of the assignments, and offload moves rows") {
    const Made first{"plan=te-primary", "g=e4m3"}, second{"g=e4m3", "plan=te-primary"};
    CHECK(first("gpu_gb") == second("gpu_gb"));
    CHECK(near(first("gradients_gb"), 7, 1e-9));
    CHECK(first.lab->outcome->own.changed);
    CHECK_FALSE(Made{"plan=te", "w=bf16"}.lab->outcome->own.changed);  // as the plan has it
    const Made moments{"offload=optimiser"}, all{"offload=master"}, back{"offload=master", "m_at=gpu"};
    CHECK(near(moments("cpu_gb"), 56, 1e-9));
    CHECK(near(all("cpu_gb"), 84, 1e-9));
    CHECK(near(back("cpu_gb"), 56, 1e-9));
    // The optimiser's states in 8 bits.
    CHECK(Made{"m=e4m3", "v=e4m3"}("bytes_per_parameter") == 12);
    CHECK(Made{"plan=seed-printed", "w=e4m3"}("state_gb") == doctest::Approx(133));
    MemoryLab lab;
    set_field(lab.fields(), "g=e4m3");
    lab->choose_plan("bf16");
    CHECK(metric_of(lab, "gradients_gb") == doctest::Approx(14));
}

TEST_CASE("the KV cache: 2 L kv d_head bytes per token, halved by FP8, and none in training") {
    CHECK(Made{"model=llama3-8b", "plan=inference-bf16"}("kv_bytes_per_token") == 131072);
    CHECK(Made{"model=llama3-8b", "plan=inference-fp8"}("kv_bytes_per_token") == 65536);
    CHECK(Made{"model=llama2-7b", "plan=inference-bf16"}("kv_bytes_per_token") == 524288);
    CHECK(Made{"plan=inference-bf16", "model=llama3-8b", "seq=8192", "contexts=32"}("kv_gb") ==
          doctest::Approx(131072.0 * 8192 * 32 / 1e9));
    CHECK(Made{"kv=bf16"}("kv_gb") == 0);
    CHECK(Made{"plan=inference-fp8"}("activations_gb") == 0);
}

TEST_CASE("where the FP32 value of a weight survives an update") {
    CHECK(Made{}.word("update_path") == "master");
    CHECK(Made{"plan=bf16-pure"}.word("update_path") == "bf16");
    CHECK(Made{"plan=te-primary", "master=none"}.word("update_path") == "none");
    CHECK(Made{"plan=fp32"}.word("update_path") == "master");
    CHECK(Made{"plan=inference-fp8"}.word("update_path") == "inference");
}

TEST_CASE("our own trainer: the formula of weights and rows, and the recorded bytes within 2 %") {
    const Made made{"model=mlp"};
    const double weights = 2 * 4096.0 * 16384, batch = 8192;
    // Values, m, v, gradient: 16 bytes; a BF16 copy of 2, or FP8 copies of 1 + 1, of the first layer only 1.
    const double in = 4096 + 16384, out = 16384 + 4096;
    const double bf16 = 18 * weights + batch * (2 * in + 2 * out + 2 * out + 2 * 16384);
    const double fp8 = 17.5 * weights + batch * (2 * in + 2 * out - 16384 + 2 * out + 2 * 16384);
    CHECK(made("own.bf16_calculated_gb") == doctest::Approx(bf16 / 1e9).epsilon(0.005));
    CHECK(made("own.fp8_calculated_gb") == doctest::Approx(fp8 / 1e9).epsilon(0.005));
    for (const char* arm : {"bf16", "fp8"}) {
        CAPTURE(arm);
        CHECK(std::fabs(made(fmt::format("own.{}_off_pct", arm))) <= 2);
        CHECK(made(fmt::format("own.{}_allocated_gb", arm)) > 3);
    }
    CHECK(made("gpu_gb") == made("own.fp8_calculated_gb"));
    CHECK(made("bytes_per_parameter") == doctest::Approx(17.5));
    CHECK(made("compare_bytes_per_parameter") == doctest::Approx(18));
    CHECK(made.lab.provenance() == Provenance::recorded);
    CHECK_FALSE(made.lab.why_not("seq").empty());
    CHECK(made.lab.why_not("zero").ends_with("."));
}

TEST_CASE("our own transformer: what it takes, and what sharing saves") {
    const Made made{"model=transformer"};
    // 12 (4 d^2 + 3 d ffn) and the embedding, which is the head.
    const double parameters = 12 * (4 * 768.0 * 768 + 3 * 768.0 * 2048) + 50257 * 768.0;
    CHECK(made("parameters") == parameters);
    CHECK(made("master_gb") == doctest::Approx(4e-9 * (parameters + 15 * 768)).epsilon(1e-4));
    CHECK(made("m_gb") == made("master_gb"));
    CHECK(made("gradients_gb") == 0);  // with the activations
    // The head stays in BF16; its copy has padded rows.
    CHECK(made("weights_gb") == doctest::Approx(2e-9 * 50272 * 768));
    CHECK(made("copy_gb") == doctest::Approx(1e-9 * (parameters - 50257 * 768.0)));
    CHECK(made("copy_t_gb") == made("copy_gb"));
    CHECK(made("gpu_gb") == made("own.fp8_calculated_gb"));
    // Streams, their norms, q, k, v, attention's result, gate and up, and what the gate gives, in BF16.
    CHECK(made("activations_gb") > 1e-9 * 8 * 1024 * 12 * 2 * (8 * 768 + 2 * 2048));
    for (const char* arm : {"bf16", "fp8"}) {
        CAPTURE(arm);
        CHECK(made(fmt::format("own.{}_saved_gb", arm)) > 3);
        CHECK(made(fmt::format("own.{}_allocated_gb", arm)) > 5);
        CHECK(std::fabs(made(fmt::format("own.{}_off_pct", arm))) <= 2);
    }
    CHECK(made("own.fp8_calculated_gb") < made("own.bf16_calculated_gb"));
    CHECK(Made{"model=mlp"}("own.fp8_saved_gb") == 0);
    CHECK(made.lab.provenance() == Provenance::recorded);
    MemoryLab lab(test::fake_backends());
    set_fields(lab, std::vector<std::string>{"model=transformer", "gpu=live"});
    CHECK(metric_of(lab, "own.bf16_allocated_gb") > 0);
}

TEST_CASE("the help of PCIe names what the recorded GPU copies") {
    const auto recording = load_recording();
    REQUIRE((recording && recording->grid));
    const double slower = std::max(recording->grid->host_copy.up_ms, recording->grid->host_copy.down_ms);
    const std::string gb_per_second = fmt::format("{:.0f} GB/s", 1.073741824 / slower * 1e3);
    MemoryLab lab;
    const std::vector<Field> fields = lab.fields();
    const std::string& help = find_field(fields, "pcie")->info.help;
    CHECK(help.find(recording->gpu) != std::string::npos);
    CHECK(help.find(gb_per_second) != std::string::npos);
}

TEST_CASE("the allocated bytes and the PCIe of a recorded card are those of its own recording") {
    const Recording* h100 = shipped()->find("h100");
    REQUIRE(h100);
    const RecordedStep* step = h100->step(std::vector{4096, 16384, 4096}, 8192);
    REQUIRE(step);
    MemoryLab lab;
    set_fields(lab, std::vector<std::string>{"model=mlp", "gpu=80"});
    CHECK(lab.device().find(h100->gpu) != std::string::npos);
    for (const auto& [name, recipe] : {std::pair("bf16", "bf16"), std::pair("fp8", "delayed")}) {
        CAPTURE(name);
        CHECK(metric_of(lab, fmt::format("own.{}_allocated_gb", name)) ==
              doctest::Approx(step->find(recipe)->memory_bytes / 1e9));
        CHECK(std::fabs(metric_of(lab, fmt::format("own.{}_off_pct", name))) <= 2);
    }
    const std::vector<Field> fields = lab.fields();
    CHECK(find_field(fields, "pcie")->info.help.find(h100->gpu) != std::string::npos);
    set_fields(lab, std::vector<std::string>{"gpu=24"});  // none of it: the first one's
    CHECK(lab.device().find("NVIDIA H200") != std::string::npos);
}

TEST_CASE("with a GPU the bytes are those of the card, and its size is the line") {
    MemoryLab lab(test::fake_backends());
    set_fields(lab, std::vector<std::string>{"model=mlp", "gpu=live"});
    CHECK(metric_of(lab, "own.bf16_allocated_gb") == doctest::Approx(4.2));
    CHECK(metric_of(lab, "own.fp8_allocated_gb") == doctest::Approx(3.9));
    CHECK(metric_of(lab, "gpu_size_gb") == doctest::Approx(80));
    CHECK(lab.provenance() == Provenance::tensor_core);
    CHECK(lab.device().find("Test double") != std::string::npos);
    lab.act("allocate");
    CHECK(metric_of(lab, "own.fp8_allocated_gb") == doctest::Approx(3.9));
    set_fields(lab, std::vector<std::string>{"gpu=141"});
    lab.reset();
    CHECK(lab->params.gpu == "141");
}

TEST_CASE("a card without room, and no card: the sentence, and nothing changes") {
    MemoryLab full(test::fake_backends({.widest = 1}));
    const double before = metric_of(full, "own.fp8_allocated_gb");
    CHECK_THROWS_WITH_AS(full.act("allocate"), doctest::Contains("7.2 GB are needed"), Error);
    CHECK(metric_of(full, "own.fp8_allocated_gb") == before);
    set_fields(full, std::vector<std::string>{"gpu=80"});  // and the lab goes on
    CHECK(metric_of(full, "gpu_size_gb") == 80);
    MemoryLab none(test::fake_backends({.refusal = "no card in this machine"}));
    CHECK_THROWS_WITH_AS(set_fields(none, std::vector<std::string>{"gpu=live"}), doctest::Contains("no card"),
                         Error);
}

TEST_CASE("on the card of this machine the calculated bytes are the allocated ones") {
    if (const std::string why = gpu_obstacle(); !why.empty()) {
        MESSAGE("skipped: " << why);
        return;
    }
    MemoryLab lab{Backends()};
    set_fields(lab, std::vector<std::string>{"model=mlp", "gpu=live"});
    for (const char* arm : {"bf16", "fp8"}) {
        CAPTURE(arm);
        CHECK(std::fabs(metric_of(lab, fmt::format("own.{}_off_pct", arm))) <= 2);
    }
}

TEST_CASE("a published config.json is counted as its model_type says, and so is its KV cache") {
    const auto with = [](const std::string& config, std::vector<std::string> more) {
        auto lab = std::make_unique<MemoryLab>();
        more.insert(more.begin(), {"model=own", "config=" + config});
        set_fields(*lab, more);
        return lab;
    };
    const std::string llama3 =
        R"({"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 128256, "head_dim": 128, "model_type": "llama"})";
    // Every number of Llama 3 8B is that of the model in L10's own list.
    const auto own = with(llama3, {"plan=te", "batch=2"});
    MemoryLab listed;
    set_fields(listed, std::vector<std::string>{"model=llama3-8b", "plan=te", "batch=2"});
    CHECK(metric_of(*own, "parameters") == 8'030'261'248);
    for (const Metric& metric : listed.metrics()) {
        CAPTURE(metric.name);
        if (metric.text.empty() && !std::isnan(metric.value))
            CHECK(metric_of(*own, metric.name) == metric.value);
    }
    // Experts, and a window of 128 tokens in every second layer: gpt-oss 20B.
    const std::string experts =
        R"({"model_type":"gpt_oss","hidden_size":2880,"num_hidden_layers":24,"num_attention_heads":64,
            "num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"num_local_experts":32,
            "num_experts_per_tok":4,"vocab_size":201088,"sliding_window":128,"tie_word_embeddings":false})";
    const auto infers = with(experts, {"plan=inference-bf16", "seq=131072", "contexts=1"});
    CHECK(metric_of(*infers, "parameters") == 20'914'757'184);
    CHECK(metric_of(*infers, "active_parameters") == 4'187'440'704);
    CHECK(metric_of(*infers, "kv_gb") == doctest::Approx(3.224).epsilon(0.001));
    // There is no rule for what its layers keep: nothing is made up.
    const auto trains = with(experts, {"plan=bf16"});
    CHECK(metric_of(*trains, "activations_counted") == 0);
    CHECK(metric_of(*trains, "activations_gb") == 0);
    CHECK_FALSE(trains->applies("act_counted"));
    CHECK_FALSE(trains->applies("layers"));
    CHECK_THROWS_WITH_AS(with("{}", {}), doctest::Contains("'model_type' is missing"), Error);
}

TEST_CASE("values that cannot be are refused, with the valid ones") {
    MemoryLab lab;
    const auto refused = [&](const char* assignment, const char* why) {
        CHECK_THROWS_WITH_AS(set_fields(lab, std::vector<std::string>{assignment}), doctest::Contains(why),
                             Error);
    };
    refused("w=e2m1", "e4m3");
    refused("plan=fp4", "te-primary");
    refused("seq=100", "512");
    MemoryLab own;
    CHECK_THROWS_AS(set_fields(own, std::vector<std::string>{"model=own", "heads=32", "kv_heads=5"}), Error);
}

TEST_CASE("texts on segments have 4.5:1 in both themes, and totals are the sums of the segments") {
    for (const char* plan : {"te", "bf16", "seed-printed", "fp8-lm", "bf16-megatron"}) {
        const Made made{std::string("plan=") + plan, "act_counted=on"};
        for (const Figure& figure : made.lab.figures()) {
            for (const Series& series : figure.series) {
                const auto* mark = std::get_if<TextMark>(&series.shape);
                if (!mark || !mark->ground) continue;
                for (const Theme theme : {Theme::dark, Theme::light}) {
                    const Rgba ground = blend(rgba(theme, *mark->ground), rgba(theme, {Role::surface}));
                    const double best = std::max(contrast_ratio(rgba(theme, {Role::text}), ground),
                                                 contrast_ratio(rgba(theme, {Role::inverse}), ground));
                    CAPTURE(plan);
                    CAPTURE(mark->text);
                    CHECK(best >= 4.5);
                }
            }
        }
        double sum = 0;
        for (const char* row : {"weights", "copy", "copy_t", "gradients", "accumulator", "master", "m", "v",
                                "activations", "kv", "workspace"})
            sum += made(std::string(row) + "_gb");
        CHECK(sum == doctest::Approx(made("gpu_gb") + made("cpu_gb")));
    }
}

TEST_CASE(
    "a plan that counts no activations is compared without those of the other one, and the words say so") {
    const Made made{"plan=seed"};
    const Outcome& o = *made.lab->outcome;
    // 18 bytes of states against 16, for 7 * 10^9 parameters.
    CHECK(made("diff_gb") == doctest::Approx(14));
    CHECK(made("compare_gpu_gb") == doctest::Approx(130.86).epsilon(0.001));  // of the bar, with activations
    CHECK(finding(o) ==
          "Tutorial takes 14.0 GB more than BF16, activations counted in neither; both keep 84 GB in FP32");
    CHECK(std::isnan(made("break_even_tokens")));
    CHECK(tokens_title(o).find("activations are counted in neither") != std::string::npos);
    for (const double tokens : {512.0, 4096.0, 65536.0})
        CHECK(difference_at(o, tokens) == doctest::Approx(14e9));
    CHECK(cause(o).find("no activations") != std::string::npos);
    // The other way round, and both counted.
    CHECK(Made{"plan=bf16", "compare=seed"}("diff_gb") == doctest::Approx(-14));
    const Made counted{"plan=seed", "act_counted=on"};
    CHECK(counted("diff_gb") == doctest::Approx(counted("gpu_gb") - counted("compare_gpu_gb")));
    CHECK(finding(*counted.lab->outcome).find("neither") == std::string::npos);
}

TEST_CASE(
    "a plan that trains and one that infers have their whole names, and an inference leaves nothing out") {
    const Made made{"plan=inference-fp8", "compare=bf16"};
    CHECK(finding(*made.lab->outcome).starts_with("Inference in FP8 takes "));
    CHECK(finding(*made.lab->outcome).find("less than BF16 mixed") != std::string::npos);
    CHECK(made("diff_gb") == doctest::Approx(made("gpu_gb") - made("compare_gpu_gb")));
}

TEST_CASE("what moves to the CPU is in the comparison's sentence") {
    const Made made{"offload=master"};
    CHECK(made("cpu_gb") == doctest::Approx(84));
    CHECK(finding(*made.lab->outcome).find(" on the GPU, 84.0 GB more in CPU memory") != std::string::npos);
}

TEST_CASE("titles say what the figure shows") {
    CHECK(finding(*Made{}.lab->outcome) == "FP8 takes 12.0 GB more than BF16; both keep 84 GB in FP32");
    CHECK(finding(*Made{"gpu=80"}.lab->outcome) == "FP8: 62.9 GB too much for an H100");
    CHECK(finding(*Made{"gpus=8", "zero=1"}.lab->outcome).find("not sharded") != std::string::npos);
    CHECK(tokens_title(*Made{}.lab->outcome) == "FP8 is smaller from 29\u2009000 tokens per GPU");
    CHECK(tokens_title(*Made{"checkpointing=full"}.lab->outcome).find("is larger at any length") !=
          std::string::npos);
    CHECK(gb_text(2.794e12) == "2794.0 GB");
    CHECK(gb_text(12.4e12) == "12.4 TB");
    for (const Figure& figure : Made{}.lab.figures()) CHECK_FALSE(to_words(figure).empty());
}

TEST_CASE("the lesson's numbers are the lab's") {
    std::set<std::string> computed;
    const auto add = [&](double value, int digits = 0) {
        computed.insert(fmt::format("{:.{}f}", value, digits));
    };
    const Made start{}, bf16{"plan=bf16"}, lm{"plan=fp8-lm"},
        gpt{"model=gpt-7b", "attention=scores", "checkpointing=selective"}, offload{"plan=seed-offload"},
        own{"model=mlp"};
    for (const Made* made : {&start, &bf16, &lm}) add((*made)("bytes_per_parameter"));
    add(bf16("state_gb"));
    add(start("fp32_gb"));
    add(start("copy_gb") + start("copy_t_gb"));
    add(start("act_compare_sbh"), 1);
    add(start("act_sbh"), 1);
    add(start("act_layer_saving_pct"), 1);
    add(gpt("act_layer_saving_pct"), 1);
    add(offload("offload_s"), 2);
    add(own("own.fp8_calculated_gb"), 3);
    add(own("own.fp8_allocated_gb"), 3);
    add(own("own.bf16_calculated_gb"), 3);
    add(own("gpu_size_gb"), 1);
    add(-100 * (own("own.fp8_calculated_gb") / own("own.bf16_calculated_gb") - 1));
    CHECK(tokens_text(start("break_even_tokens")) == "29\u2009000");
    // Bytes of formats, stages of ZeRO, 10^9 and names; the network and what the lesson sets itself.
    for (const char* given : {"1", "2", "3", "4", "8", "10", "9", "7", "16", "25", "6", "29", "000", "1024",
                              "4096", "16384", "8192"})
        computed.insert(given);
    for (const std::string& number : test::lesson_numbers("memory")) {
        CAPTURE(number);
        CHECK(computed.count(number) == 1);
    }
}
