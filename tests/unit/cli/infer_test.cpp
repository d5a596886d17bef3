// fp8lab infer on what train --save writes.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "process.h"
#include "tests/json.h"

namespace {

const std::string kDigits = quoted(FP8LAB_SOURCE "/assets/models/digits-s1.safetensors") + " ";

nlohmann::json json_of(const std::string& arguments) {
    const auto result = fp8lab("infer " + arguments + " --json");
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    return parsed(result.out);
}

// 6 rows of 4 columns and their one-hot classes of 2.
void spit_data(const Scratch& scratch, const std::string& name, int columns = 4) {
    std::vector<float> x, y;
    for (int i = 0; i < 6 * columns; ++i) x.push_back(static_cast<float>((i * 7) % 11) / 11);
    for (int i = 0; i < 6; ++i) y.push_back(i % 2 == 0), y.push_back(i % 2 == 1);
    spit(scratch / (name + "x.npy"), npy("<f4", "(6, " + std::to_string(columns) + ")", bytes_of(x)));
    spit(scratch / (name + "y.npy"), npy("<f4", "(6, 2)", bytes_of(y)));
}

}  // namespace

TEST_CASE("train --task digits, then infer: the network that was saved, on the digits kept for tests") {
    const Scratch scratch;
    REQUIRE(
        fp8lab("train --backend cpu --task digits --recipe fp32 --steps 150 --save " + scratch / "m").code ==
        0);
    const auto json = json_of(scratch / "m/1-fp32.safetensors" + " --weights fp32 --activations fp32");
    CHECK(json.at("rows") == 449);
    CHECK(json.at("network") == "64-128-64-32-10");
    CHECK(json.at("divergence") == 0);
    CHECK(json.at("changed") == 0);
    CHECK(json.at("bits") == 32);
    CHECK(json.at("accuracy_pct").get<double>() > 80);
    CHECK(json.at("layers").at(1).at("sqnr_db_w").is_null());  // exact
}

TEST_CASE("infer tells the layers, the cascade and all mixes, in JSON, CSV and a table") {
    const auto json = json_of(kDigits +
                              "--weights mxfp6-e2m3,mxfp4,mxfp6-e2m3,mxfp6-e2m3 --activations "
                              "mxfp6-e2m3,mxfp4,mxfp6-e2m3,mxfp6-e2m3 --cascade mxfp4,mxfp8,0.9 --all-mixes");
    CHECK(json.at("provenance") == "cpu-emulated");
    CHECK(json.at("bits").get<double>() == doctest::Approx(5.376).epsilon(1e-3));
    CHECK(json.at("divergence").get<double>() == doctest::Approx(0.0052).epsilon(0.05));
    CHECK(json.at("layers").size() == 4);
    CHECK(json.at("layers").at(1).at("weights") == "mxfp4");
    double share = 0;
    for (const auto& layer : json.at("layers")) share += layer.at("share_pct").get<double>();
    CHECK(share == doctest::Approx(100));
    CHECK(json.at("cascade").at("cost").get<double>() ==
          doctest::Approx(0.5 + json.at("cascade").at("repeated_pct").get<double>() / 100));
    const auto& mixes = json.at("mixes");
    CHECK(mixes.at("count") == 4096);
    CHECK(mixes.at("best_within").at("divergence").get<double>() <= json.at("divergence").get<double>());
    CHECK(mixes.at("worst_within").at("divergence") > mixes.at("median_within"));
    double bits = 0, divergence = 1e9;
    for (const auto& point : mixes.at("frontier")) {
        CHECK(point.at("bits").get<double>() > bits);
        CHECK(point.at("divergence").get<double>() < divergence);
        bits = point.at("bits"), divergence = point.at("divergence");
    }
    const auto rows = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
    CHECK(rows(fp8lab("infer " + kDigits + "--weights nvfp4 --csv").out) == 1 + 4);
    CHECK(rows(fp8lab("infer " + kDigits + "--weights nvfp4 --csv --all-mixes").out) == 1 + 4096);
    const auto table = fp8lab("infer " + kDigits + "--weights nvfp4");
    CHECK(table.out.starts_with("64-128-64-32-10, 449 test digits\n"));
    CHECK(table.out.find("bits                       4.507\n") != std::string::npos);
    CHECK(table.out == fp8lab("infer " + kDigits + "--weights nvfp4").out);
}

TEST_CASE("infer lowers a transformer: its linears and its head, on held-out tokens") {
    const Scratch scratch;
    REQUIRE(
        fp8lab(
            "train --backend cpu --model transformer --d 32 --blocks 1 --heads 2 --ffn 96 --recipe delayed "
            "--steps 40 --save " +
            scratch / "m")
            .code == 0);
    const std::string file = scratch / "m/1-delayed.safetensors";
    const auto json =
        json_of(file + " --weights mxfp8,mxfp8,nvfp4,mxfp8,bf16 --activations mxfp8 --calibrate 2");
    CHECK(json.at("network") == "transformer, 5 layers");
    CHECK(json.at("rows") == 4096);
    CHECK(json.at("layers").at(2).at("name") == "1.gate_up");
    CHECK(json.at("layers").at(2).at("sensitivity") > json.at("layers").at(1).at("sensitivity"));
    CHECK(json.at("layers").at(4).at("weights") == "bf16");
    CHECK(json.at("divergence").get<double>() > 0);
    CHECK(fp8lab("infer " + file + " --weights e4m3").out.find("\n1.qkv ") != std::string::npos);
    const std::string int8 = file + " --weights int8 --activations int8 ";
    CHECK(json_of(int8 + "--smooth 0.5").at("divergence") != json_of(int8).at("divergence"));
    CHECK(json_of(int8 + "--calibrate 2 --percentile 99").at("layers").at(0).at("saturated_pct_a") > 0);
    for (const char* refused : {"--data npy:a,b", "--train npy:a,b", "--all-mixes"}) {
        const auto result = fp8lab("infer " + file + " --weights e4m3 " + refused);
        CHECK(result.code == 2);
        CHECK(result.err.find("multilayer perceptrons") != std::string::npos);
    }
}

TEST_CASE("infer mixes the tokens of a transformer, and says what as many at random cost") {
    const std::string file = quoted(FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors"),
                      mixed = file + " --mixed-tokens mxfp8,nvfp4 ";
    const auto json = json_of(mixed);
    CHECK(json.at("rows") == 4096);
    CHECK(json.at("important") == "attention");
    CHECK(json.at("share") == 0.25);
    CHECK(json.at("weight_bits").get<double>() == doctest::Approx(12.75).epsilon(1e-3));
    CHECK(json.at("activation_bits").get<double>() ==
          doctest::Approx(0.25 * 8.25 + 0.75 * 4.5).epsilon(1e-3));
    REQUIRE(json.at("random_draws").size() == 3);
    double mean = 0;
    for (const auto& draw : json.at("random_draws")) mean += draw.get<double>() / 3;
    CHECK(json.at("random_divergence").get<double>() == doctest::Approx(mean));
    CHECK(json.at("ratio").get<double>() == doctest::Approx(json.at("divergence").get<double>() / mean));
    CHECK(json.at("divergence") > json.at("divergence_high"));
    CHECK(json.at("divergence") < json.at("divergence_low"));
    CHECK_FALSE(json.contains("by_layer"));
    const auto oracle = json_of(mixed + "--important oracle --share 0.5 --seed 2 --by-layer");
    CHECK(oracle.at("ratio").get<double>() < 0.8);
    CHECK(oracle.at("random_draws") != json_of(mixed + "--share 0.5").at("random_draws"));
    const auto& layers = oracle.at("by_layer");
    CHECK(layers.at("subsets") == 256);
    CHECK(layers.at("rows") == 1536);
    CHECK(layers.at("share").get<double>() <= 0.5);
    CHECK(layers.at("divergence") < layers.at("divergence_low"));
    const auto table = fp8lab("infer " + mixed + "--by-layer");
    CHECK(table.out.find("\nratio ") != std::string::npos);
    CHECK(table.out.find("of 256 subsets with at most that share: 1.qkv,2.qkv\n") != std::string::npos);
    const auto refused = [](const std::string& call, const char* why) {
        const auto result = fp8lab("infer " + call);
        CHECK(result.code == 2);
        CHECK(result.out.empty());
        CHECK_MESSAGE(result.err.find(why) != std::string::npos, result.err);
    };
    refused(kDigits + "--mixed-tokens mxfp8,nvfp4", "is for models of tokens");
    refused(file + " --mixed-tokens mxfp8", "takes HIGH,LOW");
    refused(file + " --mixed-tokens mxfp8,e4m4", "unknown format 'e4m4'");
    refused(mixed + "--important size", "valid: attention confidence");
    refused(mixed + "--share 1.5", "--share");
    refused(mixed + "--weights nvfp4", "--weights");
    refused(mixed + "--csv", "--csv");
    refused(file + " --weights nvfp4 --share 0.5", "--mixed-tokens");
}

TEST_CASE("the samples of the Workbench are models that infer, generate and train --resume take") {
    const std::string sample = quoted(FP8LAB_SOURCE "/assets/models/transformer-600.safetensors");
    const auto out = json_of(sample + " --weights mxfp8");
    CHECK(out.at("layers").size() == 17);     // four in each of four blocks, and the head
    CHECK(out.at("accuracy_fp32_pct") > 45);  // it has learnt: 2 % by chance
    CHECK(out.at("divergence") < 0.01);
    const Finished text = fp8lab("generate --resume " + sample + " --characters 30 --temperature 0");
    CHECK(text.code == 0);
    CHECK(text.out.starts_with("a gradient "));
    const Scratch scratch;
    const std::string more =
        "train --backend cpu --recipe fp32 --task text --model transformer --blocks 4 --batch 8 --lr 0.005 "
        "--schedule cosine --beta2 0.95 --clip 1 --steps 601 --resume ";
    const Finished on = fp8lab(more + sample + " --csv -");
    REQUIRE(on.code == 0);
    const auto row = on.out.find("\n600,fp32,");
    REQUIRE(row != on.out.npos);
    CHECK(std::stod(on.out.substr(row + 10)) <
          1.6);  // it goes on where it was: its weights and moments are read
}

TEST_CASE("the greedy path goes from MXFP8 to MXFP4 everywhere, in JSON, CSV and a table") {
    const auto path = json_of(kDigits + "--weights nvfp4 --activations nvfp4 --greedy").at("greedy");
    REQUIRE(path.size() == 1 + 3 * 4);
    CHECK(path.front().at("weights") == nlohmann::json({"mxfp8", "mxfp8", "mxfp8", "mxfp8"}));
    CHECK(path.back().at("weights") == nlohmann::json({"mxfp4", "mxfp4", "mxfp4", "mxfp4"}));
    CHECK(path.back().at("divergence") ==
          json_of(kDigits + "--weights mxfp4 --activations mxfp4").at("divergence"));
    for (std::size_t i = 1; i < path.size(); ++i) CHECK(path[i].at("bits") < path[i - 1].at("bits"));
    const auto csv = fp8lab("infer " + kDigits + "--weights nvfp4 --greedy --csv").out;
    CHECK(csv.starts_with("bits,divergence,weights_1,weights_2,weights_3,weights_4\n8.25,"));
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 13);
    const auto table = fp8lab("infer " + kDigits + "--weights nvfp4 --greedy").out;
    CHECK(table.find("mxfp8,mxfp8,mxfp8,mxfp8\n") != std::string::npos);
}

TEST_CASE("a percentile saturates what is above it, and 100 is the amax") {
    const std::string int8 = kDigits + "--weights int8 --activations int8 --calibrate 4 ";
    const auto whole = json_of(int8), same = json_of(int8 + "--percentile 100"),
               most = json_of(int8 + "--percentile 99");
    CHECK(whole.at("divergence") == same.at("divergence"));
    double saturated = 0;
    for (std::size_t l = 0; l < 4; ++l) {
        const double pct = most.at("layers").at(l).at("saturated_pct_a");
        CHECK(pct < 3);
        saturated += pct;
    }
    CHECK(saturated > 1);
}

TEST_CASE("calibration, margin and smoothing act on the activations") {
    const std::string int8 = kDigits + "--weights int8 --activations int8 ";
    const double dynamic = json_of(int8).at("divergence"),
                 fixed = json_of(int8 + "--calibrate 4").at("divergence"),
                 margin = json_of(int8 + "--calibrate 4 --margin 4").at("divergence"),
                 smooth = json_of(int8 + "--smooth 0.5").at("divergence");
    CHECK(fixed != dynamic);
    CHECK(margin > 10 * fixed);  // 4 of 7 bits are lost
    CHECK(smooth != dynamic);
    const std::string mx = kDigits + "--weights mxfp8 --activations mxfp8 ";
    CHECK(json_of(mx).at("divergence") == json_of(mx + "--calibrate 1").at("divergence"));
}

TEST_CASE("a network of other data is tested on files, and a regression says how it is compared") {
    const Scratch scratch;
    spit_data(scratch, "a");
    spit_data(scratch, "wide", 5);
    const std::string pair = "npy:" + scratch / "ax.npy" + "," + scratch / "ay.npy";
    REQUIRE(fp8lab("train --backend cpu --task " + pair +
                   " --layers 4,8,2 --recipe fp32 --batch 4 --steps 5 --save " + scratch / "m")
                .code == 0);
    const std::string file = scratch / "m/1-fp32.safetensors";
    CHECK(json_of(file + " --weights int8 --data " + pair).at("rows") == 6);
    CHECK(
        json_of(file + " --weights int8 --activations int8 --calibrate 1 --data " + pair + " --train " + pair)
            .at("divergence_is") == "nats");
    const auto regression =
        json_of(quoted(FP8LAB_SOURCE "/assets/models/teacher-s1.safetensors") + " --weights nvfp4");
    CHECK(regression.at("divergence_is") == "relative squared error");
    CHECK(regression.at("accuracy_pct").is_null());

    const auto refused = [](const std::string& call, int code, const std::string& why) {
        CAPTURE(call);
        const auto result = fp8lab("infer " + call);
        CHECK(result.code == code);
        CHECK(result.out.empty());
        CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
        CHECK_MESSAGE(result.err.find(why) != std::string::npos, result.err);
    };
    const std::string wide = "npy:" + scratch / "widex.npy" + "," + scratch / "widey.npy";
    refused(file + " --weights int8", 2, "4 columns");
    refused(file + " --weights int8 --data " + wide, 4, "has 5 columns, the network 4 inputs");
    refused(file + " --weights int8 --calibrate 2 --data " + pair, 2, "--train");
    refused(file + " --weights int8 --train " + pair, 2, "belongs to --data");
    refused(file + " --weights int8 --smooth 0.5 --data " + pair + " --train " + pair, 2, "needs relu");
    refused(kDigits + "--weights e4m4", 2, "unknown format 'e4m4'; valid: fp32 bf16");
    refused(kDigits + "--weights nvfp4,nvfp4", 2, "names 2 formats, the network has 4 layers");
    refused(kDigits + "--weights nvfp4 --cascade nvfp4,mxfp8", 2, "LOW,HIGH,TAU");
    refused(kDigits + "--weights nvfp4 --cascade nvfp4,mxfp8,1.5", 2, "LOW,HIGH,TAU");
    refused(kDigits + "--weights nvfp4 --margin 2", 2, "--calibrate");
    refused(kDigits + "--weights nvfp4 --percentile 99", 2, "--calibrate");
    for (const char* wrong : {"0", "-3", "100.5"})
        refused(kDigits + "--weights nvfp4 --calibrate 2 --percentile " + wrong, 2,
                "--percentile: must be above 0");
    refused(kDigits + "--weights nvfp4 --calibrate 2 --percentile nan", 2, "--percentile: 'nan' is not");
    refused(kDigits + "--weights int8 --activations int8 --calibrate 2 --percentile 5", 2, "is 0");
    refused(kDigits + "--weights nvfp4 --calibrate 2 --percentile many", 2, "--percentile");
    refused(kDigits + "--weights nvfp4 --greedy --all-mixes", 2, "--greedy");
    refused(kDigits, 2, "--weights");
    refused("/no/such.safetensors --weights nvfp4", 4, "/no/such.safetensors");
    refused(scratch / "ax.npy" + " --weights nvfp4", 4, "ax.npy");
    refused(quoted(FP8LAB_SOURCE "/assets/models/teacher-s1.safetensors") +
                " --weights nvfp4 --cascade nvfp4,mxfp8,0.5",
            2, "classifies");
}

TEST_CASE(
    "infer --method: GPTQ raises the error of the weights and lowers those of the outputs and the answers") {
    const auto nearest = json_of(kDigits + "--weights nvfp4 --method nearest"),
               plain = json_of(kDigits + "--weights nvfp4"),
               gptq = json_of(kDigits + "--weights nvfp4 --method gptq");
    CHECK(nearest.at("divergence") == plain.at("divergence"));
    CHECK(gptq.at("divergence").get<double>() <= 0.1 * nearest.at("divergence").get<double>());
    CHECK(plain.at("layers").at(0).at("rel_out").is_null());
    for (std::size_t l = 0; l < 4; ++l) {
        const auto &before = nearest.at("layers").at(l), &after = gptq.at("layers").at(l);
        CHECK(after.at("rel_l2_w").get<double>() > before.at("rel_l2_w").get<double>());
        CHECK(after.at("sensitivity").get<double>() < before.at("sensitivity").get<double>());
        CHECK(after.at("rel_out").get<double>() < 0.06);
    }
    CHECK(json_of(kDigits + "--weights int4-g32").at("bits").get<double>() ==
          doctest::Approx(4.5).epsilon(0.001));
    CHECK(json_of(kDigits + "--weights nf4 --method gptq --rows 16").at("divergence").get<double>() > 0);
}

TEST_CASE("infer --order act casts GPTQ's columns in another order, given is the default") {
    const auto divergence = [](const std::string& options) {
        return json_of(kDigits + "--weights int4-g32 --method " + options).at("divergence").get<double>();
    };
    CHECK(divergence("gptq --order given") == divergence("gptq"));
    CHECK(divergence("gptq --order act") != divergence("gptq"));
    CHECK(divergence("rotate+gptq --order act") != divergence("rotate+gptq"));
    CHECK(divergence("awq --order given") == divergence("awq"));
}

TEST_CASE("what infer --method and --against refuse is one line and exit code 2") {
    const auto refuses = [](const std::string& arguments, const std::string& part) {
        const auto run = fp8lab("infer " + kDigits + arguments);
        CAPTURE(arguments);
        CAPTURE(run.err);
        CHECK(run.code == 2);
        CHECK(std::ranges::count(run.err, '\n') == 1);
        CHECK(run.err.find(part) != std::string::npos);
    };
    refuses("--weights nvfp4 --method qptq", "unknown method 'qptq'");
    refuses("--weights e4m3 --method 4or6", "nvfp4");
    refuses("--weights nvfp4 --damp 0.1", "--method");
    refuses("--weights nvfp4 --method gptq --damp 0", "--damp");
    refuses("--weights nvfp4 --method gptq --rows 0", "--rows");
    refuses("--weights nvfp4 --method gptq --rows 1 --damp 1e-300", "layer 1: GPTQ");
    refuses("--weights nvfp4 --method gptq --smooth 0.5", "--smooth");
    refuses("--weights nvfp4 --activations int4-g32", "int4-g32");
    refuses("--weights nvfp4 --against " + quoted(FP8LAB_SOURCE "/assets/models/teacher-s1.safetensors"),
            "other layers");
    const Scratch scratch;
    std::vector<float> one_hot(60);
    for (std::size_t r = 0; r < 6; ++r) one_hot[10 * r + r] = 1;
    spit(scratch / "x.npy", npy("<f4", "(6, 64)", bytes_of(std::vector<float>(384, 0.5F))));
    spit(scratch / "y.npy", npy("<f4", "(6, 10)", bytes_of(one_hot)));
    const std::string data = "--data npy:" + scratch / "x.npy" + "," + scratch / "y.npy";
    CHECK(fp8lab("infer " + kDigits + "--weights nvfp4 " + data).code == 0);
    refuses("--weights nvfp4 --method gptq " + data, "--train npy:X,Y");
    refuses("--weights nvfp4 --method awq --damp 0.1", "--damp: has no effect with method awq");
    refuses("--weights nvfp4 --method awq --order act", "--order: has no effect with method awq");
    refuses("--weights nvfp4 --order act", "--method");
    refuses("--weights nvfp4 --method gptq --order desc",
            "unknown order of columns 'desc'; valid: given act");
    refuses("--weights nvfp4 --method gptq --amax 2", "--amax");
    refuses("--weights nvfp4 --method gptq --activations nvfp4 --amax 1e9", "--amax");
    refuses("--weights nvfp4 --cascade int4-g32,mxfp8,0.5", "int4-g32");
    refuses("--weights nvfp4 --method gptq --greedy", "--greedy");
    CHECK(fp8lab("infer " + kDigits + "--weights nvfp4,e4m3,nvfp4,nvfp4 --method 4or6").code == 0);
}

TEST_CASE("train --fake from a trained network comes closer to it than the cast alone does") {
    const Scratch scratch;
    const std::string start = quoted(FP8LAB_SOURCE "/assets/models/digits-s1.safetensors");
    const auto run = fp8lab(
        "train --backend cpu --task digits --layers 64,128,64,32,10 --activation relu --loss "
        "cross-entropy --fake mxfp4 --steps 100 --schedule cosine --warmup 0 --lr 5e-4 --init-from " +
        start + " --teacher " + start + " --save " + scratch / "m");
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    const std::string both = " --weights mxfp4 --activations mxfp4";
    const double before = json_of(kDigits + both).at("divergence"),
                 after =
                     json_of(scratch / "m/1-mxfp4:fake=1:out=fp32.safetensors" + both + " --against " + start)
                         .at("divergence");
    CHECK(after < 0.7 * before);
    CHECK(fp8lab("train --backend cpu --task digits --fake mxfp4 --recipe bf16 --steps 1").code == 2);
    CHECK(fp8lab("train --backend cpu --fake delayed --steps 1").code == 2);
}
