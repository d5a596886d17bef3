// fp8lab train --trace: Chrome's trace events, as a viewer reads them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

const std::string kTwoLayers = "train --backend cpu --layers 8,16,1 --batch 32 ";

std::vector<json> of_kind(const json& trace, const std::string& kind) {
    std::vector<json> out;
    for (const json& event : trace["traceEvents"])
        if (event["ph"] == kind) out.push_back(event);
    return out;
}

double begin_of(const json& event) { return event["ts"]; }
double end_of(const json& event) { return event["ts"].get<double>() + event["dur"].get<double>(); }

// How many spans each kind lies in.
std::size_t depth_of(const json& span) {
    static const std::map<std::string, std::size_t> depths = {
        {"step", 0},   {"fprop", 1},     {"dgrad", 1}, {"wgrad", 1}, {"loss", 1},
        {"scales", 1}, {"optimiser", 1}, {"cast", 2},  {"gemm", 2},  {"instruments", 2}};
    return depths.at(span["cat"]);
}

// The names of an arm's spans behind those of the spans that they lie in: "step 0/fprop 1/cast x1". Checks on the way that
// each lies wholly in its parent and does not begin before the span in front of it has ended.
std::vector<std::string> paths_of(const std::vector<json>& spans, int process) {
    std::vector<std::string> out;
    std::vector<json> open;  // the newest of each depth
    for (const json& span : spans) {
        if (span["pid"] != process) continue;
        const std::size_t depth = depth_of(span);
        REQUIRE(depth <= open.size());
        CHECK(span["dur"].get<double>() >= 0);
        if (depth < open.size()) CHECK(begin_of(span) >= end_of(open[depth]));
        if (depth > 0) {
            CHECK(begin_of(span) >= begin_of(open[depth - 1]));
            CHECK(end_of(span) <= end_of(open[depth - 1]));
        }
        open.resize(depth);
        open.push_back(span);
        std::string path;
        for (const json& each : open) path += (path.empty() ? "" : "/") + each["name"].get<std::string>();
        out.push_back(path);
    }
    return out;
}

// What a step of the two layers has, of a recipe with one scale per tensor.
std::vector<std::string> paths_of_step(int step) {
    const std::string begin = "step " + std::to_string(step);
    std::vector<std::string> out = {begin};
    const auto add = [&](const std::string& pass, const std::vector<std::string>& inside) {
        const std::string path = begin + "/" + pass;
        out.push_back(path);
        for (const std::string& each : inside) out.emplace_back(path).append("/").append(each);
    };
    for (const std::string layer : {"1", "2"}) {
        std::vector<std::string> inside = {"cast x" + layer, "cast w" + layer, "GEMM fprop " + layer,
                                           "round to bf16"};
        if (step == 0) inside.push_back("product in float64 w" + layer);
        add("fprop " + layer, inside);
    }
    add("loss", {});
    add("dgrad 2", {"cast dy2", "GEMM dgrad 2", "round to bf16"});
    add("wgrad 2", {"GEMM wgrad 2"});
    add("wgrad 1", {"cast dy1", "GEMM wgrad 1"});
    add("scales and records", {});
    add("optimiser", {});
    return out;
}

// ---- Chrome's Trace Event Format, by the rules of its document alone.

bool is_time(const json& event, const char* member) {
    return event.contains(member) && event[member].is_number() &&
           std::isfinite(event[member].get<double>()) && event[member].get<double>() >= 0;
}

bool is_text(const json& event, const char* member) {
    return event.contains(member) && event[member].is_string() && !event[member].get<std::string>().empty();
}

// What an event lacks; empty: nothing.
std::string event_fault(const json& event) {
    if (!event.is_object() || !is_text(event, "ph") || !is_text(event, "name"))
        return "no object with ph and name";
    for (const char* member : {"pid", "tid"})
        if (!event.contains(member) || !event[member].is_number_integer()) return std::string("no ") + member;
    if (event.contains("args") && !event["args"].is_object()) return "args is no object";
    if (event["ph"] == "X") {
        if (!is_time(event, "ts")) return "ts";
        if (!is_time(event, "dur")) return "dur";
        return is_text(event, "cat") ? "" : "cat";
    }
    if (event["ph"] != "M") return "an event of another kind";
    if (!event.contains("args")) return "M without args";
    const std::string name = event["name"];
    const bool names = name == "process_name" || name == "thread_name";
    if (names) return is_text(event["args"], "name") ? "" : "M without a name";
    return name == "process_sort_index" && event["args"]["sort_index"].is_number_integer() ? "" : "M";
}

// On one thread two spans are apart, or one lies in the other.
std::string nesting_fault(std::vector<json> spans) {
    std::ranges::stable_sort(spans, [](const json& a, const json& b) {
        return std::pair(begin_of(a), -end_of(a)) < std::pair(begin_of(b), -end_of(b));
    });
    std::vector<double> open;  // where the spans around the present one end
    for (const json& span : spans) {
        while (!open.empty() && open.back() <= begin_of(span)) open.pop_back();
        if (!open.empty() && end_of(span) > open.back())
            return "overlaps: " + span["name"].get<std::string>();
        open.push_back(end_of(span));
    }
    return "";
}

std::string schema_fault(const json& trace) {
    if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
        return "no traceEvents";
    std::map<std::pair<int, int>, std::vector<json>> threads;
    std::set<int> named;
    for (const json& event : trace["traceEvents"]) {
        if (std::string fault = event_fault(event); !fault.empty()) return fault;
        if (event["name"] == "process_name") named.insert(event["pid"].get<int>());
        if (event["ph"] == "X") threads[{event["pid"], event["tid"]}].push_back(event);
    }
    for (const auto& [thread, spans] : threads) {
        if (!named.contains(thread.first)) return "a process without a name";
        if (std::string fault = nesting_fault(spans); !fault.empty()) return fault;
    }
    return threads.empty() ? "no span" : "";
}

// One failure is one line, and nothing on stdout.
void check_trace_refused(const std::string& arguments, int code, const std::string& part) {
    CAPTURE(arguments);
    const Finished run = fp8lab(arguments);
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK(run.err.find(part) != std::string::npos);
    CHECK(std::ranges::count(run.err, '\n') == 1);
}

}  // namespace

TEST_CASE("a trace has a process for each arm, and in it every span of every step where it belongs") {
    const Scratch scratch;
    const std::string file = scratch / "out.json";
    REQUIRE(fp8lab(kTwoLayers + "--recipe delayed,bf16,current:fwd=e5m2 --steps 3 --trace " + file).code ==
            0);
    const json trace = parsed(slurp(file));
    CHECK(trace["provenance"] == "cpu-emulated");
    CHECK(trace["seed"] == 1);
    CHECK(trace["command_line"].get<std::string>().find("--layers 8,16,1") != std::string::npos);
    const std::vector<json> spans = of_kind(trace, "X"), names = of_kind(trace, "M");
    CHECK(spans.size() + names.size() == trace["traceEvents"].size());
    std::map<int, std::string> processes;
    for (const json& event : names) {
        CHECK(event["tid"] == 1);
        if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    }
    CHECK(processes == std::map<int, std::string>{{1, "delayed"}, {2, "bf16"}, {3, "current:fwd=e5m2"}});
    for (const json& span : spans)
        for (const char* member : {"name", "cat", "ph", "ts", "dur", "pid", "tid"})
            CHECK(span.contains(member));
    std::vector<std::string> expected;
    for (int step = 0; step < 3; ++step)
        for (const std::string& path : paths_of_step(step)) expected.push_back(path);
    for (int process = 1; process <= 3; ++process) {
        CAPTURE(process);
        CHECK(paths_of(spans, process) == expected);
    }
    std::set<std::string> formats, shapes;
    for (const json& span : spans) {
        if (span["name"] == "cast x1") formats.insert(span["args"]["detail"]);
        if (span["name"] == "GEMM wgrad 1") shapes.insert(span["args"]["detail"]);
    }
    CHECK(formats == std::set<std::string>{"e4m3", "bf16", "e5m2"});
    CHECK(shapes == std::set<std::string>{"32 x 16, 32 x 8"});
}

TEST_CASE("a trace keeps to Chrome's trace event format: fields, types, times, nesting") {
    for (const std::string& run :
         {kTwoLayers + "--recipe delayed,bf16,nvfp4 --steps 3",
          kTwoLayers + "--recipe mxfp8 --ranks 2 --accumulate 2 --steps 2",
          kTwoLayers + "--recipe bf16,delayed:overflow=nonsaturate --steps 5 --poison 1:1e30",
          std::string(
              "train --backend cpu --model transformer --d 16 --heads 2 --ffn 16 --blocks 1 --context 16 "
              "--batch 2 --steps 2 --recipe current")}) {
        CAPTURE(run);
        const Finished done = fp8lab(run + " --trace -");
        CHECK(schema_fault(parsed(done.out)) == "");
    }
}

TEST_CASE("the check of the format finds what breaks it") {
    const json whole = parsed(fp8lab(kTwoLayers + "--recipe delayed --steps 2 --trace -").out);
    REQUIRE(schema_fault(whole) == "");
    const auto fault_of = [&](auto change) {
        json trace = whole;
        for (json& event : trace["traceEvents"])
            if (event["name"] == "cast w1") {  // has a neighbour on each side in its pass
                change(event);
                break;
            }
        return schema_fault(trace);
    };
    CHECK(fault_of([](json& e) { e["dur"] = -0.125; }) == "dur");
    CHECK(fault_of([](json& e) { e["ts"] = "0"; }) == "ts");
    CHECK(fault_of([](json& e) { e.erase("pid"); }) == "no pid");
    CHECK(fault_of([](json& e) { e["tid"] = 1.5; }) == "no tid");
    CHECK(fault_of([](json& e) { e["cat"] = ""; }) == "cat");
    CHECK(fault_of([](json& e) { e["args"] = "e4m3"; }) == "args is no object");
    CHECK(fault_of([](json& e) { e["ph"] = "Q"; }) == "an event of another kind");
    CHECK(fault_of([](json& e) { e["pid"] = 9; }) == "a process without a name");
    CHECK(fault_of([](json& e) { e["dur"] = 1e9; }) == "overlaps: cast w1");
    CHECK(schema_fault(json::object()) == "no traceEvents");
    CHECK(schema_fault({{"traceEvents", json::array()}}) == "no span");
}

TEST_CASE("blocks are cast for each GEMM, and fp32 casts nothing") {
    const json trace = parsed(fp8lab(kTwoLayers + "--recipe mxfp8,fp32 --steps 2 --trace -").out);
    std::map<int, std::map<std::string, int>> counts;
    for (const json& span : of_kind(trace, "X")) ++counts[span["pid"]][span["name"]];
    CHECK(counts[1]["cast x1"] == 2 * 2);  // fprop and wgrad
    CHECK(counts[1]["cast w2"] == 2 * 2);  // fprop and dgrad
    CHECK(counts[1]["cast w1"] == 2);      // there is no dgrad of the first layer
    for (const auto& [name, count] : counts[2])
        CHECK_MESSAGE((!name.starts_with("cast") && !name.starts_with("round")), name);
    CHECK(counts[2]["GEMM fprop 1"] == 2);
}

TEST_CASE("a trace keeps the newest steps, and does not change a training") {
    const Scratch scratch;
    const std::string run = kTwoLayers + "--recipe delayed,nvfp4 --steps 9 --csv ";
    REQUIRE(fp8lab(run + (scratch / "a.csv")).code == 0);
    REQUIRE(fp8lab(run + (scratch / "b.csv") + " --trace-steps 2 --trace " + (scratch / "t.json")).code == 0);
    // Every column but step_ms, the fifth.
    const auto without_times = [](const std::string& csv) {
        std::string out;
        int comma = 0;
        for (const char c : csv) {
            if (c == '\n') comma = 0;
            if (c == ',') ++comma;
            if (comma != 4) out += c;
        }
        return out;
    };
    const std::string plain = without_times(slurp(scratch / "a.csv"));
    CHECK(plain.size() > 1000);
    CHECK(plain == without_times(slurp(scratch / "b.csv")));
    std::vector<std::string> steps;
    for (const json& span : of_kind(parsed(slurp(scratch / "t.json")), "X"))
        if (span["cat"] == "step") steps.push_back(span["name"]);
    CHECK(steps == std::vector<std::string>{"step 7", "step 8", "step 7", "step 8"});
}

TEST_CASE("a trace of a transformer names its GEMMs, and has no evaluation") {
    const json trace =
        parsed(fp8lab("train --backend cpu --model transformer --d 16 --heads 2 --ffn 16 --blocks 1 "
                      "--context 16 --batch 2 --steps 2 --recipe delayed --trace -")
                   .out);
    std::map<std::string, int> counts;
    for (const json& span : of_kind(trace, "X")) ++counts[span["name"]];
    for (const char* name : {"fprop 1.qkv", "fprop 1.attention", "dgrad 1.attention", "GEMM q k^T, softmax",
                             "GEMM dq, dk", "wgrad 1.down", "GEMM dgrad head", "cast head.dy", "SwiGLU",
                             "SwiGLU backward", "embedding", "optimiser"}) {
        CAPTURE(name);
        CHECK(counts[name] == 2);
    }
    CHECK(counts["norm"] == 2 * 3);
    CHECK(counts["norm backward"] == 2 * 3);
}

TEST_CASE("what --trace refuses is said before the training, and nothing is written") {
    const Scratch scratch;
    const std::string run = kTwoLayers + "--recipe bf16 --steps 2 ", out = scratch / "out.json";
    check_trace_refused(run + "--trace-steps 3", 2, "--trace-steps: has no effect without --trace");
    check_trace_refused(run + "--trace-steps 0 --trace " + out, 2, "--trace-steps: 0 is not in 1..1000");
    check_trace_refused(run + "--json " + out + " --trace " + out, 2, "--trace");
    check_trace_refused(run + "--json - --trace -", 2, "--trace");
    check_trace_refused(run + "--trace " + (scratch / "none/out.json"), 1, "--trace");
    check_trace_refused("train --backend cuda --steps 1 --trace " + out, 3, "");
    spit(scratch / "x.npy", npy("<f4", "(1, 1)", bytes_of({1})));
    spit(scratch / "y.npy", npy("<f4", "(1, 1)", bytes_of({1})));
    check_trace_refused("train --backend cpu --task npy:" + (scratch / "x.npy") + "," + (scratch / "y.npy") +
                            " --steps 1 --trace " + (scratch / "x.npy"),
                        2, "--trace");
    CHECK_FALSE(std::filesystem::exists(out));
}
