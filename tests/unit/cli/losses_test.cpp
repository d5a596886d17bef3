// What a typing error on the command line must not do: lose a file, change its meaning, pass for something else, or
// show words of a library.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checksum.h"
#include "child.h"
#include "tests/json.h"

namespace {

// One line that names what is wrong, nothing on stdout.
void check_said(const std::string& arguments, int code, const std::string& says,
                const std::string& input = "") {
    CAPTURE(arguments);
    const Finished run = fp8lab(arguments, input);
    CAPTURE(run.err);
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK(run.err.starts_with("fp8lab: "));
    CHECK(std::ranges::count(run.err, '\n') == 1);
    CHECK(run.err.find(says) != std::string::npos);
    CHECK(run.err.find("exception") == std::string::npos);
    CHECK(run.err.find("internal") == std::string::npos);
    CHECK(run.err.find("std::") == std::string::npos);
}

// Three submissions, and the profile that the first was made of.
struct Class {
    Scratch scratch;
    std::string profile = scratch / "profile", folder = scratch / "class3", bundle;
    Class() {
        std::filesystem::create_directories(profile + "/exercises");
        std::filesystem::create_directories(folder);
        spit(profile + "/exercises/L1.1.json", slurp(FP8LAB_SOURCE "/tests/unit/cli/evidence/L1.1.json"));
        CHECK(fp8lab("report --profile " + profile + " --student Ada --bundle " + folder + "/a.f8lab").code ==
              0);
        bundle = slurp(folder + "/a.f8lab");
        for (const char* name : {"/b.f8lab", "/c.f8lab"}) spit(folder + name, bundle);
    }
    void check_whole() const {
        for (const char* name : {"/a.f8lab", "/b.f8lab", "/c.f8lab"}) CHECK(slurp(folder + name) == bundle);
    }
};

const std::string kSmallRun = "train --backend cpu --recipe bf16 --layers 4,4,1 --batch 4 --steps 3 ";

}  // namespace

TEST_CASE("check replaces no submission, whatever name was forgotten") {
    const Class graded;
    check_said("check --csv " + graded.folder + "/*.f8lab", 2, "a.f8lab holds a submission");
    check_said("check " + graded.folder + "/a.f8lab --csv " + graded.folder + "/a.f8lab", 2,
               "is an input of the same call");
    check_said("check " + graded.folder + "/a.f8lab --csv " + graded.folder + "/../class3/a.f8lab", 2,
               "input");
    check_said("check " + graded.folder + " --csv " + graded.folder + "/b.f8lab", 2, "b.f8lab");
    check_said("check --json --csv - " + graded.folder, 2, "--json and --csv cannot both be stdout");
    check_said("check --csv '' " + graded.folder, 2, "--csv: the value is empty");
    check_said("check --csv " + graded.profile + "/exercises/L1.1.json " + graded.folder, 2, "holds JSON");
    graded.check_whole();
    const std::string marks = graded.scratch / "marks.csv", link = graded.scratch / "link.csv";
    std::filesystem::create_symlink(marks, link);
    CHECK(fp8lab("check " + graded.folder + " --csv " + link).code == 0);
    CHECK(std::filesystem::is_symlink(link));
    CHECK(slurp(marks).starts_with("path,"));
    CHECK(fp8lab("check " + graded.folder + " --csv " + marks).code == 0);  // once more, over the old table
}

TEST_CASE("two documents never go to one place") {
    const Class graded;
    const std::string report = "report --profile " + graded.profile + " ";
    check_said(report + "-o - --bundle -", 2, "cannot both be stdout");
    check_said(report + "-o " + (graded.scratch / "x") + " --bundle " + graded.scratch.path.string() + "/./x",
               2, "cannot both be");
    CHECK_FALSE(std::filesystem::exists(graded.scratch / "x"));
    check_said(report + "-o " + graded.folder + "/a.f8lab", 2, "holds a submission");
    check_said(kSmallRun + "--csv - --json -", 2, "stdout");
    const std::string out = graded.scratch / "out";
    check_said(kSmallRun + "--csv " + out + " --save " + out, 2, "cannot both be");
    spit(out, bytes_of({1, 2}));
    check_said("cast --to e4m3 -i " + out + " -o " + out, 2, "is an input of the same call");
    check_said("decode --from e4m3 -i " + out + " -o " + out, 2, "is an input of the same call");
    CHECK(slurp(out) == bytes_of({1, 2}));
    graded.check_whole();
}

TEST_CASE("train replaces no checkpoint that it goes on from, and makes no folder for nothing") {
    const Scratch scratch;
    const std::string saved = scratch / "saved";
    CHECK(fp8lab(kSmallRun + "--save " + saved).code == 0);
    const std::string weights = slurp(saved + "/1-bf16.safetensors");
    CHECK_FALSE(weights.empty());
    const std::string longer =
        "train --backend cpu --recipe bf16 --layers 4,4,1 --batch 4 --steps 6 --resume ";
    check_said(longer + saved + " --save " + saved, 2, "is an input of the same call");
    check_said(longer + saved + "/1-bf16.safetensors --save " + saved, 2, "is an input of the same call");
    check_said(longer + saved + " --csv " + saved + "/1-bf16.safetensors", 2, "input");
    CHECK(slurp(saved + "/1-bf16.safetensors") == weights);
    check_said("train --recipe bf17 --save " + (scratch / "none"), 2, "bf17");
    check_said("train --resume /no/such/file --save " + (scratch / "none"), 4, "/no/such/file");
    CHECK_FALSE(std::filesystem::exists(scratch / "none"));
    check_said(kSmallRun + "--save ''", 2, "--save: the value is empty");
    check_said(kSmallRun + "--save " + saved + "/1-bf16.safetensors", 1, "is a file, not a folder");
}

TEST_CASE("a run that goes on as something else says so, and a recipe that nobody knows is refused") {
    const Scratch scratch;
    const std::string saved = scratch / "saved", file = saved + "/1-bf16.safetensors";
    CHECK(fp8lab(kSmallRun + "--save " + saved).code == 0);
    const std::string longer =
        "train --backend cpu --layers 4,4,1 --batch 4 --steps 6 --resume " + file + " ";
    const Finished other = fp8lab(longer + "--recipe delayed,bf16 --seed 7");
    CHECK(other.code == 0);
    CHECK(other.err.find("arm 1 was trained as bf16 and goes on as delayed") != std::string::npos);
    CHECK(other.err.find("arm 2") == std::string::npos);
    CHECK(other.err.find("the seed was 1 and is 7 now") != std::string::npos);
    const Finished same = fp8lab(longer + "--recipe bf16");
    CHECK(same.code == 0);
    CHECK(same.err.find("goes on as") == std::string::npos);
    CHECK(same.err.find("the seed was") == std::string::npos);
    std::string text = slurp(file);
    const std::string key = "\"recipe\":\"bf16\"";
    const auto at = text.find(key);
    REQUIRE(at != text.npos);
    text.replace(at, key.size(), "\"recipe\":\"zz16\"");
    spit(file, text);
    check_said(longer + "--recipe bf16", 4, "zz16");
}

TEST_CASE("values that cannot be meant are refused") {
    for (const auto& [arguments, says] :
         {std::pair<const char*, const char*>{"train --layers 4,,2", "'4,,2' is not d0,...,dn"},
          {"train --layers 32,,1", "--layers"},
          {"train --layers 4,2,", "--layers"},
          {"train --layers ''", "--layers: the value is empty"},
          {"train --layers 4,2 --layers 4,2", "--layers"},
          {"bench step --layers 4,,4", "--layers"},
          {"train --seed 18446744073709551616", "--seed: '18446744073709551616' is more than 64 bits hold"},
          {"cast --to e4m3 --seed 99999999999999999999999 -i - -o -", "more than 64 bits hold"},
          {"train --lr nan", "--lr: 'nan' is not a finite number"},
          {"train --weight-decay inf", "--weight-decay"},
          {"cast --to e4m3 --scale nan -i - -o -", "--scale"},
          {"screenshot --scale nan -o /dev/null", "--scale"},
          {"run L1 --set code=256",
           "fp8lab: code: 256 is not possible with the other settings; the lab would use 126\n"},
          {"run L5 --steps 5", "--steps: lab delayed does not train"},
          {"run L5 --set scenario=file",
           "series: no file is named; the scenario 'file' reads one amax per line"},
          {"report --student $'\\xff' -o -", "--student"}}) {
        if (!kHasWindow && std::string(arguments).starts_with("screenshot")) continue;
        // $'...' is bash's.
        const Finished run = fp8lab(quoted(arguments), "", R"(bash -c 'eval "\"\$FP8LAB\" $0"')");
        CAPTURE(arguments);
        CAPTURE(run.err);
        CHECK(run.code == 2);
        CHECK(run.err.starts_with("fp8lab: "));
        CHECK(run.err.find(says) != std::string::npos);
    }
    CHECK(fp8lab("run L1 --set code=255").code == 0);
    CHECK(fp8lab("run L1 --set code=31744 --set format=fp16").code == 0);
    CHECK(fp8lab(kSmallRun + "--seed 18446744073709551615").code == 0);
}

TEST_CASE("no message has a library's words in it") {
    const Scratch scratch;
    const std::string path = scratch / std::string(300, 'x');
    check_said("check " + path, 4, "File name too long");
    check_said("quantize " + path + " --recipe bf16", 4, "File name too long");
    check_said("run " + path + ".f8scene", 4, "is no file and no shipped scene");
    check_said("cast --to e4m3 -i - -o " + path, 1, "File name too long", bytes_of({1}));
    check_said("train --csv " + path, 1, "File name too long");
    spit(scratch / "ok.npy", npy("<f4", "(3,)", bytes_of({1, 2, 500})));
    check_said("check " + (scratch / "ok.npy"), 4, "ok.npy");
    auto json = parsed(slurp(FP8LAB_SOURCE "/tests/unit/cli/evidence/L1.1.json"));
    const auto whole = json;
    const auto sealed = [&] {
        json.erase("checksum");
        json["checksum"] = hash_of(json);
        spit(scratch / "typed.json", json.dump());
        json = whole;
        return "check " + (scratch / "typed.json");
    };
    json["scene"]["deeds"][0]["events"][0] = {"set", 1, 2};  // numbers, where words belong
    check_said(sealed(), 4, "typed.json: 'scene.deeds[0].events[0][1]' is not a text");
    json["scene"]["deeds"][0]["events"][0] = {"set"};
    check_said(sealed(), 4, "'scene.deeds[0].events[0][1]' is missing");
    json["scene"]["deeds"] = "x";
    check_said(sealed(), 4, "'scene.deeds' is not an array");
    json["seed"] = 99;
    check_said(sealed(), 4, "'seed' is not a text");
    json["hints"] = "one";
    check_said(sealed(), 4, "'hints' ");
    json["prediction"]["skipped"] = 1;
    check_said(sealed(), 4, "'prediction.skipped' is neither true nor false");
    json.erase("measured");
    check_said(sealed(), 4, "'measured' is missing");
    json["values"]["sqnr_db"] = 3;
    check_said(sealed(), 4, "'values.sqnr_db' is not an object");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes of it
    // 900 MB of address space: less than the values of 2^28 elements.
    spit(scratch / "huge", "");
    std::filesystem::resize_file(scratch / "huge", std::uintmax_t{1} << 30);
    const Finished limited = fp8lab("cast --to e4m3 -i " + (scratch / "huge") + " -o /dev/null", "",
                                    "sh -c 'ulimit -v 900000; exec \"$FP8LAB\" \"$@\"' sh");
    CHECK(limited.code == 1);
    CHECK(limited.err.starts_with("fp8lab: " + (scratch / "huge") +
                                  ": not enough memory: 1.34 GB are needed, "));
#endif
}

TEST_CASE("a damaged file of the profile: the report is made of the one before, and says so") {
    const Class graded;
    const std::string file = graded.profile + "/exercises/L1.1.json";
    spit(file + ".bak", slurp(file));
    spit(file, slurp(file).substr(0, 100));
    const Finished run =
        fp8lab("report --profile " + graded.profile + " --bundle " + (graded.scratch / "x.f8lab"));
    CHECK(run.code == 0);
    CHECK(run.err.find("L1.1.json is damaged, so the one before is used") != std::string::npos);
    CHECK(fp8lab("check " + (graded.scratch / "x.f8lab")).code == 0);
    spit(file + ".bak", "{}");
    check_said("report --profile " + graded.profile + " -o -", 4, "is damaged, and so is the one before");
}

TEST_CASE("a profile that is a file or not there is said, and an empty one names the next step") {
    const Scratch scratch;
    spit(scratch / "file", "x");
    for (const std::string verb : {"report -o -", "list labs", "doctor", "--lab L1"})
        check_said("--profile " + (scratch / "file") + " " + verb, 2,
                   "--profile: " + (scratch / "file") + " is a file, not a folder");
    for (const std::string output : {"-o -", "--bundle -"}) {
        check_said("--profile " + (scratch / "none") + " report " + output, 4, "none: does not exist");
        std::filesystem::create_directory(scratch / "empty");
        check_said(
            "--profile " + (scratch / "empty") + " report " + output, 4,
            "empty: holds no exercise that was begun; begin one in the window, or name the folder of your "
            "profile with --profile");
    }
    CHECK_FALSE(std::filesystem::exists(scratch / "none"));
}

TEST_CASE("list leaves a gap behind the longest name") {
    for (const char* what : {"labs", "formats", "recipes", "scenes", "exercises"}) {
        CAPTURE(what);
        const auto names = parsed(fp8lab(std::string("list ") + what + " --json").out)[what];
        std::istringstream lines(fp8lab(std::string("list ") + what).out);
        for (const auto& entry : names) {
            std::string line;
            REQUIRE(std::getline(lines, line));
            CHECK(line.starts_with(entry["name"].get<std::string>() + "  "));
            CHECK(line.ends_with(entry["description"].get<std::string>()));
        }
    }
}

TEST_CASE("what is echoed does not drive the terminal") {
    const Finished run = fp8lab("formats \"$(printf 'e4\\033[31mm3\\nfp8lab: all is well')\"");
    CHECK(run.code == 2);
    CHECK(run.err.find('\033') == std::string::npos);
    CHECK(run.err.find("e4\\x1b[31mm3\\nfp8lab: all is well") != std::string::npos);
    CHECK(std::ranges::count(run.err, '\n') == 1);
}

TEST_CASE("a tensor whose name is empty is not taken for the only one") {
    const Scratch scratch;
    const auto tensor = [](const char* name, int at) {
        return "\"" + std::string(name) + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" +
               std::to_string(at) + "," + std::to_string(at + 4) + "]}";
    };
    const std::string header = "{" + tensor("", 0) + "," + tensor("a", 4) + "," + tensor("b", 8) + "}";
    std::string size(8, '\0');
    size[0] = static_cast<char>(header.size());
    const std::string file = scratch / "three.safetensors";
    spit(file, size + header + bytes_of({1, 2, 3}));
    check_said("quantize " + file + " --recipe bf16", 2, "has 3 tensors; name one, as FILE:TENSOR: '' a b");
    CHECK(fp8lab("quantize " + file + ": --recipe bf16").code == 0);
    CHECK(fp8lab("quantize " + file + ":b --recipe bf16").out.starts_with("b: 1 x 1"));
}

TEST_CASE("without HOME it is said where the profile lies") {
    const Finished run =
        fp8lab("doctor", "", "env -u HOME -u FP8LAB_HOME -u XDG_CONFIG_HOME " + quoted(FP8LAB_BINARY));
    CHECK(run.code == 0);
    CHECK(run.err.find("HOME is not set") != std::string::npos);
    CHECK(fp8lab("doctor").err.empty());
}
