// The Workbench's tab "A run": what it shows of a log. Readers, replay and rules have tests of their own
// (tests/unit/run); here their numbers are held to what the shipped sample is known to be.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/files/files.h"
#include "labs/set_fields.h"
#include "labs/workbench/model.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::workbench;

namespace {

struct RunLab {
    WorkbenchLab lab;
    explicit RunLab(std::initializer_list<std::string> assignments = {}) { set(assignments); }
    void set(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
    const RunTab& run() const { return lab->doctor; }
    bool has(std::string_view name) const {
        const auto metrics = lab.metrics();
        return std::ranges::find(metrics, name, &Metric::name) != metrics.end();
    }
    Metric metric(std::string_view name) const {
        const auto metrics = lab.metrics();
        const auto it = std::ranges::find(metrics, name, &Metric::name);
        REQUIRE_MESSAGE(it != metrics.end(), name);
        return *it;
    }
    double operator()(std::string_view name) const { return metric(name).value; }
};

std::string head() { return "{\"fp8lab\":1,\"kinds\":\"xwd\",\"every\":1,\"recipe\":\"bf16\"}\n"; }

// Tensor NAME with 16 elements in two binades below 4, all of them inside the window of its own scale.
std::string record(int step, const std::string& name, double amax = 3) {
    const int top = static_cast<int>(std::floor(std::log2(amax)));
    return "{\"step\":" + std::to_string(step) + ",\"tensor\":\"" + name +
           "\",\"n\":16,\"nan\":0,\"inf\":0,\"zero\":0,\"amax\":" + std::to_string(amax) +
           ",\"amin\":1,\"top\":" + std::to_string(top) + ",\"bins\":[6,10]}\n";
}

template <class Done>
bool wait_until(Lab& lab, Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!done()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        lab.update();
    }
    return true;
}

}  // namespace

TEST_CASE("without a run the Workbench has the metrics that it had, with one those of the run behind them") {
    RunLab lab;
    const auto before = lab.lab.metrics();
    CHECK_FALSE(lab.has("findings"));
    lab.set({"run=tiny-swiglu"});
    const auto after = lab.lab.metrics();
    REQUIRE(after.size() > before.size());
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i].name == before[i].name);
    CHECK(lab("findings") == 3);
}

TEST_CASE("the sample run: what its histories cost") {
    // Of the training that made it: replayed in Python with the same order of Transformer Engine, to two digits.
    RunLab lab{"run=tiny-swiglu", "run_recipe=delayed", "history=64"};
    CHECK(lab.metric("first_tensor").text == "out.x");
    CHECK(lab("first_step") == 60);
    CHECK(lab.metric("first_cause").text.find("spike") != std::string::npos);
    CHECK(lab("lost_pct_inp.x") == doctest::Approx(25.6).epsilon(0.002));
    CHECK(lab("lost_pct_out.x") == doctest::Approx(26.7).epsilon(0.002));
    CHECK(lab("lost_pct_b.1.down.x") == doctest::Approx(18.8).epsilon(0.002));
    CHECK(lab("worst_unscaled") == doctest::Approx(82.4).epsilon(0.002));
    CHECK(lab("worst_delayed_1024") == doctest::Approx(74.7).epsilon(0.002));
    CHECK(lab("worst_delayed_16") == doctest::Approx(18.6).epsilon(0.003));
    for (const auto& [history, saturated, low, high] :
         {std::tuple{"1", 86, 0.4, 0.4}, {"4", 19, 1.6, 1.7}, {"16", 6, 6.4, 6.7}, {"1024", 2, 71.5, 74.9}}) {
        CAPTURE(history);
        lab.set({std::string("history=") + history, "run_tensor=inp.x"});
        CHECK(lab("saturated_inp.x") == saturated);
        CHECK(std::fabs(lab("lost_pct_inp.x") - low) < 0.06);
        const auto& rows = lab.run().choices->histories;
        const auto row = std::ranges::find(rows, std::stoi(history), &HistoryRow::history);
        REQUIRE(row != rows.end());
        CHECK(row->saturated == saturated);
        CHECK(std::fabs(row->lost.high - high) < 0.06);
    }
}

TEST_CASE("the title says what is seen first, and follows the recipe") {
    RunLab lab{"run=tiny-swiglu", "history=64"};
    CHECK(lab.run().title() ==
          "After step 60 out.x and inp.x lose nearly everything for 64 steps; b.1.down.x loses up to 98.4 % "
          "from "
          "step 153");
    CHECK(lab.run().findings_title() == "3 findings; 15 of 18 tensors are well");
    lab.set({"run_recipe=current"});
    CHECK(lab.run().title() == "b.1.down.x loses up to 98.3 % from step 153");
    CHECK(lab.run().findings_title() == "1 finding; 17 of 18 tensors are well");
    lab.set({"run_recipe=bf16"});
    CHECK(lab.run().title() == "Nothing: 18 of 18 tensors are well");
    // Whether a tensor is well is not known where only an upper bound is.
    lab.set({"run_recipe=mxfp8"});
    CHECK(lab.run().title() == "Nothing is found; at most 22.5 % of b.1.down.x becomes 0");
    CHECK(lab.run().findings_title() == "No findings; 18 of 18 tensors have none");
}

TEST_CASE("lanes: findings first, and all tensors where they are asked for") {
    RunLab lab{"run=tiny-swiglu", "history=64"};
    const RunLog& log = *lab.run().log();
    const auto names = [&] {
        std::vector<std::string> out;
        for (const std::size_t tensor : lab.run().lane_order()) out.push_back(log.tensors[tensor].name());
        return out;
    };
    REQUIRE(names().size() == 6);
    CHECK(names()[0] == "out.x");
    CHECK(names()[1] == "inp.x");
    CHECK(names()[2] == "b.1.down.x");
    lab.set({"healthy=true"});
    CHECK(names().size() == 18);
    lab.set({"layers=inp"});
    REQUIRE(names().size() == 3);
    CHECK(names()[0] == "inp.x");
    for (const std::string& name : names()) CHECK(name.starts_with("inp."));
}

TEST_CASE("the cursor: where the tensor loses most, else where it was put, between the steps of the log") {
    RunLab lab{"run=tiny-swiglu", "history=64", "run_tensor=inp.x"};
    CHECK(lab.run().cursor() > 60);
    CHECK(lab.run().cursor() <= 124);
    lab.set({"run_step=90"});
    CHECK(lab.run().cursor() == 90);
    CHECK(lab.run().step_title() == "inp.x in step 90: 95.7 to 100 % below the window");
    CHECK(lab.run().step_beside(1) == 91);
    CHECK(lab.run().step_beside(-1) == 89);
    lab.set({"run_step=100000"});
    CHECK(lab.run().cursor() == 239);
    CHECK(lab.run().step_beside(1) == 239);
    // Counters and window of one step: the counted elements are those of the log.
    const auto figures = lab.run().figures();
    const auto binades = std::ranges::find(figures, "binades", &Figure::id);
    double sum = 0;
    for (const Series& series : binades->series)
        if (const auto* bars = std::get_if<BarSeries>(&series.shape))
            for (const double n : *bars->heights) sum += n;
    CHECK(sum >= 0.999 * 8192);
    CHECK(sum <= 8192);
}

TEST_CASE("a log with nothing but amaxes says that what is lost is not known") {
    const Scratch scratch;
    std::string text;
    for (int step = 0; step < 40; ++step)
        for (const char* name : {"a", "b"})
            text += "2026-01-01 00:00:00,000 - INFO - " + std::string(name) +
                    "_activation_cur_amax \t\t\t\t iteration=" +
                    std::string(6 - std::to_string(step).size(), '0') + std::to_string(step) +
                    " \t\t\t\t value=2.5000\n";
    write_file(scratch.path / "nvdlfw_inspect_globalrank-0.log", text);
    RunLab lab{"run=" + (scratch / "nvdlfw_inspect_globalrank-0.log")};
    REQUIRE(lab.run().log());
    CHECK(lab.run().log()->losses.empty());
    CHECK(lab.run().diagnoses->unknown == 2);
    CHECK(lab.run().findings_title() == "No findings; 2 of 2 tensors have none");
    CHECK(lab.run().title().find("not known") != std::string::npos);
    CHECK(lab.run().step_title().find("not known") != std::string::npos);
    CHECK(lab("findings") == 0);
    CHECK(lab.metric("first_tensor").text == "none");
}

TEST_CASE("names lose what all of them begin with") {
    const Scratch scratch;
    std::string text = head();
    for (int step = 0; step < 4; ++step)
        for (const char* name : {"model.layers.1.down.x", "model.layers.12.up.x"}) text += record(step, name);
    write_file(scratch.path / "log.jsonl", text);
    const RunLab lab{"run=" + (scratch / "log.jsonl")};
    CHECK(lab.run().diagnoses->short_name(0) == "1.down.x");
    CHECK(lab.run().diagnoses->short_name(1) == "12.up.x");
    CHECK(lab.run().log()->tensors[1].name() == "model.layers.12.up.x");
}

TEST_CASE("a log that cannot be read ends a command, and a window says why and keeps the run before") {
    const Scratch scratch;
    write_file(scratch.path / "torn.jsonl",
               head() + "{\"step\":0,\"tensor\":\"a.x\",\"amax\":\n{\"step\":1}\n");
    RunLab lab;
    set_field(lab.lab.fields(), "run=" + (scratch / "torn.jsonl"));
    CHECK_THROWS_WITH_AS(lab.lab.update(), doctest::Contains("line 2"), Error);
    RunLab window;
    window.lab.set_wake([] {});
    set_field(window.lab.fields(), "run=tiny-swiglu");
    window.lab.update();
    REQUIRE(wait_until(window.lab, [&] { return window.has("findings"); }));
    for (const char* bad : {"torn.jsonl", "nowhere.jsonl"}) {
        CAPTURE(bad);
        set_field(window.lab.fields(), "run=" + (scratch / bad));
        window.lab.update();
        REQUIRE(wait_until(window.lab, [&] { return !window.run().reads->problem.empty(); }));
        CHECK(window.run().log()->tensors.size() == 18);
    }
    set_field(window.lab.fields(), "run=tiny-swiglu");
    window.lab.update();
    REQUIRE(wait_until(window.lab, [&] { return !window.lab.busy(); }));
    CHECK(window.run().reads->problem.empty());
}

TEST_CASE("in a window a file that grows is read on") {
    const Scratch scratch;
    const auto path = scratch.path / "grows.jsonl";
    write_file(path, head() + record(0, "a.x") + record(1, "a.x"));
    RunLab lab;
    lab.lab.set_wake([] {});
    set_field(lab.lab.fields(), "run=" + path.string());
    lab.lab.update();
    REQUIRE(wait_until(lab.lab, [&] { return lab.run().log() != nullptr; }));
    CHECK(lab.run().log()->last_step() == 1);
    CHECK_FALSE(lab.run().reads.busy());
    std::ofstream(path, std::ios::app) << record(2, "a.x") << record(3, "a.x");
    CHECK(wait_until(lab.lab, [&] { return lab.run().log()->last_step() == 3; }));
    CHECK(lab.run().reads->problem.empty());
}

TEST_CASE("in a window a long log shows what is read, and Cancel keeps it") {
    const Scratch scratch;
    std::string text = head();
    for (int step = 0; step < 4000; ++step)
        for (int t = 0; t < 40; ++t) text += record(step, "t" + std::to_string(t) + ".x");
    write_file(scratch.path / "long.jsonl", text);
    RunLab lab{"experiment=run"};
    lab.lab.set_wake([] {});
    set_field(lab.lab.fields(), "run=" + (scratch / "long.jsonl"));
    lab.lab.update();
    lab.lab.act("cancel");
    REQUIRE(wait_until(lab.lab, [&] { return lab.run().reads->done; }));
    const bool stopped = lab.run().reads->cancelled;
    if (stopped)
        CHECK(lab.run().told().starts_with("stopped at"));
    else  // it was read sooner than it could be stopped
        CHECK(lab.run().told() == "read to the end");
    lab.lab.act("scan");
    REQUIRE(wait_until(lab.lab, [&] { return lab.run().log() && lab.run().log()->last_step() == 3999; }));
    CHECK_FALSE(lab.run().reads->cancelled);
}

TEST_CASE("in a window a log that is still being read has lanes, and no findings before its end") {
    // One element of 16 is below the window in the first 900 steps: 6 % of what the first MiB has, 1.4 % of the run.
    const Scratch scratch;
    const std::string name = std::string(1000, 'n') + ".x";
    std::string text = head();
    for (int step = 0; step < 900; ++step)
        text += "{\"step\":" + std::to_string(step) + ",\"tensor\":\"" + name +
                "\",\"n\":16,\"nan\":0,\"inf\":0,\"zero\":0,\"amax\":3,\"amin\":2e-6,\"top\":1,"
                "\"bins\":[15,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1]}\n";
    for (int step = 900; step < 4000; ++step) text += record(step, name);
    write_file(scratch.path / "long.jsonl", text);
    REQUIRE(text.size() > std::size_t{2} << 20);  // it is shown after its first MiB
    write_file(scratch.path / "beginning.jsonl", text.substr(0, text.rfind('\n', std::size_t{1} << 20) + 1));
    CHECK(RunLab{"run=" + (scratch / "beginning.jsonl"), "run_recipe=unscaled"}("findings") == 1);
    RunLab lab{"experiment=run", "run_recipe=unscaled"};
    std::atomic<bool> held = true;
    lab.lab.set_wake([&held] {  // of the threads that read and judge
        while (held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    set_field(lab.lab.fields(), "run=" + (scratch / "long.jsonl"));
    lab.lab.update();
    const bool shown = wait_until(lab.lab, [&] { return lab.run().log() != nullptr; });
    const std::string title = lab.run().title(), findings_title = lab.run().findings_title();
    const std::size_t findings = lab.run().diagnoses->findings.size(), lanes = lab.run().lane_order().size();
    const bool partial = lab.run().log() && lab.run().log()->last_step() < 3999;
    const Metric count = lab.metric("findings");
    held = false;
    REQUIRE(shown);
    CHECK(partial);
    CHECK(title == "The log is being read, and judged at its end");
    CHECK(findings_title == "No findings yet: the log is being read");
    CHECK(findings == 0);
    CHECK(lanes == 1);
    CHECK(std::isnan(count.value));
    REQUIRE(wait_until(lab.lab, [&] { return lab.run().told() == "read to the end"; }));
    CHECK(lab.run().log()->last_step() == 3999);
    CHECK(lab("findings") == 0);
    CHECK(lab.run().title() == "Nothing: 1 of 1 tensors are well");
}

TEST_CASE("a spike under which nothing was counted: its loss is not known, and 0 is not told") {
    const Scratch scratch;
    std::string text;
    for (int step = 0; step < 80; ++step) {
        const std::string number = std::to_string(step);
        text += "2026-01-01 00:00:00,000 - INFO - a_activation_cur_amax \t\t\t\t iteration=" +
                std::string(6 - number.size(), '0') + number +
                " \t\t\t\t value=" + (step == 40 ? "90000.0000" : "2.5000") + "\n";
    }
    write_file(scratch.path / "nvdlfw_inspect_globalrank-0.log", text);
    RunLab lab{"run=" + (scratch / "nvdlfw_inspect_globalrank-0.log"), "run_recipe=delayed", "history=64"};
    REQUIRE(lab.run().diagnoses->findings.size() == 1);
    const RunFinding& spike = lab.run().diagnoses->findings[0];
    CHECK_FALSE(spike.lost_known);
    CHECK(lost_text(spike) == "?");
    CHECK(lab.run().cursor() == 40);  // nothing is known to be lost: where it begins
    CHECK(lab.run().title() == "After a spike in step 40 it is not known how much a.x loses");
    REQUIRE(lab.run().diagnoses->not_known.size() == 1);
    CHECK(lab.run().diagnoses->not_known[0].starts_with("1 of 1 tensor has no counters of binades"));
    lab.set({"run_recipe=mxfp8"});
    REQUIRE(lab.run().diagnoses->not_known.size() == 2);
    CHECK(lab.run().diagnoses->not_known[1].find("upper bound") != std::string::npos);
}

TEST_CASE("findings that are not about lost values tell none") {
    const auto text = [](FindingKind kind, double lost) {
        RunFinding finding;
        finding.kind = kind;
        finding.lost_pct = lost;
        return lost_text(finding);
    };
    CHECK(text(FindingKind::not_fp8, 0) == "-");
    CHECK(text(FindingKind::overflow_nan, 3) == "-");
    CHECK(text(FindingKind::all_zero, 0) == "0");
    CHECK(text(FindingKind::spike, 25.64) == "25.6");
}

TEST_CASE("the first loss that is not finite is in the title and in the figure of the loss") {
    const Scratch scratch;
    std::string text = head();
    for (int step = 0; step < 8; ++step)
        text += record(step, "a.x") + "{\"step\":" + std::to_string(step) + ",\"loss\":" +
                (step < 5    ? "0.5"
                 : step == 5 ? "NaN"
                             : "Infinity") +
                "}\n";
    write_file(scratch.path / "log.jsonl", text);
    RunLab lab{"run=" + (scratch / "log.jsonl"), "experiment=run"};
    CHECK(lab.run().loss_words() == "NaN in step 5");
    CHECK(lab.run().title() == "The loss is NaN in step 5; no rule finds fault with the tensors");
    const auto figures = lab.run().figures();
    const auto loss = std::ranges::find(figures, "loss", &Figure::id);
    const auto mark = std::ranges::find_if(
        loss->series, [](const Series& each) { return std::holds_alternative<VLine>(each.shape); });
    REQUIRE(mark != loss->series.end());
    CHECK(std::get<VLine>(mark->shape).x == 5);
    lab.set({"run=tiny-swiglu"});
    CHECK(lab.run().loss_words().empty());
    CHECK(lab.run().title().find("loss is") == std::string::npos);
}

TEST_CASE("the CSV of a run has a row for each tensor, ill ones first") {
    RunLab lab{"experiment=run", "run=tiny-swiglu", "history=64"};
    const std::string csv = lab.lab.table_csv();
    CHECK(std::ranges::count(csv, '\n') == 19);
    CHECK(csv.starts_with(
        "tensor,lost_pct_low,lost_pct_high,saturated_steps,mostly_lost_steps,from_step,number,"
        "cause,treatment\nout.x,26.7"));
    lab.set({"experiment=tensors"});
    CHECK_FALSE(lab.lab.table_csv().starts_with("tensor,lost_pct_low"));
}

TEST_CASE("a training's own recipe is judged with the scales that it logged") {
    const Scratch scratch;
    std::string text = "step,recipe,loss,amax_x1,scale_x1,underflow_pct_x1,overflow_pct_x1\n";
    for (int step = 0; step < 20; ++step) text += std::to_string(step) + ",delayed:history=4,0.5,2,8,25,0\n";
    write_file(scratch.path / "train.csv", text);
    RunLab lab{"run=" + (scratch / "train.csv")};
    CHECK(lab.run().judges_own());
    CHECK(lab("lost_pct_x1") == doctest::Approx(25));
    lab.set({"run_recipe=delayed", "history=4"});
    CHECK_FALSE(lab.run().judges_own());
}
