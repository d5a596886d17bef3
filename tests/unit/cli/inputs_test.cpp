// Every option that names an input, with what is no file: it is refused before it is read. Pipes are read where an input
// is read once.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <sstream>

#include "child.h"

namespace {

// INPUT stands for what is named, SCRATCH for the test's folder.
struct InputCall {
    const char* call;
    bool takes_pipes = false, takes_folders = false;
};

constexpr InputCall kInputs[] = {
    {.call = "cast --to e4m3 -i INPUT -o SCRATCH/out", .takes_pipes = true},
    {.call = "decode --from e4m3 -i INPUT -o SCRATCH/out", .takes_pipes = true},
    {.call = "quantize INPUT --recipe bf16", .takes_pipes = true},
    {.call = "inspect INPUT", .takes_pipes = true},
    {.call = "inspect SCRATCH/mlp.safetensors --compare INPUT", .takes_pipes = true},
    {.call = "verify INPUT", .takes_pipes = true},
    {.call = "verify SCRATCH/mlp.safetensors --against INPUT", .takes_pipes = true},
    {.call = "simulate --amax INPUT", .takes_pipes = true},
    {.call = "watch INPUT", .takes_folders = true},
    {.call = "memory --model INPUT --plan te", .takes_pipes = true},
    {.call = "plan INPUT --gpu h100 --batch 1 --seq 8", .takes_pipes = true},
    {.call = "train --steps 1 --task npy:INPUT,SCRATCH/values.npy"},
    {.call = "train --steps 1 --task npy:SCRATCH/values.npy,INPUT"},
    {.call = "train --steps 1 --model transformer --task text:INPUT"},
    {.call = "train --steps 2 --recipe bf16 --task digits --resume INPUT", .takes_folders = true},
    {.call = "generate --resume INPUT", .takes_folders = true},
    {.call = "infer INPUT --weights e4m3"},
    {.call = "infer INPUT --kv one"},
    {.call = "draft INPUT --draft nvfp4"},
    {.call = "mismatch INPUT --rollout nvfp4"},
    {.call = "infer SCRATCH/mlp.safetensors --weights e4m3 --data npy:INPUT,SCRATCH/values.npy"},
    {.call = "infer SCRATCH/mlp.safetensors --weights e4m3 --data npy:SCRATCH/digits.npy,SCRATCH/labels.npy "
             "--train npy:INPUT,SCRATCH/labels.npy"},
    {.call = "check INPUT", .takes_folders = true},
    {.call = "run INPUT"},
    {.call = "run L2 --set file=INPUT"},
    {.call = "run L4 --set file=INPUT"},
    {.call = "run L5 --set scenario=file --set series=INPUT"},
    {.call = "run L6 --set file=INPUT"},
    {.call = "run L11 --set network=own --set file=INPUT"},
    {.call = "run workbench --set file=INPUT"},
    {.call = "run workbench --set file=SCRATCH/mlp.safetensors --set compare=INPUT"},
};

struct Files {
    Scratch scratch;
    int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    Files() {
        spit(scratch / "values.npy", npy("<f4", "(3, 1)", bytes_of({1, 2, 3})));
        spit(scratch / "digits.npy", npy("<f4", "(2, 64)", bytes_of(std::vector<float>(128, 0.5F))));
        std::filesystem::copy(FP8LAB_SOURCE "/assets/models/digits-s1.safetensors",
                              scratch / "mlp.safetensors");
        std::vector<float> labels(20);
        labels[3] = labels[10 + 7] = 1;
        spit(scratch / "labels.npy", npy("<f4", "(2, 10)", bytes_of(labels)));
        std::filesystem::create_directory(scratch / "folder");
        REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
        std::filesystem::create_symlink("/dev/zero", scratch / "device");
        ::sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        const std::string name = scratch / "socket";
        REQUIRE(name.size() < sizeof address.sun_path);
        std::ranges::copy(name, address.sun_path);
        REQUIRE(::bind(socket, reinterpret_cast<::sockaddr*>(&address), sizeof address) == 0);
        spit(scratch / "large", "");
        std::filesystem::resize_file(scratch / "large", 100'000'000'000);  // takes no room on the disk
    }
    ~Files() { ::close(socket); }
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;

    std::vector<std::string> words(const std::string& call, const std::string& input) const {
        std::vector<std::string> out;
        std::istringstream line(call);
        for (std::string word; line >> word; out.push_back(word)) {
            if (const auto at = word.find("INPUT"); at != word.npos) word.replace(at, 5, scratch / input);
            for (auto at = word.find("SCRATCH"); at != word.npos; at = word.find("SCRATCH"))
                word.replace(at, 7, scratch.path.string());
        }
        return out;
    }
    // What stderr says; the exit code is 4. The call does not wait for the whole of /dev/zero, or for a writer.
    std::string refusal(const std::string& call, const std::string& input) const {
        Child child(scratch, words(call, input), {});
        CHECK(child.wait() == 4);
        CHECK(child.cpu_seconds() < 20);
        const std::string said = child.err();
        CHECK(std::ranges::count(said, '\n') == 1);
        CHECK(said.starts_with("fp8lab: "));
        return said;
    }
};

bool ends_with_line(const std::string& text, const std::string& end) { return text.ends_with(end + "\n"); }

}  // namespace

TEST_CASE("an input that is a device, a socket or a folder is exit code 4, by every verb and option") {
    const Files files;
    for (const InputCall& each : kInputs) {
        const std::string call = each.call;
        CAPTURE(call);
        CHECK(ends_with_line(files.refusal(each.call, "device"), "is a device, not a file"));
        CHECK(ends_with_line(files.refusal(each.call, "socket"), "is a socket, not a file"));
        if (!each.takes_folders)
            CHECK(ends_with_line(files.refusal(each.call, "folder"), "is a folder, not a file"));
    }
}

TEST_CASE("a sparse file of 100 GB is exit code 4 where it would be read, by every verb and option") {
    const Files files;
    for (const InputCall& each : kInputs) {
        const std::string call = each.call;
        CAPTURE(call);
        files.refusal(each.call, "large");
    }
}

TEST_CASE("a pipe without a writer is refused, or waited for until a signal comes") {
    const Files files;
    for (const InputCall& each : kInputs) {
        const std::string call = each.call;
        CAPTURE(call);
        if (!each.takes_pipes) {
            CHECK(ends_with_line(files.refusal(each.call, "pipe"), "is a pipe, not a file"));
            continue;
        }
        Child child(files.scratch, files.words(each.call, "pipe"), {});
        REQUIRE(child.handles_signals());
        child.signal(SIGINT);
        CHECK(child.wait() == 130);
        CHECK(child.err().find("ended by SIGINT") != std::string::npos);
    }
}

TEST_CASE("what a pipe brings is what a file holds") {
    const Scratch scratch;
    const std::string values = npy("<f4", "(2, 2)", bytes_of({1, 2, 3, 500}));
    spit(scratch / "v.npy", values);
    spit(scratch / "amax", "1\n2\n");
    std::filesystem::copy(FP8LAB_SOURCE "/assets/models/digits-s1.safetensors", scratch / "m.safetensors");
    spit(
        scratch / "config.json",
        R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":64,"intermediate_size":128,"num_attention_heads":4,"vocab_size":100})");
    const auto both = [&](const std::string& before, const std::string& file, const std::string& after) {
        CAPTURE(before);
        const std::string bash = "bash -c '\"$FP8LAB\" " + before;
        const Finished by_name = fp8lab("", "", bash + scratch / file + after + "'"),
                       by_pipe = fp8lab("", "", bash + "<(cat " + (scratch / file) + ")" + after + "'");
        CHECK(by_name.code == 0);
        CHECK(by_pipe.code == 0);
        CHECK(by_pipe.err == by_name.err);
        return std::pair(by_name.out, by_pipe.out);
    };
    for (const auto& [before, file, after] : std::vector<std::array<std::string, 3>>{
             {"cast --to e4m3 -i ", "v.npy", " -o -"},
             {"decode --from e4m3 -i ", "amax", " -o -"},
             {"simulate --amax ", "amax", ""},
             {"memory --plan te --model ", "config.json", ""},
             {"plan --gpu h200 --batch 2 --seq 64 ", "config.json", ""}}) {
        const auto [name, pipe] = both(before, file, after);
        CHECK(name == pipe);
        CHECK_FALSE(name.empty());
    }
    // The name of the tensor is that of the file.
    const auto behind = [](const std::string& text) {
        return text.substr(std::min(text.find(':'), text.size()));
    };
    const auto [name, pipe] = both("quantize ", "v.npy", " --recipe mxfp8");
    CHECK(behind(name) == behind(pipe));
    const auto [table, same] = both("inspect ", "m.safetensors", " --csv -");
    const auto from_line_2 = [](const std::string& text) {
        return text.substr(text.find('\n'));
    };  // 1: the name
    CHECK((from_line_2(table) == from_line_2(same)));
}

TEST_CASE("an endless pipe is read no further than its head allows") {
    const Scratch scratch;
    for (const char* call : {"quantize", "inspect"}) {
        const std::string recipe = std::string(call) == "quantize" ? " --recipe bf16" : "";
        const Finished zeros =
            fp8lab("", "", "bash -c '\"$FP8LAB\" " + std::string(call) + " <(cat /dev/zero)" + recipe + "'");
        CHECK(zeros.code == 4);
        CHECK(zeros.err.find("the header is not valid JSON") != std::string::npos);
    }
    spit(scratch / "head", npy("<f4", "(3,)", ""));
    const Finished more = fp8lab(
        "", "", "bash -c '\"$FP8LAB\" quantize <(cat " + (scratch / "head") + " /dev/zero) --recipe bf16'");
    CHECK(more.code == 4);
    CHECK(more.err.find("13 bytes of data where the shape needs 12: too much data") != std::string::npos);
}

TEST_CASE("a safetensors file of 100 GB, almost all of it zeros, is inspected by its parts") {
    const Scratch scratch;
    constexpr std::uint64_t kLarge = 100'000'000'000;
    const std::string header =
        R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"x":{"dtype":"U8","shape":[)" +
        std::to_string(kLarge) + R"(],"data_offsets":[16,)" + std::to_string(kLarge + 16) + "]}}";
    const std::uint64_t length = header.size();
    spit(scratch / "m.safetensors",
         std::string(reinterpret_cast<const char*>(&length), 8) + header + bytes_of({1, 2, 3, 4}));
    std::filesystem::resize_file(scratch / "m.safetensors", 8 + length + 16 + kLarge);
    const Finished run = fp8lab("inspect " + (scratch / "m.safetensors") + " --recipe bf16");
    CHECK(run.code == 0);
    CHECK(run.out.find("not a float") != std::string::npos);
    CHECK(fp8lab("quantize " + (scratch / "m.safetensors") + ":w --recipe bf16").code == 0);
}

TEST_CASE("what no verb can cast is refused by each in the same words") {
    const Scratch scratch;
    const auto said = [&](const std::string& file) {
        const Finished one = fp8lab("quantize " + (scratch / file) + " --recipe bf16"),
                       other = fp8lab("inspect " + (scratch / file));
        CHECK(one.code == 4);
        CHECK(other.code == 4);
        CHECK(one.err == other.err);
        CHECK(std::ranges::count(one.err, '\n') == 1);
        return one.err;
    };
    const std::string header = R"({"w":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}})";
    const std::uint64_t length = header.size();
    spit(scratch / "m.safetensors",
         std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(16, '\1'));
    CHECK(said("m.safetensors").find("dtype I64 of tensor 'w' is not a float") != std::string::npos);
    for (const std::string dtype : {"<f1", "|u1", "<V1", ">i2"}) {
        spit(scratch / "b.npy", npy(dtype, "(8,)", std::string(dtype == ">i2" ? 16 : 8, '\1')));
        CHECK(said("b.npy").find("dtype '" + dtype + "' is not supported") != std::string::npos);
    }
}
