#include "core/backend/recording.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "core/base/error.h"

using namespace fp8lab;

namespace {

const std::string kWhole = R"({"gpu": "NVIDIA H200", "driver": "580.95", "cuda": "13.0", "date": "2026-11-21",
  "command": "fp8lab bench step --backend cuda --json", "results": [
    {"bench": "gemm", "whatever": 1},
    {"bench": "step", "layers": [1024, 4096, 1024], "batch": 4096, "arms": [
      {"recipe": "bf16", "median_ms": 1.5, "iqr_ms": 0.01, "tflops": 400, "more": "is allowed"},
      {"recipe": "delayed", "median_ms": 1.0, "iqr_ms": 0, "tflops": 600}]},
    {"bench": "accumulate", "lines": [
      {"data": "uniform", "k": 4096, "fast": true, "rel_rms": 0.066, "rel_bias": -0.065},
      {"data": "normal", "k": 256, "fast": false, "rel_rms": 1e-4, "rel_bias": 0}]}]})";

std::string changed(const std::string& from, const std::string& to) {
    std::string text = kWhole;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a recording says where its numbers come from and how they compare") {
    const Recording recording = parse_recording(kWhole, "h200.json");
    CHECK(recording.gpu == "NVIDIA H200");
    CHECK(recording.date == "2026-11-21");
    REQUIRE(recording.steps.size() == 1);
    const RecordedStep& step = recording.steps[0];
    CHECK(step.layers == std::vector{1024, 4096, 1024});
    CHECK(step.batch == 4096);
    CHECK(step.find("delayed")->tflops == 600);
    CHECK(step.speedup("delayed") == 1.5);
    CHECK(step.find("current") == nullptr);
    CHECK(step.speedup("current") == 0);
}

TEST_CASE("a recording has its steps by size, in whatever order they were measured") {
    const auto sizes = [](const std::string& text) {
        std::vector<std::pair<int, int>> out;
        for (const RecordedStep& step : parse_recording(text, "h200.json").steps)
            out.emplace_back(step.layers.front(), step.batch);
        return out;
    };
    const std::string arms = R"("arms": [{"recipe": "bf16", "median_ms": 1, "iqr_ms": 0, "tflops": 1}]})",
                      larger = R"({"bench": "step", "layers": [2048, 2048], "batch": 32, )" + arms,
                      more = R"({"bench": "step", "layers": [1024, 4096, 1024], "batch": 8192, )" + arms;
    CHECK(sizes(changed("{\"bench\": \"gemm\"", larger + ", " + more + ", {\"bench\": \"gemm\"")) ==
          std::vector<std::pair<int, int>>{{1024, 4096}, {1024, 8192}, {2048, 32}});
}

TEST_CASE("a recording holds what the accumulation lost") {
    const auto lines = parse_recording(kWhole, "h200.json").accumulation;
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].data == "uniform");
    CHECK(lines[0].k == 4096);
    CHECK(lines[0].fast);
    CHECK(lines[0].rel_rms == 0.066);
    CHECK(lines[0].rel_bias == -0.065);
    CHECK_FALSE(lines[1].fast);
}

TEST_CASE("a recording that is not whole is refused with the place") {
    const auto refused = [](const std::string& text, const char* place) {
        try {
            parse_recording(text, "h200.json");
            FAIL("no error for " << place);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            CHECK(error.where() == "h200.json");
            CHECK_MESSAGE(error.why().find(place) != std::string::npos, error.why());
        }
    };
    refused("[]", "the file");
    refused(kWhole.substr(0, 100), "line 2");
    refused(changed("\"gpu\": \"NVIDIA H200\"", "\"gpu\": \"\""), "'gpu' is empty");
    refused(changed("\"date\": \"2026-11-21\",", ""), "'date' is missing");
    refused(changed("\"batch\": 4096", "\"batch\": 0.5"), "'results[1].batch'");
    refused(changed("[1024, 4096, 1024]", "[1024, -1]"), "'results[1].layers[1]' is not an integer");
    refused(changed("\"median_ms\": 1.0", "\"median_ms\": 0"), "'results[1].arms[1].median_ms' is 0");
    refused(changed("\"median_ms\": 1.5", "\"median_ms\": \"1.5\""), "'results[1].arms[0].median_ms'");
    refused(changed("\"bench\": \"gemm\"", "\"bench\": \"gem\""), "is 'gem'; valid: step");
    refused(changed("\"fast\": true", "\"fast\": 1"), "'results[2].lines[0].fast' is neither true nor false");
    refused(changed("\"rel_bias\": 0}", "\"rel_bias\": null}"),
            "'results[2].lines[1].rel_bias' is not a number");
    refused(changed("\"rel_rms\": 0.066", "\"rel_rms\": -1"), "'results[2].lines[0].rel_rms'");
    refused(changed("\"k\": 256", "\"k\": 0"), "'results[2].lines[1].k'");
    refused(changed("\"arms\": [", "\"arms\": [], \"old\": ["), "'results[1].arms' is empty");
}

TEST_CASE("a recorded pass of inference says its case, and what is wrong with it by its place") {
    const std::string infer = R"({"bench": "infer", "shape": [64, 4, 2, 96, 128, 3], "batch": 2, "tokens": 1,
      "weights": "e4m3-row", "kv": "e4m3", "median_ms": 0.5, "iqr_ms": 0, "copy_gb_per_s": 2,
      "date": "2026-11-28"}, {"bench": "gemm")";
    const auto parsed = [&](const std::string& from, const std::string& to) {
        std::string text = infer;
        text.replace(text.find(from), from.size(), to);
        return parse_recording(changed("{\"bench\": \"gemm\"", text), "h200.json");
    };
    const Recording recording = parsed("", "");
    REQUIRE(recording.infer.size() == 1);
    const RecordedInfer& run = recording.infer.front();
    CHECK(run.of.kv_heads == 2);
    CHECK(run.of.layers == 3);
    CHECK(run.of.formats.weights == ServedWeights::e4m3_row);
    CHECK(run.tokens_per_s() == 4000);
    // Q and out of 64 x 64, K and V of 32 x 64, three of 96 x 64, a byte each; K and V of 128 positions, 2 heads of 16.
    const double bytes = 3 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64) + 3 * 2 * 2 * 128 * 2 * 16;
    CHECK(run.floor_ms() == doctest::Approx(bytes / 2e6));
    const auto refused = [&](const std::string& from, const std::string& to, const std::string& place) {
        try {
            parsed(from, to);
            FAIL("no error for " << place);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            CHECK_MESSAGE(error.why().find(place) != std::string::npos, error.why());
        }
    };
    refused("\"e4m3-row\"", "\"e4m3-rows\"", "'results[0].weights'");
    refused("\"kv\": \"e4m3\"", "\"kv\": \"fp8\"", "'results[0].kv'");
    refused("[64, 4, 2, 96, 128, 3]", "[64, 4]", "'results[0].shape");
    refused("\"median_ms\": 0.5", "\"median_ms\": 0", "'results[0].median_ms' is 0");
    refused("\"copy_gb_per_s\": 2", "\"copy_gb_per_s\": -2", "'results[0].copy_gb_per_s'");
}

TEST_CASE("the shipped recordings: the H200 first, the H100 with the same benches") {
    const auto all = shipped();
    REQUIRE(all->problem.empty());
    REQUIRE(all->recordings.size() >= 2);
    CHECK(all->recordings.front().id == "h200");
    CHECK(all->find("none") == nullptr);
    const Recording *h200 = all->find("h200"), *h100 = all->find("h100");
    REQUIRE(h100);
    CHECK(h100->gpu == "NVIDIA H100 80GB HBM3");
    CHECK(h100->accumulation.size() == h200->accumulation.size());
    REQUIRE((h100->grid && h200->grid));
    CHECK(h100->grid->recorded_layers() == h200->grid->recorded_layers());
    for (const RecordedStep& step : h200->steps) {
        CAPTURE(step.layers);
        CAPTURE(step.batch);
        CHECK(h100->step(step.layers, step.batch));
    }
    REQUIRE(h100->blocks.size() == h200->blocks.size());
    for (std::size_t i = 0; i < h200->blocks.size(); ++i) {
        const RecordedBlocks &one = h200->blocks[i], &other = h100->blocks[i];
        CHECK(one.name() == other.name());
        CHECK(one.steps == other.steps);
        CHECK(one.step.speedup("delayed") > 1);
        CHECK(other.step.speedup("delayed") > 1);
    }
    // The training of 124 million parameters: a step's sums have one order on both cards.
    CHECK(h200->blocks.back().vocabulary == 50257);
    CHECK(h200->blocks.back().held_out == h100->blocks.back().held_out);
}

TEST_CASE(
    "a recorded training of a transformer: times, memory and losses of each arm, and what is missing is "
    "told") {
    const std::string text =
        R"({"gpu": "NVIDIA H200", "driver": "580", "cuda": "13.0", "date": "2026-11-23", "command": "record",
            "results": [{"bench": "train", "date": "2026-11-23", "batch": 8, "steps_done": 200,
              "sizes": {"d": 768, "blocks": 12, "context": 1024}, "language": {"vocabulary": 50257},
              "arms": [{"recipe": "bf16", "median_step_ms": 16.5, "iqr_step_ms": 0.3, "memory_bytes": 6e9,
                        "parts_ms": {"GEMM": 10.2}, "held_out": {"loss": 8.01}}]}]})";
    const Recording recording = parse_recording(text, "x.json");
    REQUIRE(recording.blocks.size() == 1);
    const RecordedBlocks& run = recording.blocks[0];
    CHECK((run.steps == 200 && run.vocabulary == 50257 && run.step.batch == 8));
    CHECK(run.step.find("bf16")->median_ms == 16.5);
    CHECK(run.step.find("bf16")->memory_bytes == 6e9);
    CHECK(run.held_out == std::vector<double>{8.01});
    std::string without = text;
    without.replace(without.find("held_out"), 8, "held_in_");
    CHECK_THROWS_WITH_AS(parse_recording(without, "x.json"), doctest::Contains("results[0].arms[0]"), Error);
}

TEST_CASE("a GPU's short name tells two cards apart") {
    CHECK(short_gpu_name("NVIDIA H200") == "H200");
    CHECK(short_gpu_name("NVIDIA H100 80GB HBM3") == "H100");
    CHECK(short_gpu_name("NVIDIA GeForce RTX 4090") == "GeForce RTX 4090");
    CHECK(short_gpu_name("").empty());
}

TEST_CASE("why FP8: its bytes, and the step that it makes faster by the largest factor, with GPU and date") {
    const std::string bytes =
        "Why FP8: a number takes 1 byte instead of the 2 of BF16, and tensor cores multiply it faster.";
    CHECK(why_fp8(std::nullopt) == bytes);
    CHECK(
        why_fp8(parse_recording(kWhole, "h200.json")) ==
        bytes +
            " On an NVIDIA H200 (2026-11-21) a training step took 1.00 ms in FP8 and 1.50 ms in BF16 (layers "
            "1024-4096-1024, batch 4096).");
    CHECK(why_fp8(parse_recording(changed("\"median_ms\": 1.0", "\"median_ms\": 1.6"), "slower.json")) ==
          bytes);
    CHECK(why_fp8(load_recording()).find("NVIDIA H200 (2026-") != std::string::npos);
}
