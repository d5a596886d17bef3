// The hook for PyTorch, and the run doctor on trainings that it logged: scripts/hook_runs.py. Where python3 has no PyTorch
// only the shipped run is there.
#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "process.h"
#include "tests/json.h"

namespace {

const std::string kScript = "python3 " + quoted(FP8LAB_SOURCE "/scripts/hook_runs.py") + " ";

// The script's exit status: 77 where there is no PyTorch.
int script(const std::string& arguments) {
    const int status = std::system((kScript + arguments).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool no_torch() {
    static const bool none = [] {
        const int status = std::system("python3 -c 'import torch' 2>/dev/null");
        return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }();
    if (none) MESSAGE("skipped: python3 has no PyTorch here");
    return none;
}

struct First {
    std::string tensor = "nothing", number, cause;
    int step = -1;
};

// The first finding of `watch --csv`.
First first(const std::string& log, const std::string& recipe) {
    const Finished run = fp8lab("watch " + quoted(log) + " --csv --recipe " + recipe);
    CAPTURE(run.err);
    CHECK(run.code == 0);
    std::istringstream lines(run.out);
    std::string head, line;
    std::getline(lines, head);
    CHECK(head == "tensor,step,lost_pct,number,cause,treatment");
    if (!std::getline(lines, line)) return {};
    First out;
    std::istringstream cells(line);
    std::string step, lost;
    std::getline(cells, out.tensor, ',');
    std::getline(cells, step, ',');
    std::getline(cells, lost, ',');
    std::getline(cells, out.number, ',');
    std::getline(cells, out.cause);
    out.step = std::stoi(step);
    return out;
}

const std::string kHistory = "delayed:history=1024";

}  // namespace

TEST_CASE("the hook for PyTorch counts what a count element by element gives") {
    if (no_torch()) return;
    CHECK(script("check") == 0);
}

TEST_CASE("the hook's logs of PyTorch trainings: each fault is named first, and nothing in healthy ones") {
    if (no_torch()) return;
    const Scratch scratch;
    const int seeds = std::getenv("FP8LAB_TEST_ALL") != nullptr ? 5 : 1;  // as tests/all.h
    for (int seed = 1; seed <= seeds; ++seed) {
        CAPTURE(seed);
        const auto log = [&](const std::string& fault) {
            const std::string path = scratch / (fault + ".jsonl");
            CHECK(script("run " + fault + " " + std::to_string(seed) + " " + quoted(path)) == 0);
            return path;
        };
        CHECK(first(log("healthy"), kHistory).tensor == "nothing");
        const First poison = first(log("poison"), kHistory);
        CHECK(poison.tensor == "inp.x");
        CHECK(poison.step == 150);
        CHECK(poison.number == "4");
        const First align = first(log("align"), kHistory);
        CHECK(align.tensor == "b.1.down.x");
        CHECK(align.step >= 150);
        CHECK(align.step <= 160);
        CHECK(align.cause.find("outlier channel") != std::string::npos);
        const std::string small = log("small");
        const First unscaled = first(small, "unscaled");
        CHECK(unscaled.tensor.ends_with(".dy"));
        CHECK(unscaled.step == 0);
        CHECK(unscaled.number == "1");
        CHECK(first(small, kHistory).tensor == "nothing");
    }
}

TEST_CASE(
    "watch prints the findings of the shipped run, what cannot be seen, and `nothing` where there is none") {
    const std::string run = quoted(FP8LAB_SOURCE "/assets/runs/tiny-swiglu.jsonl");
    const Finished table = fp8lab("watch " + run + " --recipe delayed:history=64");
    CHECK(table.code == 0);
    CHECK(table.err.empty());
    for (const char* text :
         {"out.x", "a spike of 5.0e5 times kept in history 64", "inp.x", "b.1.down.x", "an outlier channel",
          "3 findings; 15 of 18 tensors are well", "cannot be seen in these statistics: "})
        CHECK(table.out.find(text) != std::string::npos);
    const Finished none = fp8lab("watch " + run + " --recipe bf16");
    CHECK(none.out.find("\nnothing: no rule finds fault") != std::string::npos);
    CHECK(none.out.find("cannot be seen in these statistics: ") != std::string::npos);
    // Without counters nothing is called well.
    const Scratch scratch;
    spit(scratch / "run.csv",
         "step,recipe,loss,amax_x1,amax_x2\n0,bf16,1,1,1\n1,bf16,1,1,inf\n2,bf16,1,1,1\n");
    const Finished bare = fp8lab("watch " + (scratch / "run.csv"));
    CHECK(bare.out.find("1 finding; 1 of 2 tensors have none\n") != std::string::npos);
    CHECK(bare.out.find("2 of 2 tensors have no counters of binades") != std::string::npos);
    CHECK(bare.out.find("  -  NaN or Inf before the cast") != std::string::npos);
    // Modes have their word, and a loss that is not finite its line.
    CHECK(table.out.find("mode 4: a spike of 5.0e5 times") != std::string::npos);
    spit(scratch / "loss.csv", "step,recipe,loss,amax_x1\n0,bf16,1,1\n1,bf16,nan,1\n2,bf16,nan,1\n");
    const std::string loss = quoted(scratch / "loss.csv");
    const Finished odd = fp8lab("watch " + loss);
    CHECK(odd.out.find("1 tensor, steps 0 to 2") != std::string::npos);
    CHECK(odd.out.find("\nthe loss is NaN in step 1\n") != std::string::npos);
    CHECK(parsed(fp8lab("watch --json " + loss).out)["first_nonfinite_loss"]["step"] == 1);
    CHECK(fp8lab("watch --csv " + loss).err.find("the loss is NaN in step 1") != std::string::npos);
    // A name neither pads all rows nor writes control characters.
    std::string log = "{\"fp8lab\":1}\n";
    for (int step = 0; step < 3; ++step)
        log += R"({"step":)" + std::to_string(step) + R"(,"tensor":"a\u001b)" + std::string(6000, 'n') +
               R"(.x","amax":1e-9})" + "\n";
    spit(scratch / "long.jsonl", log);
    const std::string named = "watch --recipe unscaled " + (scratch / "long.jsonl");
    CHECK(fp8lab(named).out.find("a\\x1bnnnn") != std::string::npos);
    CHECK(fp8lab(named).out.size() < 1000);
    CHECK(fp8lab(named + " --csv").out.find('\x1b') == std::string::npos);
    const First top = first(FP8LAB_SOURCE "/assets/runs/tiny-swiglu.jsonl", "delayed:history=64");
    CHECK(top.tensor == "out.x");
    CHECK(top.step == 60);
}

TEST_CASE(
    "watch --json has every tensor, the other recipes and what cannot be seen, and --csv quotes names") {
    const std::string run = quoted(FP8LAB_SOURCE "/assets/runs/tiny-swiglu.jsonl");
    const auto json = parsed(fp8lab("watch " + run + " --recipe delayed:history=64 --json").out);
    CHECK(json["recipe"] == "delayed:history=64");
    CHECK(json["trained_in"] == "bf16");
    CHECK(json["first_step"] == 0);
    CHECK(json["last_step"] == 239);
    REQUIRE(json["tensors"].size() == 18);
    CHECK(json["tensors"][0]["name"] == "inp.x");
    CHECK(json["tensors"][0]["format"] == "e4m3");
    CHECK(json["tensors"][0]["saturated_steps"] == 2);
    CHECK(json["tensors"][0]["scales"] == "replayed");
    CHECK(json["tensors"][0]["lost_pct_low"].get<double>() <
          json["tensors"][0]["lost_pct_high"].get<double>());
    REQUIRE(json["findings"].size() == 3);
    CHECK(json["findings"][0]["tensor"] == "out.x");
    CHECK(json["findings"][0]["number"] == "4");
    REQUIRE(json["under"].size() == 6);
    CHECK(json["under"][5]["recipe"] == "mxfp8");
    CHECK(json["under"][5]["bound"] == "upper");
    CHECK(json["cannot_be_seen"].size() == 4);

    const Scratch scratch;
    std::string log = "{\"fp8lab\":1}\n";
    for (int step = 0; step < 3; ++step)
        log += R"({"step":)" + std::to_string(step) + R"(,"tensor":"a,\"b\".x","amax":1e-9})" + "\n";
    spit(scratch / "run.jsonl", log);
    const Finished csv = fp8lab("watch --csv --recipe unscaled " + (scratch / "run.jsonl"));
    CHECK(csv.out.find(
              "\n\"a,\"\"b\"\".x\",0,100,1,values below the window: scale 1,a scale: delayed or current\n") !=
          std::string::npos);
}

TEST_CASE("a percentile cannot be replayed on a log of amaxes, and is refused") {
    const Finished run =
        fp8lab("watch " + quoted(std::string(FP8LAB_SOURCE) + "/assets/runs/tiny-swiglu.jsonl") +
               " --recipe delayed:algo=p99.9");
    CHECK(run.code == 2);
    CHECK(run.err == "fp8lab: --recipe: recipe delayed:algo=p99.9: a log has amaxes, and no percentiles\n");
}
