// cli.md: every failure is exactly one line on stderr, "fp8lab: WHERE: WHY", stdout stays empty, the exit
// code says which kind of failure it was.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "process.h"

namespace {

void check_one_line(const Finished& result) {
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("fp8lab: "));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.err.ends_with("\n"));
}

}  // namespace

TEST_CASE("an unknown name or value ends with 2 and lists the valid ones") {
    struct Case {
        const char *arguments, *mentions;
    };
    for (const Case& c : {
             Case{"formats e4m4", "e4m3 e5m2"},
             Case{"codes nonsense", "e4m3"},
             Case{"list everything", "labs formats recipes scenes exercises"},
             Case{"cast --to e4m3 --round sideways -i - -o -", "nearest"},
             Case{"cast --to e4m3 --overflow wrap -i - -o -", "saturate nonsaturate"},
             Case{"cast --to e9m9 -i - -o -", "valid: fp32"},
             Case{"simulate --amax - --algo mean", "max|most_recent"},
             Case{"simulate --amax - --format e1m9", "e4m3"},
             Case{"train --recipe fp9", "valid: fp32 bf16"},
             Case{"train --recipe delayed:histroy=4", "history"},
             Case{"train --recipe delayed:history=0", "4096"},
             Case{"train --recipe mxfp4:rht=1", "unknown mxfp4 option 'rht'; valid: mxrule=up|floor|even"},
             Case{"train --recipe delayed:w2d=1", "wide=first|last|NUMBER|GEMM[+...]"},
             Case{"train --recipe nvfp4:target=5", "6|4|4or6"},
             Case{"train --recipe nvfp4:wide=middle", "first|last|NUMBER|GEMM[+...]"},
             Case{"train --recipe bf16,nvfp4-te:wide=first+4", "wide names layer 4; the layers are 1-3"},
             Case{"quantize x.npy --recipe nvfp4:wide=first", "quantize casts one tensor"},
             Case{"quantize x.npy --recipe nvfp4:scope=attn", "quantize casts one tensor"},
             Case{"quantize x.npy --recipe bf16:act=clamp", "quantize casts one tensor"},
             Case{"quantize x.npy --recipe bf16:router=mxfp8", "quantize casts one tensor"},
             Case{"train --recipe bf16:router=mxfp8", "option 'router' is unknown to this model"},
             Case{"train --recipe delayed:scope=attn", "option 'scope' is unknown to this model"},
             Case{"train --model transformer --recipe block128:scope=all",
                  "not supported with blocks of 128"},
             Case{"train --model transformer --recipe delayed:wide=1.mlp",
                  "the GEMMs are 1.qkv, 1.attention"},
             Case{"train --model transformer --layers 4,4", "is no option of --model transformer"},
             Case{"train --d 64", "is no option of --model mlp"},
             Case{"train --model transformer --experts 4", "--experts: is no option of --model transformer"},
             Case{"train --model moe --active 9", "--active: 9 is more than --experts 8"},
             Case{"train --model moe --balance luck", "unknown balance 'luck'; valid: bias loss none"},
             Case{"train --model moe --bias-rate 2", "--bias-rate: 2 is not in 0..1"},
             Case{"train --model moe --recipe bf16:router=mxfp9", "valid: fp32|bf16|RECIPE"},
             Case{"train --model moe --recipe delayed:wide=1.e9.down", "1.router, 1.e0.gate_up"},
             Case{"train --model rnn", "known: mlp, transformer, moe"},
             Case{"train --model transformer --task noise", "is no task of --model transformer"},
             Case{"train --model transformer --loss mse", "tokens need cross-entropy"},
             Case{"train --model transformer --task copying --context 16", "--context"},
             Case{"train --model transformer --task zipf:1", "2 to 131072"},
             Case{"train --model transformer --task zipf --context 1025 --batch 1024",
                  "1024 sequences of 1025 tokens are 1049600 a step; the most are 1048576"},
             Case{"train --model transformer --task zipf:many", "got 'many'"},
             Case{"train --task zipf", "is no task of --model mlp"},
             Case{"train --beta2 1", "--beta2"},
             Case{"train --clip -1", "--clip"},
             Case{"train --task juggling", "teacher"},
             Case{"train --activation step", "tanh"},
             Case{"train --schedule sawtooth", "cosine"},
             Case{"train --optimizer magic", "adamw"},
             Case{"train --backend abacus --steps 1", "cpu"},
             Case{"train --layers 32,abc,1", "layers"},
             Case{"train --layers 16,64,2 --task spiral", "2"},
             Case{"run L99", "bits"},
             Case{"run bits --set nothing=1", "valid:"},
             Case{"memory --plan fp4", "te-primary"},
             Case{"memory --plan te --model gpt5", "unknown model 'gpt5'; valid: seed7b"},
             Case{"memory --plan te --set w=e2m1", "e4m3"},
             Case{"memory --plan te --set model=own --set heads=32 --set kv_heads=5", "kv_heads"},
             Case{"memory", "--plan is required"},
             Case{"plan c.json --batch 1 --seq 1 --gpu b200",
                  "unknown recorded GPU 'b200'; valid: h200 h100"},
             Case{"plan c.json --batch 1 --seq 1 --gpu h100 --peak 0", "--peak"},
             Case{"bench juggling", "cast"},
             Case{"--lab L77", "bits"},
             Case{"--no-such-option", "--no-such-option"},
             Case{"no-such-verb with arguments", "unknown verb 'no-such-verb'; valid: doctor list"},
             Case{"list sayings", "labs formats recipes scenes exercises lessons terms claims"},
             Case{"list terms amaxx", "unknown term 'amaxx'; valid: "},
             Case{"list lessons L99", "bits"},
             Case{"list claims no-such", "unknown claim 'no-such'; valid: bits-e4m3-max-240"},
             Case{"run", "a lab, a scene or --claim ID is required"},
             Case{"run --claim bits-no-such", "unknown claim 'bits-no-such'; valid: bits-e4m3-max-240 bits-"},
             Case{"run L1 --claim bits-e4m3-max-240", "excludes"},
             Case{"run --claim bits-e4m3-max-240 --set format=e5m2", "excludes"},
             Case{"run L1 --json", "--claim"},
             Case{"list", "labs|formats|recipes|scenes|exercises|lessons|terms|claims is required"},
             Case{"bench cast --layers 3,3", "cast takes no --layers"},
             Case{"bench blocks --shape 16400,32,8192,1024,2",
                  "fp8lab: --shape: D: 16400 is not in 2..16384"},
             Case{"bench blocks --shape 64,3,128,64,2", "fp8lab: --shape: HEADS: 3 does not divide D 64"},
             Case{"bench blocks --shape 64,4,99999,64,2", "fp8lab: --shape: FFN: 99999 is not in 1..65536"},
             Case{"bench step --state fp16", "'fp16' is neither fp32 nor bf16"},
             Case{"bench step --backend cpu --state bf16", "--state bf16: is measured on a GPU"},
             Case{"bench accumulate --shape 16,16,16", "accumulate takes no --shape"},
             Case{"bench gemm --backend cpu --shape 16,x,16", "'16,x,16' is not M,N,K"},
             Case{"bench gemm --backend cpu --shape 16,16", "'16,16' is not M,N,K"},
             Case{"bench gemm --backend cpu --shape 16,16,0", "'16,16,0' is not M,N,K"},
             Case{"bench gemm --grid --shape 16,16,16", "--grid takes no --shape"},
             Case{"bench cast --grid", "cast takes no --grid"},
             Case{"bench gemm --seconds 10", "limits bench gemm --grid"},
             Case{"bench gemm --brief", "gemm takes no --brief"},
             Case{"bench cast --backend abacus", "auto cpu cuda"},
             Case{"bench infer --shape 64,4,2,96,20", "'64,4,2,96,20' is not D,HEADS,KV,FFN,CONTEXT,LAYERS"},
             Case{"bench infer --shape 64,3,1,96,20,2", "fp8lab: --shape: HEADS: 3 does not divide D 64"},
             Case{"bench infer --shape 64,4,3,96,20,2", "fp8lab: --shape: KV: 3 does not divide HEADS 4"},
             Case{"bench infer --shape 64,4,2,96,20,2000", "LAYERS: 2000 is not in 1..1024"},
             Case{"bench infer --shape 12,4,2,96,20,2", "D / HEADS = 3 is not even"},
             Case{"bench infer --shape 64,4,2,96,20,2 --tokens 21", "--tokens: 21 are more than CONTEXT 20"},
             Case{"bench infer --weights nvfp4",
                  "unknown format 'nvfp4'; valid: bf16 e4m3 e4m3-row e4m3-weight-only"},
             Case{"bench infer --kv int8", "--kv: unknown cache 'int8'; valid: bf16 e4m3"},
             Case{"bench infer --recipe bf16", "infer takes no --recipe"},
             Case{"bench blocks --tokens 2", "blocks takes no --tokens"},
             Case{"generate --resume x --weights e4m3-row", "--weights: is for --backend cuda"},
             Case{"generate --resume x --kv e4m3", "--kv: is for --backend cuda"},
             Case{"generate --resume x --backend cpu --weights e4m3", "--weights: is for --backend cuda"},
             Case{"generate --resume x --backend cuda --weights fp8",
                  "unknown format 'fp8'; valid: bf16 e4m3 e4m3-row e4m3-weight-only"},
             Case{"generate --resume x --backend abacus", "auto cpu cuda"},
             Case{"formats --lab bits", "--lab"},
             Case{"train --seed -1", "--seed: '-1' is below 0"},
             Case{"cast --to e4m3 --seed -1 -i - -o -", "--seed: '-1' is below 0"},
             Case{"train --csv same --json same", "same"},
             Case{"train --recipe current:history=4", "margin=-8..16"},
             Case{"formats --threads 0", "1024"},
         }) {
        CAPTURE(c.arguments);
        const Finished result = fp8lab(c.arguments);
        CAPTURE(result.err);
        CHECK(result.code == 2);
        check_one_line(result);
        CHECK(result.err.find(c.mentions) != std::string::npos);
    }
}

TEST_CASE("a missing or malformed file ends with 4 and says where") {
    const Scratch scratch;
    spit(scratch / "bad.npy", "not an npy file at all");
    spit(scratch / "odd.bin", "12345");
    struct Case {
        std::string arguments, mentions;
    };
    for (const Case& c : {
             Case{"cast --to e4m3 -i /no/such/file -o -", "/no/such/file"},
             Case{"cast --to e4m3 -i " + (scratch / "bad.npy") + " -o -", "bad.npy"},
             Case{"cast --to e4m3 -i " + (scratch / "odd.bin") + " -o -", "odd.bin"},
             Case{"memory --plan te --model /no/such/config.json", "/no/such/config.json"},
             Case{"plan /no/such/config.json --gpu h100 --batch 1 --seq 1", "/no/such/config.json"},
             Case{"simulate --amax /no/such/file", "/no/such/file"},
             Case{"watch /no/such/log", "/no/such/log"},
             Case{"train --task npy:/no/x.npy,/no/y.npy", "/no/x.npy"},
             Case{"train --resume /no/such/checkpoint --steps 1", "/no/such/checkpoint"},
         }) {
        CAPTURE(c.arguments);
        const Finished result = fp8lab(c.arguments);
        CAPTURE(result.err);
        CHECK(result.code == 4);
        check_one_line(result);
        CHECK(result.err.find(c.mentions) != std::string::npos);
    }
}

TEST_CASE("train refuses data that it cannot learn from, with the place") {
    const Scratch scratch;
    const auto put = [&](const char* name, const char* shape, std::vector<float> values) {
        spit(scratch / name, npy("<f4", shape, bytes_of(values)));
        return scratch / name;
    };
    const std::string x = put("x.npy", "(3, 2)", {1, 2, 3, 4, 5, 6}), y = put("y.npy", "(3, 1)", {1, 2, 3});
    const std::string shorter = put("y2.npy", "(2, 1)", {1, 2});
    const std::string flat = put("flat.npy", "(3,)", {1, 2, 3}), none = put("none.npy", "(0, 2)", {});
    const std::string bad = put("bad.npy", "(3, 2)", {1, 2, 3, NAN, 5, INFINITY});
    const std::string cut = put("cut.npy", "(3, 2)", {1, 2, 3});
    spit(scratch / "int.npy", npy("<i4", "(3, 2)", std::string(24, 1)));
    struct Case {
        std::string x, y, more, says;
    };
    for (const Case& c :
         {Case{x, shorter, "", "y2.npy: has 2 rows"}, Case{x, flat, "", "flat.npy: must be"},
          Case{none, y, "", "none.npy: must be"}, Case{bad, y, "", "bad.npy: row 1, column 1 is not finite"},
          Case{y, bad, "", "bad.npy: row 1, column 1 is not finite"}, Case{cut, y, "", "truncated"},
          Case{scratch / "int.npy", y, "", "dtype '<i4'"},
          Case{x, y, " --layers 3,4,1", "the data have 2 inputs and 1 outputs"},
          Case{x, y, " --loss cross-entropy", "one-hot"}}) {
        const Finished run = fp8lab("train --recipe bf16 --steps 1 --task npy:" + c.x + "," + c.y + c.more);
        CAPTURE(run.err);
        CHECK(run.code == 4);
        check_one_line(run);
        CHECK(run.err.find(c.says) != std::string::npos);
    }
    CHECK(fp8lab("train --recipe bf16 --steps 1 --task npy:" + x + "," + y).code == 0);
}

TEST_CASE("cast refuses an .npy that is not what it says, with dtype or offset") {
    const Scratch scratch;
    const std::string two = bytes_of({1, 2});
    std::string huge = npy("<f4", "(2,)", two);
    huge[6] = 2;  // version 2: the header's length has four bytes
    huge.replace(8, 2, std::string("\x00\x00\x20\x00", 4));
    struct Case {
        std::string file;
        const char* says;
    };
    for (const Case& c : {Case{npy(">i4", "(2,)", two), "'>i4'"}, Case{npy("|O", "(2,)", two), "'|O'"},
                          Case{npy("<c8", "(1,)", two), "'<c8'"}, Case{npy("<f4", "(3,)", two), "truncated"},
                          Case{npy("<f4", "(1,)", two), "too much data"},
                          Case{npy("<f4", "(4294967296, 4294967296)", two), "too large"},
                          Case{huge, "2097152 bytes; at most 1048576"}, Case{"\x93NUMPY", "byte 6"}}) {
        spit(scratch / "in.npy", c.file);
        const Finished run = fp8lab("cast --to e4m3 -i " + (scratch / "in.npy") + " -o " + (scratch / "out"));
        CAPTURE(run.err);
        CHECK(run.code == 4);
        check_one_line(run);
        CHECK(run.err.find(c.says) != std::string::npos);
    }
}

TEST_CASE("what cannot be written is one line, also where the input had something to report") {
    const std::string nan = bytes_of({NAN});
    for (const char* out : {"/no/such/folder/x", "/dev/full", "."}) {
        CAPTURE(out);
        const Finished run = fp8lab("cast --to e4m3 -i - -o " + std::string(out), nan);
        CHECK(run.code == 1);
        check_one_line(run);
    }
}

TEST_CASE("a bad amax line is named by its number") {
    for (const char* line : {"-1", "two", "1 2", "0x"}) {
        CAPTURE(line);
        const Finished result = fp8lab("simulate --amax -", std::string("# comment\n\n1\n") + line + "\n");
        CHECK(result.code == 4);
        CHECK(result.err.find("4") != std::string::npos);
        check_one_line(result);
    }
}

TEST_CASE("a bench of the GPU's products says in one line that the CPU is none") {
    for (const char* arguments : {"bench gemm --backend cpu", "bench accumulate --backend cpu --json",
                                  "bench gemm --grid --backend cpu", "bench step --brief --backend cpu",
                                  "bench infer --backend cpu"}) {
        CAPTURE(arguments);
        const Finished asked = fp8lab(arguments);
        CHECK(asked.code == 3);
        CHECK(asked.out.empty());
        CHECK(asked.err.find("measures a GPU") != std::string::npos);
        check_one_line(asked);
    }
}

TEST_CASE("the GPU is never replaced by the CPU in silence") {
    for (const char* arguments :
         {"train --backend cuda --steps 1", "validate --backend cuda", "bench cast --backend cuda",
          "bench step --backend cuda", "bench gemm --backend cuda", "bench gemm --grid --backend cuda",
          "bench accumulate --backend cuda", "bench infer --backend cuda",
          "generate --resume " FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors --backend cuda"}) {
        CAPTURE(arguments);
        const Finished asked = fp8lab(arguments);
        CHECK(asked.code == 3);
        check_one_line(asked);
    }
    const Finished automatic = fp8lab("train --backend auto --recipe bf16 --steps 1");
    CHECK(automatic.code == 0);
    CHECK(automatic.err.find("backend: ") != std::string::npos);
}

TEST_CASE("an output that cannot be written ends the command before the work starts") {
    const Finished result = fp8lab("train --recipe bf16 --steps 5 --csv /no/such/folder/run.csv");
    CHECK(result.code == 1);
    check_one_line(result);
}

TEST_CASE("the window without a display is one clear sentence") {
    const Finished result = fp8lab("");
    CHECK(result.code == 1);
    check_one_line(result);
}
