// fp8lab train --model transformer and generate.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "process.h"

namespace {

const std::string kTrain =
    "train --model transformer --d 16 --heads 2 --kv-heads 1 --ffn 24 --context 16 --batch 2 --steps 3 "
    "--seed 4 ";

}  // namespace

TEST_CASE("generate writes what each arm of a folder says, the same for the same seed") {
    const Scratch scratch;
    REQUIRE(fp8lab(kTrain + "--recipe bf16,delayed:scope=all --save " + scratch / "m").code == 0);
    const auto generate = [&](const std::string& options) {
        return fp8lab("generate --characters 20 --resume " + scratch.path.string() + "/" + options);
    };
    const auto both = generate("m --prompt 'A  Gradient'");
    CHECK(both.code == 0);
    CHECK(both.out.find("# 1-bf16.safetensors\na gradient") == 0);
    CHECK(both.out.find("# 2-delayed:scope=all.safetensors\na gradient") != std::string::npos);
    CHECK(both.out == generate("m --prompt 'A  Gradient'").out);
    CHECK(both.out != generate("m --prompt 'A  Gradient' --seed 2").out);
    const auto one = generate("m/1-bf16.safetensors --prompt x");
    CHECK(one.out.size() == 22);  // the prompt, 20 characters, the end of the line
    CHECK(one.out != generate("m/1-bf16.safetensors --prompt x --temperature 0").out);
}

TEST_CASE("generate on the CPU is what it is without --backend, and auto says which one it took") {
    const Scratch scratch;
    REQUIRE(fp8lab(kTrain + "--recipe bf16 --save " + scratch / "m").code == 0);
    const std::string call = "generate --characters 20 --resume " + scratch.path.string() + "/m";
    const auto plain = fp8lab(call), cpu = fp8lab(call + " --backend cpu"),
               any = fp8lab(call + " --backend auto");
    CHECK(plain.out == cpu.out);
    CHECK(plain.err.empty());
    CHECK(cpu.err.empty());
    CHECK(any.code == 0);
    CHECK(any.err.starts_with("backend: "));
}

TEST_CASE("generate refuses what it cannot use, with one sentence") {
    const Scratch scratch;
    REQUIRE(fp8lab(kTrain + "--recipe bf16 --save " + scratch / "m").code == 0);
    REQUIRE(fp8lab("train --backend cpu --recipe bf16 --layers 4,4,1 --batch 4 --steps 1 --save " +
                   scratch / "mlp")
                .code == 0);
    REQUIRE(fp8lab("train --model transformer --task copying --d 8 --heads 2 --ffn 8 --context 32 --batch 1 "
                   "--steps 1 --recipe bf16 --save " +
                   scratch / "copying")
                .code == 0);
    REQUIRE(fp8lab("train --model transformer --task zipf:20 --d 8 --heads 2 --ffn 8 --context 8 --batch 1 "
                   "--steps 1 --recipe bf16 --save " +
                   scratch / "zipf")
                .code == 0);
    const auto refused = [&](const std::string& call, int code, const std::string& why) {
        CAPTURE(call);
        const auto result = fp8lab("generate --resume " + call);
        CHECK(result.code == code);
        CHECK(result.err.find(why) != std::string::npos);
        CHECK(result.out.empty());
    };
    refused(scratch / "m" + " --prompt é", 2, "--prompt");
    refused(scratch / "m" + " --prompt '{'", 2, "'{' is not in the corpus");
    refused(scratch / "m" + " --temperature -1", 2, "--temperature");
    refused(scratch / "mlp", 4, "not trained on text");
    refused(scratch / "copying", 4, "not trained on text");
    refused(scratch / "zipf", 4, "not trained on text");
    refused("/no/such/folder", 4, "/no/such/folder");
}

TEST_CASE(
    "train: the columns of a transformer, kurtosis behind all others, its command line repeats the run") {
    const auto run = fp8lab(
        kTrain + "--recipe delayed:scope=attn:act=smooth:wide=2.down,fp32 --clip 0.5 --warmup 7 --csv -");
    REQUIRE(run.code == 0);
    std::istringstream lines(run.out);
    std::string command, provenance, header;
    std::getline(lines, command), std::getline(lines, provenance), std::getline(lines, header);
    CHECK(header.find(",amax_1.attention.p,") != std::string::npos);
    CHECK(header.find(",lost_l1_pct_2.down.dy,") != std::string::npos);
    CHECK(header.ends_with(",kurtosis_head.x,kurtosis_head.w,kurtosis_head.dy"));
    const std::string again = command.substr(command.find("train "));
    const auto repeated = fp8lab(again + " --csv -");
    REQUIRE(repeated.code == 0);
    std::istringstream other(repeated.out);
    for (std::string a, b; std::getline(other, b);) {
        if (b.starts_with("#") || b.starts_with("step,")) continue;
        std::getline(lines, a);
        std::vector<std::string> left, right;  // but for the time of the step
        for (auto* cells : {&left, &right}) {
            std::istringstream row(cells == &left ? a : b);
            for (std::string cell; std::getline(row, cell, ',');) cells->push_back(cell);
            cells->at(4).clear();
        }
        CHECK(left == right);
    }
}
