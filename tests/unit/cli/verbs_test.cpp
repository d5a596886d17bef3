// The verbs end to end on small inputs, against values of numerics.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (!line.starts_with("#")) lines.push_back(line);
    return lines;
}

}  // namespace

TEST_CASE("cast writes NVIDIA's bytes, decode reads them back") {
    const Finished cast = fp8lab("cast --to e4m3 -i - -o -", bytes_of({448, 464, 1000, -0.0F, 1, 0.001F}));
    CHECK(cast.code == 0);
    CHECK(cast.out == std::string("\x7E\x7E\x7E\x80\x38\x01", 6));
    const Finished nosat =
        fp8lab("cast --to e5m2 --overflow nonsaturate -i - -o -", bytes_of({57344, 61440}));
    CHECK(nosat.out == "\x7B\x7C");
    const Finished back = fp8lab("decode --from e4m3 -i - -o -", std::string("\x7E\x38\x01", 3));
    CHECK(back.out == bytes_of({448, 1, 0x1p-9F}));
    CHECK(fp8lab("cast --to bf16 -i - -o -", bytes_of({1})).out == "\x80\x3F");
    CHECK(fp8lab("cast --to e4m3 --scale 224 -i - -o -", bytes_of({2})).out == "\x7E");
}

TEST_CASE("a stochastic cast repeats for its seed and differs for another") {
    const std::string input = bytes_of(std::vector<float>(1000, 17.3F));
    const std::string first = fp8lab("cast --to e4m3 --round stochastic --seed 7 -i - -o -", input).out;
    CHECK(first.size() == 1000);
    CHECK(first == fp8lab("cast --to e4m3 --round stochastic --seed 7 -i - -o -", input).out);
    CHECK(first != fp8lab("cast --to e4m3 --round stochastic --seed 8 -i - -o -", input).out);
}

TEST_CASE("codes lists every code of a format with its exact value") {
    const auto lines = lines_of(fp8lab("codes e4m3 --csv").out);
    REQUIRE(lines.size() == 257);  // header and 256 codes
    CHECK(lines[1 + 0x7E].find("448") != std::string::npos);
    CHECK(lines[1 + 0x01].find("0.001953125") != std::string::npos);
}

TEST_CASE("formats gives the facts of the table as JSON") {
    const json table = parsed(fp8lab("formats e4m3 e5m2 --json").out);
    const std::string text = table.dump();
    CHECK(text.find("448") != std::string::npos);
    CHECK(text.find("57344") != std::string::npos);
    CHECK(text.find("61440") != std::string::npos);
}

TEST_CASE("simulate gives the trace of Transformer Engine's order") {
    const Finished run = fp8lab("simulate --amax - --history 4 --csv", "2\n4\n3\n100\n2\n2\n2\n2\n2\n");
    CHECK(run.code == 0);
    const auto lines = lines_of(run.out);
    REQUIRE(lines.size() == 10);
    CHECK(lines[0] == "step,amax,scale_used,amax_scaled,saturates,history,scale_next");
    CHECK(lines[1] == "0,2,1,2,0,0 0 0 2,224");
    CHECK(lines[2] == "1,4,224,896,1,0 0 2 4,112");
    CHECK(lines[3] == "2,3,112,336,0,0 2 4 3,112");
    CHECK(lines[4] == "3,100,112,11200,1,0 4 3 100,4.48");
    CHECK(lines[5] == "4,2,4.48,8.96,0,0 3 100 2,4.48");
    CHECK(lines[6] == "5,2,4.48,8.96,0,0 100 2 2,4.48");
    CHECK(lines[7] == "6,2,4.48,8.96,0,0 2 2 2,4.48");
    CHECK(lines[8] == "7,2,4.48,8.96,0,0 2 2 2,224");
    CHECK(lines[9] == "8,2,224,448,0,0 2 2 2,224");
}

TEST_CASE(
    "on the notebook's ramp simulate and L5 agree: 11 of 16 steps, none at margin 1, none in its order") {
    const std::string series = FP8LAB_SOURCE "/assets/series/notebook_ramp.txt";
    for (const std::string margin : {"0", "1"}) {
        const auto rows = parsed(
            fp8lab("simulate --json --history 16 --margin " + margin + " --amax " + quoted(series)).out);
        const auto lab =
            parsed(fp8lab("run delayed --set scenario=ramp --set history=16 --set margin=" + margin).out);
        std::istringstream scales(lab["metrics"]["a.scales"].get<std::string>());
        int saturated = 0;
        for (const auto& row : rows["steps"]) {
            double scale = 0;
            scales >> scale;
            CHECK(scale == row["scale_used"].get<double>());
            saturated += row["saturates"].get<int>();
        }
        CHECK(saturated == (margin == "0" ? 11 : 0));
        CHECK(lab["metrics"]["a.saturated_steps"] == saturated);
        CHECK(lab["metrics"]["b.saturated_steps"] == 0);
    }
}

TEST_CASE("train writes the columns of cli.md and repeats itself in all but the time") {
    const Scratch scratch;
    const std::string command = "train --recipe bf16,delayed:history=4 --layers 32,16,1 --steps 20 --csv ";
    REQUIRE(fp8lab(command + (scratch / "a.csv")).code == 0);
    REQUIRE(fp8lab(command + (scratch / "b.csv")).code == 0);
    const auto a = lines_of(slurp(scratch / "a.csv")), b = lines_of(slurp(scratch / "b.csv"));
    REQUIRE(a.size() == 41);
    CHECK(a[0].starts_with(
        "step,recipe,loss,accuracy,step_ms,amax_x1,scale_x1,underflow_pct_x1,overflow_pct_x1,amax_w1,"));
    CHECK(
        a[0].ends_with("amax_dy2,scale_dy2,underflow_pct_dy2,overflow_pct_dy2,"  // and the newer ones
                       "lost_l1_pct_x1,lost_energy_pct_x1,lost_l1_pct_w1,lost_energy_pct_w1,"
                       "lost_l1_pct_dy1,lost_energy_pct_dy1,lost_l1_pct_x2,lost_energy_pct_x2,"
                       "lost_l1_pct_w2,lost_energy_pct_w2,lost_l1_pct_dy2,lost_energy_pct_dy2,"
                       "sqnr_db_x1,sqnr_db_w1,sqnr_db_dy1,sqnr_db_x2,sqnr_db_w2,sqnr_db_dy2,"
                       "moved_pct_w1,product_error_pct_w1,moved_pct_w2,product_error_pct_w2"));
    for (const std::string& line : a) CHECK(std::ranges::count(line, ',') == 4 + 6 * 6 + 6 + 2 * 2);
    const auto without_time = [](const std::string& line) {
        std::vector<std::string> cells;
        std::istringstream in(line);
        for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
        cells.at(4).clear();
        return cells;
    };
    REQUIRE(b.size() == a.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(without_time(a[i]) == without_time(b[i]));
    CHECK(slurp(scratch / "a.csv").find("delayed:history=4") != std::string::npos);
}

TEST_CASE("a run that becomes non-finite stops that arm, names the tensor and fails only when asked to") {
    const Scratch scratch;
    const std::string command = "train --recipe bf16,delayed:overflow=nonsaturate --steps 20 --json ";
    CHECK(fp8lab(command + (scratch / "run.json")).code == 0);
    CHECK(fp8lab(command + (scratch / "run.json") + " --fail-on-nan").code == 1);
    const std::string text = slurp(scratch / "run.json");
    const json run = parsed(text);
    CHECK(text.find("first_nonfinite") != std::string::npos);
    for (const char* member : {"provenance", "device", "version", "seed"}) CHECK(run.contains(member));
}

TEST_CASE("a BF16 run resumes as FP8 and the other way round") {
    const Scratch scratch;
    REQUIRE(fp8lab("train --recipe bf16 --layers 32,16,1 --steps 50 --save " + (scratch / "bf16")).code == 0);
    const Finished fp8 = fp8lab("train --recipe delayed --layers 32,16,1 --steps 70 --resume " +
                                (scratch / "bf16") + " --save " + (scratch / "fp8"));
    CAPTURE(fp8.err);
    CHECK(fp8.code == 0);
    CHECK(fp8lab("train --recipe bf16 --layers 32,16,1 --steps 90 --resume " + (scratch / "fp8")).code == 0);
    CHECK(fp8lab("train --recipe bf16 --layers 32,8,1 --steps 90 --resume " + (scratch / "fp8")).code == 4);
}

TEST_CASE("run gives a lab's numbers and figures without a window") {
    const Scratch scratch;
    const Finished run = fp8lab("run L1 --export " + (scratch / "out"));
    CHECK(run.code == 0);
    const json result = parsed(run.out);
    CHECK(result["lab"] == "bits");
    CHECK(result["metrics"].size() > 3);
    REQUIRE(result["files"].size() >= 2);
    for (const auto& file : result["files"]) CHECK(slurp(file).size() > 100);
}

TEST_CASE("every JSON says on which device, by which version, from which seed its numbers come") {
    for (const char* arguments :
         {"doctor --json", "list labs --json", "list formats --json", "list recipes --json",
          "formats e4m3 --json", "simulate --amax - --json",
          "watch " FP8LAB_SOURCE "/assets/runs/tiny-swiglu.jsonl --json", "run bits",
          "run train --set seed=7 --steps 2", "train --recipe bf16 --steps 1 --json -",
          "bench step --layers 4,4 --batch 2 --repeat 1 --json"}) {
        CAPTURE(arguments);
        const json out = parsed(fp8lab(arguments, "1\n").out);
        CHECK(out["provenance"] == "cpu-emulated");
        CHECK(out["device"].get<std::string>().size() > 0);
        CHECK(out["version"] == fp8lab("--version").out.substr(7, out["version"].get<std::string>().size()));
        CHECK(out["seed"].is_number_unsigned());
    }
    CHECK(parsed(fp8lab("run train --set seed=7").out)["seed"] == 7);
}

TEST_CASE("the global options stand before the verb or after it") {
    for (const char* arguments :
         {"--threads 1 run bits", "run --threads 1 bits", "run bits --threads 1", "run bits --threads=1"}) {
        CAPTURE(arguments);
        const Finished run = fp8lab(arguments);
        CHECK(run.code == 0);
        CHECK(parsed(run.out)["device"].get<std::string>().find(", 1 thread,") != std::string::npos);
    }
}

TEST_CASE("a lab goes by its number or its word, in any case") {
    const std::string bits = fp8lab("run bits").out;
    for (const char* name : {"L1", "l1", "1", "BITS", "Bits"})
        CHECK(fp8lab("run " + std::string(name)).out == bits);
}

TEST_CASE("memory gives the JSON of run L10, for a model of the table and for a published config.json") {
    CHECK(fp8lab("memory --plan te-primary --model llama3-8b --set batch=2 --json").out ==
          fp8lab("run L10 --set plan=te-primary --set model=llama3-8b --set batch=2").out);
    const Scratch folder;
    const std::string config = folder / "config.json";
    std::ofstream(config)
        << R"({"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": true})";
    const json own = parsed(fp8lab("memory --plan bf16 --json --model " + quoted(config)).out);
    CHECK(own["metrics"]["parameters"] == 1'235'814'400);
    CHECK(own["metrics"]["gpu_gb"] ==
          parsed(fp8lab("run L10 --set plan=bf16 --set model=own --set kind=llama --set layers=16 --set "
                        "hidden=2048 --set ffn=8192 --set heads=32 --set kv_heads=8 --set vocab=128256 "
                        "--set tied=on")
                     .out)["metrics"]["gpu_gb"]);
    const Finished in_table = fp8lab("memory --plan bf16 --model " + quoted(config));
    CHECK(in_table.out.find("parameters                        1.236 G") != std::string::npos);
    const Finished no_effect = fp8lab("memory --plan bf16 --set layers=2 --model " + quoted(config));
    CHECK(no_effect.code == 2);
    CHECK(no_effect.err == "fp8lab: --set layers: the config.json decides it\n");
    const Finished table = fp8lab("memory --plan seed-offload");
    CHECK(table.code == 0);
    CHECK(table.out.find("on the GPU                       14.000 GB") != std::string::npos);
    CHECK(table.out.find(
              "the GPU has                     150.100 GB\nfits into the GPU                   yes\n") !=
          std::string::npos);
    CHECK(parsed(fp8lab("run L10").out)["provenance"] == "recorded");
}

TEST_CASE("plan tells the products of a published model's step, FLOP and MFU, as a table and as JSON") {
    const Scratch folder;
    const std::string config = folder / "config.json";
    std::ofstream(config)
        << R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false})";
    const std::string call = "plan " + quoted(config) + " --gpu h100 --batch 1 --seq 8192";
    const json causal = parsed(fp8lab(call + " --json --tokens-per-second 9600").out);
    CHECK(causal["products"].size() == 12);
    CHECK(causal["ratio_error"] == 0.08);
    CHECK(causal["ratio"].get<double>() * causal["speedup"].get<double>() == doctest::Approx(1));
    CHECK(causal["speedup"].get<double>() > 1.7);
    CHECK(causal["speedup"].get<double>() < 2.1);
    CHECK(causal["peak_tflops"] == 989);
    CHECK(causal["mfu"].get<double>() == doctest::Approx(51.47e9 * 9600 / 989e12).epsilon(1e-3));
    const json full =
        parsed(fp8lab(call + " --json --full-attention --peak 1979 --tokens-per-second 9600").out);
    CHECK(full["mfu"].get<double>() == doctest::Approx(57.9e9 * 9600 / 1979e12).epsilon(1e-3));
    CHECK(full["products"] == causal["products"]);
    CHECK(parsed(fp8lab(call + " --json").out)["mfu"].is_null());
    for (const auto& [more, why] :
         {std::pair(" --recipe mxfp8", "valid: delayed"), std::pair(" --batch 0", "--batch")}) {
        const Finished refused =
            fp8lab("plan " + quoted(config) + " --gpu h100 --seq 8" + more +
                   (std::string(more).find("batch") == std::string::npos ? " --batch 1" : ""));
        CHECK(refused.code == 2);
        CHECK(refused.err.find(why) != std::string::npos);
    }
    const Finished table = fp8lab(call + " --recipe block128");
    CHECK(table.code == 0);
    CHECK(table.err.empty());
    for (const char* words :
         {"gate_up          wgrad     28672     4096     8192", "+-8 %",
          "6.4 G in attention (causal) = 51.5 G", "MFU 100 % of 989 TFLOP/s, dense: 19215 tokens/s"})
        CHECK(table.out.find(words) != std::string::npos);
}
