// cli.md: every failure is exactly one line on stderr, "fp8lab: WHERE: WHY", stdout stays empty, the exit
// code says which kind of failure it was.
#include <doctest/doctest.h>

#include <algorithm>

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
             Case{"list everything", "labs formats recipes"},
             Case{"cast --to e4m3 --round sideways -i - -o -", "nearest"},
             Case{"cast --to e4m3 --overflow wrap -i - -o -", "saturate nonsaturate"},
             Case{"cast --to e9m9 -i - -o -", "valid: fp32"},
             Case{"simulate --amax - --algo mean", "max|most_recent"},
             Case{"simulate --amax - --format e1m9", "e4m3"},
             Case{"train --recipe fp9", "valid: fp32 bf16"},
             Case{"train --recipe delayed:histroy=4", "history"},
             Case{"train --recipe delayed:history=0", "4096"},
             Case{"train --task juggling", "teacher"},
             Case{"train --activation step", "tanh"},
             Case{"train --schedule sawtooth", "cosine"},
             Case{"train --optimizer magic", "adamw"},
             Case{"train --backend abacus --steps 1", "cpu"},
             Case{"train --layers 32,abc,1", "layers"},
             Case{"train --layers 16,64,2 --task spiral", "2"},
             Case{"run L99", "bits"},
             Case{"run bits --set nothing=1", "valid:"},
             Case{"bench juggling", "cast"},
             Case{"--lab L77", "bits"},
             Case{"--no-such-option", "--no-such-option"},
             Case{"no-such-verb", "no-such-verb"},
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
             Case{"simulate --amax /no/such/file", "/no/such/file"},
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

TEST_CASE("a bad amax line is named by its number") {
    for (const char* line : {"-1", "two", "1 2", "0x"}) {
        CAPTURE(line);
        const Finished result = fp8lab("simulate --amax -", std::string("# comment\n\n1\n") + line + "\n");
        CHECK(result.code == 4);
        CHECK(result.err.find("4") != std::string::npos);
        check_one_line(result);
    }
}

TEST_CASE("the GPU is never replaced by the CPU in silence") {
    const Finished asked = fp8lab("train --backend cuda --steps 1");
    CHECK(asked.code == 3);
    check_one_line(asked);
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
