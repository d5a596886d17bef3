// The checkpoints of a folder are one set: replaced as a whole, or refused before the training.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "child.h"

namespace {

namespace fs = std::filesystem;
const std::string kTrain = "train --backend cpu --layers 4,4,1 --batch 4 ";

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
}

void check_refused(const Finished& run, const std::string& says) {
    CAPTURE(run.err);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK(run.err.starts_with("fp8lab: --save: "));
    CHECK(std::ranges::count(run.err, '\n') == 1);
    CHECK(run.err.find(says) != std::string::npos);
}

mode_t mode_of(const std::string& path) {
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("a run with other recipes is refused where a set is, and the set goes on") {
    const Scratch scratch;
    const std::string m = scratch / "m";
    REQUIRE(fp8lab(kTrain + "--steps 2 --recipe bf16,delayed --save " + m).code == 0);
    const std::string before = slurp(m + "/1-bf16.safetensors");
    check_refused(fp8lab(kTrain + "--steps 2 --recipe bf16,current --save " + m),
                  "has the checkpoints of another run, 1-bf16, 2-delayed, and this one would save 1-bf16, "
                  "2-current; name another folder");
    check_refused(fp8lab(kTrain + "--steps 2 --recipe bf16 --save " + m), "would save 1-bf16;");
    CHECK(slurp(m + "/1-bf16.safetensors") == before);
    CHECK(fp8lab(kTrain + "--steps 4 --recipe bf16,delayed --resume " + m).code == 0);
    // The same run again replaces it, and leaves nothing beside it.
    CHECK(fp8lab(kTrain + "--steps 3 --recipe bf16,delayed --save " + m).code == 0);
    CHECK(slurp(m + "/1-bf16.safetensors") != before);
    CHECK(names_in(m) == std::vector<std::string>{"1-bf16.safetensors", "2-delayed.safetensors"});
}

TEST_CASE("checkpoints of another model or task, and other files, are not replaced") {
    const Scratch scratch;
    const std::string m = scratch / "m";
    REQUIRE(fp8lab(kTrain + "--steps 2 --recipe bf16 --save " + m).code == 0);
    const std::string before = slurp(m + "/1-bf16.safetensors");
    check_refused(fp8lab("train --backend cpu --layers 4,8,1 --batch 4 --steps 2 --recipe bf16 --save " + m),
                  "1-bf16.safetensors is a checkpoint of another model and would be replaced");
    check_refused(fp8lab(kTrain + "--task noise --steps 2 --recipe bf16 --save " + m),
                  "was trained on the task teacher and would be replaced");
    CHECK(slurp(m + "/1-bf16.safetensors") == before);
    fs::copy_file(FP8LAB_SOURCE "/assets/models/transformer-0.safetensors", m + "/1-bf16.safetensors",
                  fs::copy_options::overwrite_existing);
    check_refused(fp8lab(kTrain + "--steps 2 --recipe bf16 --save " + m), "is no checkpoint of this program");
}

TEST_CASE("a folder in which nothing can be made is refused before the training") {
    for (const char* output : {"--save /proc/x", "--csv /proc/x.csv", "--json /proc/x.json"}) {
        CAPTURE(output);
        const Finished run = fp8lab(kTrain + "--steps 100000000 --recipe bf16 " + output);
        CHECK(run.code == 1);
        CHECK(std::ranges::count(run.err, '\n') == 1);
        CHECK(run.err.find("cannot write /proc/x") != std::string::npos);
    }
}

TEST_CASE("a file that is replaced passes on its mode: table, checkpoint") {
    const Scratch scratch;
    const std::string m = scratch / "m", csv = scratch / "run.csv", checkpoint = m + "/1-bf16.safetensors";
    const std::string call = kTrain + "--steps 2 --recipe bf16 --csv " + csv + " --save " + m;
    REQUIRE(fp8lab(call).code == 0);
    for (const mode_t mode : {mode_t{0600}, mode_t{0640}, mode_t{0664}}) {
        for (const std::string& file : {csv, checkpoint}) REQUIRE(::chmod(file.c_str(), mode) == 0);
        REQUIRE(fp8lab(call).code == 0);
        for (const std::string& file : {csv, checkpoint}) CHECK(mode_of(file) == mode);
    }
}
