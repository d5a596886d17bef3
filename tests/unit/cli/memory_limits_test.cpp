// Every verb with little memory: it does its work, or says in one sentence that there is not enough. FP8LAB_TEST_ALL=1:
// from 80 to 300 MB in steps of 20.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "process.h"

namespace {

// A small job of each verb. SCRATCH stands for the test's folder.
constexpr const char* kJobs[] = {
    "doctor",
    "list recipes",
    "formats e4m3",
    "codes e4m3",
    "cast --to e4m3 -i SCRATCH/values -o -",
    "decode --from e4m3 -i SCRATCH/codes -o -",
    "quantize SCRATCH/values.npy --recipe mxfp8",
    "inspect SCRATCH/mlp.safetensors --csv -",
    "verify SCRATCH/mlp.safetensors --against SCRATCH/mlp.safetensors",
    "simulate --amax SCRATCH/amax",
    "watch SCRATCH/run.jsonl",
    "train --backend cpu --recipe bf16 --layers 32,64,1 --batch 64 --steps 2 --csv -",
    "train --backend cpu --model transformer --d 16 --blocks 1 --heads 2 --ffn 32 --context 16 --batch 2 "
    "--steps 2 "
    "--recipe bf16",
    "generate --resume SCRATCH/model --characters 3",
    "infer SCRATCH/mlp.safetensors --weights nvfp4 --activations nvfp4",
    "draft SCRATCH/model/1-bf16.safetensors --draft nvfp4 --length 2",
    "mismatch SCRATCH/model/1-bf16.safetensors --rollout nvfp4 --answers 4 --tokens 4",
    "bench step --backend cpu --recipe bf16 --layers 32,32 --batch 2 --repeat 1",
    "run bits",
    "run L11",
    "run L13 --steps 1",
    "memory --plan te",
    "plan SCRATCH/config.json --gpu h100 --batch 1 --seq 8",
    "check SCRATCH/home/exercises/L1.1.json",
    "report --profile SCRATCH/home -o -",
    "screenshot -o SCRATCH/out",
    "validate --backend cpu",
};

struct Jobs {
    Scratch scratch;
    Jobs() {
        spit(scratch / "values", bytes_of({1, 2, 500}));
        spit(scratch / "config.json",
             R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128,
                   "num_attention_heads": 4, "vocab_size": 100})");
        spit(scratch / "values.npy", npy("<f4", "(3,)", bytes_of({1, 2, 500})));
        spit(scratch / "codes", "\x01\x7E");
        spit(scratch / "amax", "1\n2\n");
        std::filesystem::copy(FP8LAB_SOURCE "/assets/runs/tiny-swiglu.jsonl", scratch / "run.jsonl");
        std::filesystem::copy(FP8LAB_SOURCE "/assets/models/digits-s1.safetensors",
                              scratch / "mlp.safetensors");
        std::filesystem::create_directories(scratch / "home/exercises");
        std::filesystem::copy(FP8LAB_SOURCE "/tests/unit/cli/evidence/L1.1.json",
                              scratch / "home/exercises/L1.1.json");
        fp8lab(
            words("train --backend cpu --model transformer --recipe bf16 --d 8 --heads 2 --ffn 8 --blocks 1 "
                  "--context 8 --batch 1 --steps 1 --save SCRATCH/model"));
    }
    std::string words(std::string call) const {
        for (auto at = call.find("SCRATCH"); at != call.npos; at = call.find("SCRATCH"))
            call.replace(at, 7, scratch.path.string());
        return call;
    }
    // `megabytes` of address space; ended after a minute, which is then its failure.
    Finished run(const std::string& call, int megabytes) const {
        return fp8lab(words(call), "",
                      "sh -c 'ulimit -v " + std::to_string(megabytes) +
                          "000; exec timeout -s KILL 60 \"$FP8LAB\" \"$@\"' sh");
    }
};

std::ptrdiff_t sentences(const std::string& err) {
    std::ptrdiff_t count = 0;
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);) count += line.starts_with("fp8lab: ") ? 1 : 0;
    return count;
}

}  // namespace

TEST_CASE("with little memory a verb does its work or says so, and never hangs or aborts") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MESSAGE("skipped: sanitizers reserve terabytes of address space");
    return;
#endif
    const Jobs jobs;
    std::vector<int> limits = {120, 200};
    if (std::getenv("FP8LAB_TEST_ALL"))
        for (limits.clear(); limits.size() < 12;) limits.push_back(80 + 20 * static_cast<int>(limits.size()));
    for (const char* const job : kJobs) {
        const std::string words = job;
        CAPTURE(words);
        const Finished usual = fp8lab(jobs.words(job));
        for (const int megabytes : limits) {
            CAPTURE(megabytes);
            const Finished run = jobs.run(job, megabytes);
            CAPTURE(run.err);
            if (run.code == 127) {  // the libraries do not fit
                MESSAGE(job << ", " << megabytes << " MB: " << run.err);
                continue;
            }
            if (run.code == usual.code) {
                CHECK(std::ranges::count(run.out, '\n') == std::ranges::count(usual.out, '\n'));
                CHECK(run.err.find("OpenBLAS") == std::string::npos);
                continue;
            }
            CHECK(run.code == 1);
            CHECK(sentences(run.err) == 1);
            CHECK(run.err.find("not enough memory") != std::string::npos);
        }
    }
}

TEST_CASE("two hundred arms of a large transformer are refused at once, with the bytes") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MESSAGE("skipped: sanitizers reserve terabytes of address space");
    return;
#endif
    std::string arms = "bf16";
    for (int i = 1; i < 200; ++i) arms += ",bf16";
    const auto refused = [](const std::string& call, int megabytes) {
        const Finished run = fp8lab(call, "",
                                    "sh -c 'ulimit -v " + std::to_string(megabytes) +
                                        "000; exec timeout -s KILL 60 \"$FP8LAB\" \"$@\"' sh");
        CAPTURE(run.err);
        CHECK(run.code == 1);
        CHECK(run.out.empty());
        CHECK(std::ranges::count(run.err, '\n') == 1);
        CHECK(run.err.starts_with("fp8lab: train: not enough memory: "));
        CHECK(run.err.find(" GB are needed, ") != std::string::npos);
        CHECK(run.err.ends_with(" GB are free\n"));
    };
    const std::string large =
        "train --backend cpu --model transformer --d 1024 --heads 16 --ffn 2816 --recipe ";
    refused(large + arms, 9000);
    refused("train --backend cpu --model transformer --d 4096 --task zipf:131072 --recipe bf16", 9000);
}
