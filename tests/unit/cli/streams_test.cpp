// Every verb with streams that cannot be written and with every signal that ends it. A call of each stands in
// a table; which verbs there are comes from the program.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <thread>

#include "child.h"
#include "tests/json.h"

namespace {

using CallWords = std::vector<std::string>;

// SCRATCH stands for the test's folder. What the quick call writes besides stdout is the file SCRATCH/out.
struct VerbCalls {
    const char *verb, *quick, *lasting;
    // What makes the second call last: it works, its input does not end, its output is not read, or the display
    // does not answer.
    enum class Lasts { works, waits_for_input, waits_for_reader, waits_for_display } lasts;
    const char* begun = "";    // stderr says this once there is something to keep; empty: there never is
    const char* how_far = "";  // what the line about the signal says then
};

using enum VerbCalls::Lasts;

constexpr VerbCalls kCalls[] = {
    {"doctor", "doctor", "doctor", waits_for_reader},
    {"list", "list labs", "list exercises", waits_for_reader},
    {"formats", "formats e4m3", "formats", waits_for_reader},
    {"codes", "codes e4m3", "codes fp16", waits_for_reader},
    {"code", "code mxfp8 --for pytorch -o SCRATCH/out", "code mxfp8 --for pytorch", waits_for_reader},
    {"cast", "cast --to e4m3 -i SCRATCH/values -o -", "cast --to e4m3 -i - -o SCRATCH/out", waits_for_input},
    {"decode", "decode --from e4m3 -i SCRATCH/codes -o SCRATCH/out", "decode --from e4m3 -i - -o -",
     waits_for_input},
    {"quantize", "quantize SCRATCH/values.npy --recipe mxfp8", "quantize SCRATCH/values.npy --recipe mxfp8",
     waits_for_reader},
    {"inspect", "inspect SCRATCH/values.npy --csv SCRATCH/out", "inspect SCRATCH/large.safetensors", works,
     "inspect: ", " of 8 tensors; what was measured is written"},
    {"convert", "convert SCRATCH/large.safetensors --to bf16 -o SCRATCH/converted",
     "convert SCRATCH/large.safetensors --to bf16 -o SCRATCH/converted", works},
    {"verify", "verify SCRATCH/values.npy",
     "verify SCRATCH/large.safetensors --against SCRATCH/large.safetensors", works},
    {"simulate", "simulate --amax SCRATCH/amax", "simulate --amax -", waits_for_input},
    {"watch", "watch SCRATCH/run.jsonl", "watch SCRATCH/run.jsonl --csv", waits_for_reader},
    {"train", "train --backend cpu --recipe bf16 --layers 4,4,1 --batch 4 --steps 3 --csv SCRATCH/out",
     "train --backend cpu --recipe bf16 --layers 4,4,1 --batch 4 --steps 1000000000 --csv SCRATCH/out --save "
     "SCRATCH/saved",
     works, "step ", " of 1000000000 steps; what was measured is written"},
    {"generate", "generate --resume SCRATCH/model --characters 3",
     "generate --resume SCRATCH/model --characters 1000000", works},
    {"infer", "infer SCRATCH/mlp.safetensors --weights nvfp4 --activations nvfp4",
     "infer SCRATCH/mlp.safetensors --weights nvfp4 --activations nvfp4 --csv", waits_for_reader},
    {"draft", "draft SCRATCH/model/1-bf16.safetensors --draft nvfp4 --length 2",
     "draft SCRATCH/model/1-bf16.safetensors --draft nvfp4 --length 2 --json", waits_for_reader},
    {"mismatch", "mismatch SCRATCH/transformer.safetensors --rollout nvfp4 --answers 4 --tokens 4",
     "mismatch SCRATCH/transformer.safetensors --rollout nvfp4 --answers 4096", works},
    {"bench", "bench step --backend cpu --recipe bf16 --layers 4,4 --batch 2 --repeat 1",
     "bench step --backend cpu --recipe bf16 --layers 4,4 --batch 2 --repeat 10000 --json", works},
    {"run", "run bits --export SCRATCH/figures", "run train --set steps=100000 --steps 100000", works},
    {"memory", "memory --plan te", "memory --plan te --json", waits_for_reader},
    {"plan", "plan SCRATCH/config.json --gpu h100 --batch 1 --seq 8", "plan - --gpu h100 --batch 1 --seq 8",
     waits_for_input},
    {"check", "check SCRATCH/home/exercises/L1.1.json --csv SCRATCH/out",
     "check SCRATCH/home/exercises/L1.1.json", waits_for_reader},
    {"report", "report -o - --bundle SCRATCH/out", "report -o -", waits_for_reader},
    {"manual", "manual -o SCRATCH/out", "manual -o -", waits_for_reader},
    // There is no display: of the quick call only its failure is run here.
    {"screenshot", "screenshot -o SCRATCH/out", "screenshot -o SCRATCH/out", waits_for_display},
    {"validate", "validate --backend cpu", "validate --backend cpu --full", works,
     "backend: ", " checks, 0 of which failed"},
};

// More of work that lasts: inside one part of it, which a signal does not wait for.
constexpr VerbCalls kLastingCalls[] = {
    {"train", "",
     "train --backend cpu --model transformer --d 512 --ffn 2048 --context 256 --batch 8 --blocks 1 --recipe "
     "nvfp4-te,delayed --steps 1000 --csv SCRATCH/out",
     works, "step ", " of 1000 steps; what was measured is written"},
    {"train", "",
     "train --backend cpu --layers 1024,8192,1024 --batch 1024 --recipe bf16,mxfp8 --steps 100000 --csv "
     "SCRATCH/out",
     works, "step ", " of 100000 steps; what was measured is written"},
    {"infer", "",
     "infer SCRATCH/model/1-bf16.safetensors --weights mxfp8 --activations e4m3 --calibrate 1000000", works,
     "infer: calibration, "},
    {"infer", "", "infer SCRATCH/transformer.safetensors --mixed-tokens mxfp8,nvfp4 --by-layer --share 0.5",
     works, "infer: "},
    {"check", "", "check SCRATCH/long.f8scene SCRATCH/home/exercises/L1.1.json", works, "check: 0 of 2 files",
     " after 0 rows of 2 files"},
    {"quantize", "", "quantize SCRATCH/large.npy --recipe nvfp4,mxfp8,delayed", works, "quantize: "},
    {"inspect", "", "inspect SCRATCH/fortran.npy", works, "",
     " after 0 of 1 tensors; what was measured is written"},
    {"generate", "", "generate --resume SCRATCH/model --characters 1000000", works,
     "generate: ", " characters; they are printed"},
};

// A display that takes a connection and never answers.
class SilentDisplay {
  public:
    SilentDisplay() {
        ::sockaddr_in address{
            .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        ::socklen_t size = sizeof address;
        auto* any = reinterpret_cast<::sockaddr*>(&address);
        REQUIRE(::bind(socket_, any, size) == 0);
        REQUIRE(::listen(socket_, 8) == 0);
        REQUIRE(::getsockname(socket_, any, &size) == 0);
        constexpr int kDisplay0 = 6000;  // its port
        name_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port) - kDisplay0);
    }
    ~SilentDisplay() { ::close(socket_); }
    SilentDisplay(const SilentDisplay&) = delete;
    SilentDisplay& operator=(const SilentDisplay&) = delete;
    const std::string& name() const { return name_; }

  private:
    int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string name_;
};

// The checkpoint of a small transformer, as train --save writes it.
const std::string& checkpoint() {
    static const std::string bytes = [] {
        const Scratch scratch;
        fp8lab(
            "train --model transformer --recipe bf16 --d 8 --heads 2 --ffn 8 --blocks 1 --context 8 --batch "
            "1 "
            "--steps 1 --save " +
            scratch.path.string());
        return slurp(scratch / "1-bf16.safetensors");
    }();
    return bytes;
}

// A run of L8 that takes longer than the test waits.
std::string long_scene() {
    std::string scene = slurp(FP8LAB_SOURCE "/assets/scenes/L08-a-twin.f8scene");
    const auto replace = [&](const std::string& what, const std::string& with) {
        const auto at = scene.find(what);
        REQUIRE(at != scene.npos);
        scene.replace(at, what.size(), with);
    };
    replace("\"steps\": 2000", "\"steps\": 100000");
    replace("\"state\": {}", "\"state\": {\"steps\": 100000}");
    return scene;
}

// 2^29 zeros that take no room on the disk, in 8 tensors: the most that is read without sampling.
void make_large_file(const std::string& path) {
    nlohmann::json header;
    constexpr std::uint64_t kBytes = std::uint64_t{1} << 28;
    for (std::uint64_t i = 0; i < 8; ++i)
        header["t" + std::to_string(i)] = {
            {"dtype", "F32"}, {"shape", {8192, 8192}}, {"data_offsets", {i * kBytes, (i + 1) * kBytes}}};
    const std::string text = header.dump();
    const std::uint64_t size = text.size();
    std::string head(sizeof size, '\0');
    std::memcpy(head.data(), &size, sizeof size);
    spit(path, head + text);
    std::filesystem::resize_file(path, head.size() + text.size() + 8 * kBytes);
}

// 2^26 zeros that take no room on the disk, in Fortran order: read and cast as one piece.
void make_fortran_file(const std::string& path) {
    std::string head = npy("<f4", "(8192, 8192)", "");
    const std::string order = "'fortran_order': False";
    head.replace(head.find(order), order.size(), "'fortran_order': True ");
    spit(path, head);
    std::filesystem::resize_file(path, 128 + (std::uintmax_t{1} << 28));
}

struct Bench {
    Scratch scratch;
    Bench() {
        spit(scratch / "values", bytes_of({1, 2, 500}));
        spit(scratch / "config.json",
             R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128,
                   "num_attention_heads": 4, "vocab_size": 100})");
        spit(scratch / "values.npy", npy("<f4", "(3,)", bytes_of({1, 2, 500})));
        make_large_file(scratch / "large.safetensors");
        make_fortran_file(scratch / "fortran.npy");
        spit(scratch / "large.npy", npy("<f4", "(33554432, 16)", ""));
        std::filesystem::resize_file(scratch / "large.npy", 128 + (std::uintmax_t{1} << 31));
        spit(scratch / "long.f8scene", long_scene());
        spit(scratch / "codes", "\x01\x7E");
        spit(scratch / "amax", "1\n2\n");
        std::filesystem::copy(FP8LAB_SOURCE "/assets/runs/tiny-swiglu.jsonl", scratch / "run.jsonl");
        std::filesystem::create_directory(scratch / "model");
        spit(scratch / "model/1-bf16.safetensors", checkpoint());
        std::filesystem::copy(FP8LAB_SOURCE "/assets/models/digits-s1.safetensors",
                              scratch / "mlp.safetensors");
        std::filesystem::copy(FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors",
                              scratch / "transformer.safetensors");
        std::filesystem::create_directories(scratch / "home/exercises");
        std::filesystem::copy(FP8LAB_SOURCE "/tests/unit/cli/evidence/L1.1.json",
                              scratch / "home/exercises/L1.1.json");
    }
    CallWords words(const std::string& call) const {
        CallWords words;
        std::istringstream line(call);
        for (std::string word; line >> word; words.push_back(word))
            if (const auto at = word.find("SCRATCH"); at != word.npos)
                word.replace(at, 7, scratch.path.string());
        return words;
    }
    std::string output() const { return slurp(scratch / "out"); }
    // The temporaries of files that were being written.
    bool left_behind() const {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path))
            if (entry.path().filename().string().starts_with('.')) return true;
        return false;
    }
};

std::vector<std::string> verbs_of_the_program() {
    std::vector<std::string> verbs;
    std::istringstream help(fp8lab("--help").out);
    bool listed = false;
    for (std::string line; std::getline(help, line);) {
        if (line.starts_with("Subcommands:")) {
            listed = true;
        } else if (listed && !line.starts_with("  ")) {
            break;
        } else if (listed && line[2] != ' ') {
            verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
        }
    }
    return verbs;
}

std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }

// Of stderr: what the program says about its end.
std::string last_line(const std::string& err) {
    if (err.empty()) return {};
    const auto from = err.rfind('\n', err.size() - 2);
    return err.substr(from == err.npos ? 0 : from + 1);
}

struct Ended {
    int code;
    std::string out, err, file;
};

Ended run_with(const std::string& call, const Child::Streams& streams) {
    const Bench bench;
    Child child(bench.scratch, bench.words(call), streams);
    const int code = child.wait();
    CHECK_FALSE(bench.left_behind());
    return {code, child.out(), child.err(), bench.output()};
}

// Times of day and of steps differ from run to run, lines do not.
void check_same_result(const Ended& run, const Ended& usual) {
    CHECK(run.code == usual.code);
    CHECK(lines(run.out) == lines(usual.out));
    CHECK(lines(run.file) == lines(usual.file));
    CHECK(run.file.empty() == usual.file.empty());
}

void check_streams(const std::string& call) {
    CAPTURE(call);
    const Ended usual = run_with(call, {});
    CHECK((usual.code == 0) == !call.starts_with("screenshot"));
    for (const Stream err : {Stream::full, Stream::closed})
        check_same_result(run_with(call, {.err = err}), usual);
    const auto lost = [&](Stream out, int code, const std::string& says) {
        const Ended run = run_with(call, {.out = out});
        CAPTURE(run.err);
        if (usual.out.empty()) return check_same_result(run, usual);
        CHECK(run.code == code);
        if (!says.empty()) CHECK(last_line(run.err) == says);
        if (says.empty()) CHECK(run.err.find("fp8lab: ") == std::string::npos);
        CHECK(lines(run.file) == lines(usual.file));  // whole all the same
    };
    lost(Stream::full, 1, "fp8lab: stdout: No space left on device\n");
    lost(Stream::closed, 1, "fp8lab: stdout: Bad file descriptor\n");
    lost(Stream::broken, 141, "");
}

void check_signal(const VerbCalls& calls, int number, const std::string& name) {
    CAPTURE(name);
    const Bench bench;
    const SilentDisplay display;
    Child child(bench.scratch, bench.words(calls.lasting),
                {.out = calls.lasts == waits_for_reader ? Stream::unread : Stream::file,
                 .input_ends = calls.lasts != waits_for_input,
                 .display = calls.lasts == waits_for_display ? display.name() : ""});
    CHECK(child.handles_signals());
    const std::string begun = calls.begun;
    const bool only_works = calls.lasts == works && begun.empty();
    if (!begun.empty())
        CHECK(Child::until([&] {
            return child.err().find(begun) != std::string::npos &&
                   (begun != "backend: " || !child.out().empty());
        }));
    if (only_works) {  // in the midst of it, and not while it starts
        constexpr double kStarted = kSanitized ? 1.5 : 0.3;
        CHECK(Child::until([&] { return child.cpu_seconds() > kStarted; }));
    }
    const double before = child.cpu_seconds();
    child.signal(number);
    constexpr std::chrono::seconds kWatchdog(kSanitized ? 60 : 30);
    CHECK(child.wait(kWatchdog) == 128 + number);
    // Within a second, of the processor: others take the machine's time.
    if (!kSanitized)
        CHECK(child.cpu_seconds() - before <
              std::max(1.0, static_cast<double>(std::thread::hardware_concurrency())));
    const std::string said = last_line(child.err());
    CAPTURE(said);
    // Before it was parsed a call has no verb yet.
    const std::string with_verb = std::string("fp8lab: ") + calls.verb + ": ended by " + name;
    CHECK((said.starts_with(with_verb) || (!only_works && said == "fp8lab: ended by " + name + "\n")));
    CHECK(said.find(calls.how_far) != std::string::npos);
    CHECK_FALSE(bench.left_behind());
    const bool saves = std::string(calls.lasting).find("--save") != std::string::npos;
    CHECK(std::filesystem::exists(bench.scratch / "saved") == saves);
    if (std::string(calls.verb) == "train") {
        CHECK(bench.output().ends_with('\n'));
        CHECK(lines(bench.output()) >= 3);  // the run, the backend, the columns
        CHECK(lines(bench.output()) > (saves ? 3 : 2));
        CHECK(std::filesystem::exists(bench.scratch / "saved/1-bf16.safetensors") == saves);
    } else {
        CHECK(bench.output().empty());
    }
    const std::string out = child.out();
    if (out.starts_with('{')) CHECK(nlohmann::json::accept(out));
}

}  // namespace

TEST_CASE("every verb has a call in the table of streams and signals") {
    std::vector<std::string> there = verbs_of_the_program(), called;
    for (const VerbCalls& calls : kCalls) called.emplace_back(calls.verb);
    std::ranges::sort(there);
    std::ranges::sort(called);
    CHECK(there.size() > 10);
    CHECK(there == called);
}

// In two halves, so that they run beside each other.
constexpr std::size_t kHalf = std::size(kCalls) / 2;

TEST_CASE("verbs: stdout that is full, closed or not read any more, stderr that is full or closed") {
    for (const VerbCalls& calls : std::span(kCalls).first(kHalf)) check_streams(calls.quick);
    for (const char* answer : {"--help", "--version", "train --help"}) check_streams(answer);
}

TEST_CASE("more verbs: stdout that is full, closed or not read any more, stderr that is full or closed") {
    for (const VerbCalls& calls : std::span(kCalls).subspan(kHalf)) check_streams(calls.quick);
}

TEST_CASE("stderr that nobody reads any more changes no result") {
    const std::string call = kCalls[0].quick;
    check_same_result(run_with(call, {.err = Stream::broken}), run_with(call, {}));
}

TEST_CASE("every verb: stderr that cannot be written changes no failure") {
    for (const char* call : {"formats e4m4", "decode --from e4m3 -i /no/such/file -o -", "no-such-verb",
                             "--no-such-option", "train --backend cuda --steps 1", "check /no/such/file"}) {
        CAPTURE(call);
        const int code = run_with(call, {}).code;
        CHECK(code >= 1);
        for (const Stream err : {Stream::full, Stream::closed, Stream::broken})
            CHECK(run_with(call, {.err = err}).code == code);
    }
}

TEST_CASE("every verb ends by SIGINT, SIGTERM and SIGHUP, with what was done and 130, 143, 129") {
    for (const VerbCalls& calls : kCalls) {
        CAPTURE(std::string(calls.verb));
        if (!kHasWindow && std::string(calls.verb) == "screenshot") continue;
        check_signal(calls, SIGINT, "SIGINT");
        check_signal(calls, SIGTERM, "SIGTERM");
        check_signal(calls, SIGHUP, "SIGHUP");
    }
}

TEST_CASE("work that lasts ends in its midst, with what was done and the signal's exit code") {
    constexpr std::array<std::pair<int, const char*>, 3> kSignals = {
        {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}};
    std::size_t next = 0;
    for (const VerbCalls& calls : kLastingCalls) {
        CAPTURE(std::string(calls.lasting));
        const std::size_t signals = std::getenv("FP8LAB_TEST_ALL") != nullptr ? kSignals.size() : 1;
        for (std::size_t i = 0; i < signals; ++i, ++next) {
            const auto& [number, name] = kSignals.at(next % kSignals.size());
            check_signal(calls, number, name);
        }
    }
}

// Header without what names the call, and values.
std::pair<nlohmann::json, std::string> contents(const std::string& file) {
    std::uint64_t size = 0;
    REQUIRE(file.size() > sizeof size);
    std::memcpy(&size, file.data(), sizeof size);
    auto header = parsed(file.substr(sizeof size, size));
    header.erase("__metadata__");
    return {header, file.substr(sizeof size + size)};
}

TEST_CASE("a signal inside a step keeps the whole steps: the files are those of a run of so many steps") {
    const std::string call =
        "train --backend cpu --model transformer --d 128 --ffn 512 --context 128 --batch 16 --recipe "
        "nvfp4-te,delayed --schedule constant --csv SCRATCH/out --save SCRATCH/saved --steps ";
    const Bench bench, whole;
    Child child(bench.scratch, bench.words(call + "1000"), {});
    REQUIRE(Child::until([&] {
        const std::string err = child.err();
        return err.find("step ") != err.npos && err.find("step 0 ") != err.rfind("step ");
    }));
    child.signal(SIGTERM);
    CHECK(child.wait() == 143);
    constexpr int kHead = 3, kArms = 2;
    const auto steps = (lines(bench.output()) - kHead) / kArms;
    REQUIRE(steps > 0);
    CHECK(lines(bench.output()) == kHead + kArms * steps);
    CHECK(child.err().find("after " + std::to_string(steps) + " of 1000 steps") != std::string::npos);
    Child again(whole.scratch, whole.words(call + std::to_string(steps)), {});
    REQUIRE(again.wait() == 0);
    for (const char* arm : {"saved/1-nvfp4-te.safetensors", "saved/2-delayed.safetensors"}) {
        const std::string kept = slurp(bench.scratch / arm), expected = slurp(whole.scratch / arm);
        CHECK(contents(kept).first == contents(expected).first);
        CHECK((contents(kept).second == contents(expected).second));
    }
}

// What a terminal gets: the screen's end of a line of its own.
TEST_CASE("on a terminal progress is one line that is drawn anew, and the last word replaces it") {
    const Bench bench;
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(terminal >= 0);
    REQUIRE(::grantpt(terminal) == 0);
    REQUIRE(::unlockpt(terminal) == 0);
    Child child(bench.scratch,
                bench.words("train --backend cpu --recipe bf16 --layers 4,4,1 --batch 4 --steps 1000000000"),
                {.terminal = ::ptsname(terminal)});
    std::string screen;
    const auto read_more = [&] {
        char bytes[4096];
        pollfd ready{terminal, POLLIN, 0};
        if (::poll(&ready, 1, 10) != 1) return;
        if (const ssize_t size = ::read(terminal, bytes, sizeof bytes); size > 0)
            screen.append(bytes, static_cast<std::size_t>(size));
    };
    const std::string over = "\r\x1b[K", drawn = over + "step ";
    REQUIRE(Child::until([&] {
        read_more();
        const auto first = screen.find(drawn);
        return first != screen.npos && screen.find(drawn, first + 1) != screen.npos;
    }));
    CHECK(screen.find('\n', screen.find(drawn)) == screen.npos);
    child.signal(SIGINT);
    CHECK(Child::until([&] {
        read_more();
        return screen.find("ended by SIGINT") != screen.npos;
    }));
    CHECK(child.wait() == 130);
    CHECK(screen.find(over + "fp8lab: train: ended by SIGINT") != screen.npos);
    ::close(terminal);
}

TEST_CASE("a signal that was ignored from the start stays ignored: nohup") {
    const Bench bench;
    Child child(bench.scratch,
                bench.words("train --backend cpu --recipe bf16 --layers 4,4,1 --batch 4 --steps 1000000000"),
                {.ignores_hangup = true});
    const auto steps = [&] {
        const std::string err = child.err();
        int count = 0;
        for (auto at = err.find("step "); at != err.npos; at = err.find("step ", at + 1)) ++count;
        return count;
    };
    REQUIRE(Child::until([&] { return steps() > 0; }));
    child.signal(SIGHUP);
    const int before = steps();
    CHECK(Child::until([&] { return steps() > before; }));  // it goes on
    child.signal(SIGTERM);
    CHECK(child.wait() == 143);
}

TEST_CASE("a file never becomes stdout because stdout was closed") {
    const Bench bench;
    Child child(bench.scratch, bench.words("cast --to e4m3 -i SCRATCH/values -o SCRATCH/out"),
                {.out = Stream::closed});
    CHECK(child.wait() == 0);
    CHECK(bench.output() == "\x38\x40\x7E");
    Child both(bench.scratch, bench.words("check SCRATCH/home/exercises/L1.1.json --csv SCRATCH/out"),
               {.out = Stream::closed});
    CHECK(both.wait() == 1);
    CHECK(bench.output().starts_with("path,exercise,passed"));
    CHECK(lines(bench.output()) == 2);
}
