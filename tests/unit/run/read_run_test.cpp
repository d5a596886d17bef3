// Logs of three kinds, whole, growing, torn and out of order.
#include "core/run/read_run.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "core/run/log_lines.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

const std::string kHead = R"({"fp8lab":1,"kinds":"xwd","every":2,"recipe":"bf16"})"
                          "\n";

std::string record(int step, const std::string& tensor, double amax) {
    return R"({"step":)" + std::to_string(step) + R"(,"tensor":")" + tensor + R"(","amax":)" +
           std::to_string(amax) + "}\n";
}

// The message of the error that reading gives; empty: none.
std::string refusal(const std::string& text, const RunSelection& selection = {}) {
    try {
        read_run_text(text, "f", selection);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

bool has_note(const RunLog& log, const std::string& part) {
    return std::any_of(log.notes.begin(), log.notes.end(),
                       [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

void append(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

}  // namespace

TEST_CASE("the hook's log: every member of a record, losses, the head, members that are not known") {
    const RunLog log = read_run_text(
        kHead +
            R"({"step":0,"tensor":"a.x","n":16,"nan":1,"inf":2,"zero":3,"amax":5.5,"amin":0.3,"top":2,"bins":[1,0,4,0,5,0,0]})"
            "\n" +
            R"({"tensor": "a.dy", "step": 0, "amax": 1e-9, "new": {"list": [1, {"x": null}], "t": true}})"
            "\r\n" +
            R"({"step":0,"loss":NaN})"
            "\n\n" +
            R"({"step":2,"loss":0.5})"
            "\n" +
            R"({"step":2,"tensor":"a.x","amax":Infinity,"top":null,"bins":[],"n":0,"nan":0,"inf":0,"zero":0})",
        "f");
    CHECK(log.recipe == "bf16");
    CHECK(log.kinds == "xwd");
    CHECK(log.every == 2);
    REQUIRE(log.tensors.size() == 2);
    const TensorSeries& x = log.tensors[0];
    CHECK(x.name() == "a.x");
    CHECK(x.tensor_class() == TensorClass::x);
    REQUIRE(x.points().size() == 2);
    CHECK(x.points()[0].amax == 5.5F);
    CHECK(x.points()[0].amin == 0.3F);
    CHECK(x.points()[0].nonfinite);
    CHECK(std::isnan(x.points()[0].scale));
    const auto counters = x.counters(x.points()[0]);
    REQUIRE(counters);
    CHECK(counters->n == 16);
    CHECK(counters->nan == 1);
    CHECK(counters->inf == 2);
    CHECK(counters->zero == 3);
    CHECK(counters->top == 2);
    CHECK(counters->bins == std::vector<std::uint64_t>{1, 0, 4, 0, 5});
    CHECK(counters->nonzero() == 10);
    CHECK(x.points()[1].nonfinite);
    CHECK(log.tensors[1].tensor_class() == TensorClass::dy);
    CHECK_FALSE(log.tensors[1].has_counters());
    CHECK(log.tensors[1].points()[0].amax == 1e-9F);
    REQUIRE(log.losses.size() == 2);
    CHECK(std::isnan(log.losses[0].loss));
    CHECK(log.losses[1].loss == 0.5);
    CHECK(log.first_step() == 0);
    CHECK(log.last_step() == 2);
    CHECK(log.points() == 3);
    CHECK(log.find("a.dy") == &log.tensors[1]);
    CHECK(log.find("a") == nullptr);
    CHECK(log.notes.empty());
}

TEST_CASE("counters survive packing, whatever their size") {
    for (const std::uint64_t count :
         {0ULL, 1ULL, 127ULL, 128ULL, 300ULL, 1ULL << 31, 1ULL << 40, 1ULL << 56}) {
        BinadeCounters counters{
            .n = count, .nan = 1, .inf = count, .zero = 5, .top = -149, .bins = {1, 0, count}};
        std::vector<std::uint8_t> packed;
        counters.pack(packed);
        TensorSeries series("x");
        series.add({.step = 1}, packed);
        series.add({.step = 2}, packed);
        const auto read = series.counters(series.points()[1]);
        REQUIRE(read);
        CHECK(read->n == count);
        CHECK(read->inf == count);
        CHECK(read->top == -149);
        CHECK(read->bins == (count == 0 ? std::vector<std::uint64_t>{1} : counters.bins));
    }
}

TEST_CASE("names say which operand a tensor is") {
    for (const char* name : {"dy", "dy3", "a.dy", "b.1.down.d", "1.down.dy"})
        CHECK(tensor_class_of(name) == TensorClass::dy);
    for (const char* name : {"w", "w2", "a.w", "b.1.down.w0"}) CHECK(tensor_class_of(name) == TensorClass::w);
    for (const char* name : {"x", "x1", "a.x", "head", "window", "xw", "a.id", ""})
        CHECK(tensor_class_of(name) == TensorClass::x);
}

TEST_CASE("nvidia-dlfw-inspect: activation, weight, gradient, and a 0.0000 is below 0.00005") {
    const std::string line = "2026-11-26 10:53:29,123 - INFO - ";
    const auto stat = [&](const std::string& name, int step, const std::string& value) {
        char number[8];
        std::snprintf(number, sizeof number, "%06d", step);
        return line + name + " \t\t\t\t iteration=" + number + " \t\t\t\t value=" + value + "\n";
    };
    const RunLog log = read_run_text(
        stat("l.0.fc1_activation_cur_amax", 0, "4.4522") + stat("l.0.fc1_weight_cur_amax", 0, "0.1767") +
            stat("l.0.fc1_gradient_cur_amax", 0, "0.0000") +
            stat("l.0.fc1_gradient_underflows%", 0, "12.5000") +
            stat("l.0.fc1_activation_dynamic_range", 0, "17.0000") + line +
            "Default logging to file enabled\n" + stat("l.0.fc1_activation_cur_amax", 10, "nan") +
            stat("a_weight_b_gradient_cur_amax", 10, "1.0000"),
        "f");
    REQUIRE(log.tensors.size() == 4);
    CHECK(log.tensors[0].name() == "l.0.fc1.x");
    CHECK(log.tensors[1].name() == "l.0.fc1.w");
    CHECK(log.tensors[2].name() == "l.0.fc1.dy");
    CHECK(log.tensors[3].name() == "a_weight_b.dy");
    REQUIRE(log.tensors[0].points().size() == 2);
    CHECK(log.tensors[0].points()[0].amax == 4.4522F);
    CHECK(log.tensors[0].points()[1].nonfinite);
    CHECK(log.tensors[0].points()[1].step == 10);
    REQUIRE(log.tensors[2].points().size() == 1);
    CHECK(log.tensors[2].points()[0].amax == 0);
    CHECK(log.tensors[2].points()[0].underflow_pct == 12.5F);
    CHECK(log.tensors[2].resolution() == 0.00005F);
    CHECK(has_note(log, "1 amaxes read 0.0000: they are below 0.00005, not 0"));
    CHECK(has_note(log, "2 lines are no statistics"));
}

TEST_CASE("InspectLogger: the same statistics with all digits, and with scales") {
    const RunLog log = read_run_text(kHead +
                                         R"({"step":3,"name":"a_gradient_cur_amax","value":2.5e-9})"
                                         "\n" +
                                         R"({"step":3,"name":"a_gradient_scale_inv_min","value":0.25})"
                                         "\n",
                                     "f");
    REQUIRE(log.tensors.size() == 1);
    CHECK(log.tensors[0].name() == "a.dy");
    REQUIRE(log.tensors[0].points().size() == 1);
    CHECK(log.tensors[0].points()[0].amax == 2.5e-9F);
    CHECK(log.tensors[0].points()[0].scale == 4);
    CHECK(log.tensors[0].resolution() == 0);
}

TEST_CASE("train --csv: one arm, empty cells are not logged") {
    const std::string csv =
        "# fp8lab 0.1.0 "
        "train\nstep,recipe,loss,accuracy,step_ms,amax_x1,scale_x1,underflow_pct_x1,overflow_pct_x1,"
        "amax_dy1,scale_dy1,underflow_pct_dy1,overflow_pct_dy1,lost_l1_pct_x1,lost_energy_pct_x1\n"
        "0,bf16,0.5,,1,4,1,0,0,1e-06,1,,0,,\n0,delayed,0.5,,1,4,112,0.25,0,1e-06,1,50,0,0,0\n"
        "1,bf16,nan,,1,inf,1,0,0,,,,,,\n1,delayed,0.25,,1,5,112,0,0,2e-06,2,51,0,0,0\n";
    const RunLog first = read_run_text(csv, "f");
    CHECK(first.arm == "bf16");
    CHECK(first.recipe == "bf16");
    CHECK(first.arms == std::vector<std::string>{"bf16", "delayed"});
    CHECK(has_note(first, "arm bf16 of 2 is read"));
    REQUIRE(first.tensors.size() == 2);
    CHECK(first.tensors[0].points().size() == 2);
    CHECK(first.tensors[0].points()[1].nonfinite);
    CHECK(first.tensors[1].points().size() == 1);
    CHECK(std::isnan(first.tensors[1].points()[0].underflow_pct));
    CHECK(std::isnan(first.losses.at(1).loss));
    const RunLog second = read_run_text(csv, "f", {.arm = "delayed"});
    CHECK(second.recipe == "delayed");
    REQUIRE(second.tensors.size() == 2);
    CHECK(second.tensors[1].points()[1].amax == 2e-6F);
    CHECK(second.tensors[1].points()[1].scale == 2);
    CHECK(second.tensors[0].points()[0].underflow_pct == 0.25F);
    CHECK(second.tensors[0].has_scales());
    CHECK(second.notes.empty());
    CHECK(refusal(csv, {.arm = "current"}).find("valid: bf16 delayed") != std::string::npos);
    CHECK(refusal(kHead + record(0, "x", 1), {.arm = "bf16"}).find("no arms") != std::string::npos);
}

TEST_CASE("steps out of order are sorted, those that come twice are replaced, and both are said") {
    const RunLog log = read_run_text(kHead + record(4, "x", 4) + record(2, "x", 2) + record(2, "x", 3) +
                                         record(6, "x", 6) + record(4, "x", 5) +
                                         R"({"step":6,"loss":1})"
                                         "\n" +
                                         R"({"step":4,"loss":2})"
                                         "\n" +
                                         R"({"step":6,"loss":3})"
                                         "\n",
                                     "f");
    const auto points = log.tensors.at(0).points();
    REQUIRE(points.size() == 3);
    CHECK(points[0].step == 2);
    CHECK(points[0].amax == 3);
    CHECK(points[1].step == 4);
    CHECK(points[1].amax == 5);
    CHECK(points[2].amax == 6);
    CHECK(has_note(log, "2 records came after one of a later step: they were sorted"));
    CHECK(has_note(log, "2 records are of a tensor and a step that were there before"));
    REQUIRE(log.losses.size() == 2);
    CHECK(log.losses[0].loss == 2);
    CHECK(log.losses[1].loss == 3);
    CHECK(log.tensors[0].at(3) == &points[0]);
    CHECK(log.tensors[0].at(1) == nullptr);
    CHECK(log.tensors[0].at(99) == &points[2]);
}

TEST_CASE("what is no record is refused with line and byte, and what stood before it stays") {
    const std::string before = kHead + record(0, "x", 1);
    const std::string place = "f: line 3 at byte ";
    struct Case {
        const char* line;
        std::size_t byte;  // in the line
        const char* why;
    };
    for (const Case& c : {
             Case{R"({"step":1,"tensor":"x","amax":1)", 31, "the line ends where '}' is expected"},
             Case{R"({"step":1,"tensor":"x","am)", 26, "the line ends inside a text"},
             Case{R"({"step":1,"tensor":"x"} {"step":2})", 24, "more text behind the record"},
             Case{R"({"step":-1,"tensor":"x"})", 8, "not in 0..2147483647"},
             Case{R"({"step":2147483648,"tensor":"x"})", 8, "not in 0..2147483647"},
             Case{R"({"step":1.5,"tensor":"x"})", 8, "expected a whole number"},
             Case{R"({"step":1,"tensor":"x","n":99999999999999999999})", 27, "not in 0.."},
             Case{R"({"step":1,"tensor":"x","n":-1})", 27, "not in 0.."},
             Case{R"({"step":1,"tensor":"x","amax":1e39})", 30, "a magnitude beyond float32"},
             Case{R"({"step":1,"tensor":"x","amax":1e999})", 30, "the number does not fit"},
             Case{R"({"step":1,"tensor":"x","amax":-1})", 30, "a magnitude below 0"},
             Case{R"({"step":1,"tensor":"x","amax":-inf})", 30, "expected a number"},
             Case{R"({"step":1,"tensor":"x","top":3000,"bins":[1]})", 29, "not in -149..127"},
             Case{R"({"step":1,"tensor":"x","amax":1e6,"top":1,"bins":[2]})", 0,
                  "amax is in binade 19, top is 1"},
             Case{R"({"step":1,"tensor":"x","amax":2,"amin":3,"top":1,"bins":[2]})", 0, "amin is above amax"},
             Case{R"({"step":1,"tensor":"x","amax":2,"amin":3})", 0, "amin is above amax"},
             Case{R"({"step":1,"tensor":"x","amax":0,"top":3,"bins":[2]})", 0, "amax is 0, and bins have"},
             Case{R"({"step":1,"name":"a_weight_cur_amax","value":-5})", 0, "a magnitude below 0"},
             Case{R"({"step":1,"name":"a_weight_cur_amax","value":1e300})", 0, "beyond float32"},
             Case{R"({"step":1,"tensor":"x","n":2,"top":0,"bins":[1]})", 0, "add up to 1, n is 2"},
             Case{R"({"step":1,"tensor":"x","bins":[1]})", 0, "bins without top"},
             Case{R"({"tensor":"x","amax":1})", 0, "without a step"},
             Case{R"({"step":1})", 0, "without a tensor, a loss or a value"},
             Case{R"({"step":1,"tensor":"\q"})", 20, "not an escape of JSON"},
             Case{R"(["step"])", 0, "expected '{'"},
             Case{R"({"fp8lab":2})", 11, "a later version"},
         }) {
        CAPTURE(c.line);
        const std::string said = refusal(before + c.line + "\n" + record(1, "x", 2));
        CAPTURE(said);
        CHECK(said.starts_with(place + std::to_string(before.size() + c.byte) + ": "));
        CHECK(said.find(c.why) != std::string::npos);
    }
}

TEST_CASE("a log whose head, cells or statistics are wrong is refused with line and byte") {
    const std::string before = kHead + record(0, "x", 1);
    std::string bins = R"({"step":1,"tensor":"x","top":0,"bins":[1)";
    for (int i = 0; i < 64; ++i) bins += ",0";
    CHECK(refusal(before + bins + "]}\n").find("more than 64 bins") != std::string::npos);
    CHECK(refusal(before + R"({"step":1,"x":)" + std::string(100, '[') + "\n").find("more than 16 deep") !=
          std::string::npos);
    CHECK(refusal(record(0, "x", 1)).find("does not begin with") != std::string::npos);
    CHECK(refusal("hello\nworld\n").find("no log of tensors") != std::string::npos);
    CHECK(refusal("step,recipe,loss\n0,bf16,1\n").find("line 1 at byte 0: no column") != std::string::npos);
    const std::string csv = "step,recipe,loss,amax_x1\n0,bf16,1,2\n";
    CHECK(refusal(csv + "1,bf16,1\n").find("line 3 at byte 43: fewer cells") != std::string::npos);
    CHECK(refusal(csv + "1,bf16,1,2,3\n").find("more cells") != std::string::npos);
    CHECK(refusal(csv + "x,bf16,1,2\n").find("line 3 at byte 36: the step is no whole number") !=
          std::string::npos);
    CHECK(refusal(csv + "1,bf16,1,1e39\n").find("no number that float32 holds") != std::string::npos);
    CHECK(refusal(csv + "1,bf16,1,-5\n").find("line 3 at byte 45: a magnitude below 0") != std::string::npos);
    const std::string inspect = "T - INFO - a_weight_cur_amax iteration=000000 value=1.0000\n";
    CHECK(refusal(inspect + "T - INFO - a_weight_cur_amax iteration=99999999999 value=1.0000\n")
              .find("line 2 at byte 59: the iteration") != std::string::npos);
    CHECK(refusal(inspect + "T - INFO - a_weight_cur_amax iteration=000001 value=1.0x\n")
              .find("the value is no number") != std::string::npos);
    CHECK(refusal(inspect + "T - INFO - a_weight_cur_amax iteration=000001 value=-5.0000\n")
              .find("line 2 at byte 59: a magnitude below 0") != std::string::npos);
    CHECK(refusal(inspect + "T - INFO - a_weight_cur_amax iteration=000001 value=1e300\n")
              .find("a magnitude beyond float32") != std::string::npos);
}

TEST_CASE("a growing file is read on: a record without an end waits, a number cut in two is no number") {
    const Scratch scratch;
    const std::string path = scratch / "run.jsonl";
    append(path, kHead + record(0, "x", 1) + R"({"step":1,"ten)");
    RunReader reader({path});
    reader.read();
    CHECK(reader.log().tensors.at(0).points().size() == 1);
    CHECK(has_note(reader.log(),
                   "line 3 at byte " + std::to_string((kHead + record(0, "x", 1)).size()) + ", has no end"));
    append(path, R"(sor":"x","amax":2})");
    reader.read();  // complete, though its line has no end
    CHECK(reader.log().tensors.at(0).points().size() == 2);
    CHECK(reader.log().notes.empty());
    append(path, "\n" + record(2, "x", 3) + record(2, "w", 1));
    reader.read();
    CHECK(reader.log().tensors.at(0).points().size() == 3);
    CHECK(reader.log().tensors.size() == 2);
    CHECK(reader.log().notes.empty());
    CHECK(reader.progress().fraction() == 1);
    append(path, "{\n");
    CHECK_THROWS_WITH_AS(reader.read(), doctest::Contains("line 6 at byte"), Error);
    CHECK(reader.log().tensors.size() == 2);

    const std::string csv = scratch / "run.csv";
    append(csv, "step,recipe,loss,am");
    RunReader rows({csv});
    rows.read();
    CHECK(rows.log().tensors.empty());
    append(csv, "ax_x1\n0,bf16,1,2\n1,bf16,1,2");
    rows.read();
    CHECK(rows.log().tensors.at(0).points().size() == 1);
    CHECK(has_note(rows.log(), "has no end"));
    append(csv, "5\n");
    rows.read();
    CHECK(rows.log().tensors.at(0).points().size() == 2);
    CHECK(rows.log().tensors[0].points()[1].amax == 25);
    std::filesystem::remove(csv);
    append(csv, "step,recipe,loss,amax_x2\n0,bf16,1,2\n1,bf16,1,2\n2,bf16,1,2\n3,bf16,1,2\n");
    CHECK_THROWS_WITH_AS(rows.read(), doctest::Contains("another file"), Error);
}

TEST_CASE("a log of many blocks is the same as its lines one by one, and is reported on its way") {
    const Scratch scratch;
    const std::string path = scratch / "run.jsonl";
    std::string text = kHead;
    for (int step = 0; step < 20'000; ++step)
        for (const char* name : {"model.layers.0.attention.x", "model.layers.0.attention.w"})
            text += R"({"step":)" + std::to_string(step) + R"(,"tensor":")" + name + R"(","amax":)" +
                    std::to_string(1 + step % 97) + R"(,"n":3,"nan":0,"inf":0,"zero":0,"top":)" +
                    std::to_string(std::ilogb(1 + step % 97)) + R"(,"bins":[1,0,2]})" + "\n";
    append(path, text);
    RunReader reader({path});
    double last = 0;
    std::size_t reports = 0;
    reader.read([&](const ReadProgress& at) {
        CHECK(at.fraction() > last);
        last = at.fraction();
        ++reports;
        CHECK(reader.log().tensors.size() == 2);
    });
    CHECK(reports >= 2);
    CHECK(last == 1);
    const RunLog log = reader.take();
    for (const TensorSeries& series : log.tensors) {
        REQUIRE(series.points().size() == 20'000);
        bool same = true;
        for (int step = 0; step < 20'000; ++step) {
            const TensorPoint& point = series.points()[static_cast<std::size_t>(step)];
            const auto counters = series.counters(point);
            same = same && point.step == step && point.amax == static_cast<float>(1 + step % 97) &&
                   counters && counters->top == std::ilogb(1 + step % 97) && counters->bins.size() == 3;
        }
        CHECK(same);
    }
}

TEST_CASE("a folder: its logs joined, one rank of several, what is no log is said") {
    const Scratch scratch;
    std::filesystem::create_directories(scratch.path / "nvdlfw_inspect_statistics_logs");
    const auto inspect = [&](int rank, const char* value) {
        append(scratch / ("nvdlfw_inspect_statistics_logs/nvdlfw_inspect_globalrank-" + std::to_string(rank) +
                          ".log"),
               std::string("T - INFO - a_weight_cur_amax iteration=000000 value=") + value + "\n");
    };
    inspect(0, "1.0000");
    inspect(3, "4.0000");
    append(scratch / "run.jsonl", kHead +
                                      R"({"step":0,"tensor":"a.w","amin":0.5})"
                                      "\n" +
                                      R"({"step":0,"loss":2})"
                                      "\n");
    append(scratch / "scalars.jsonl", "{\"fp8lab\":1}\n");
    append(scratch / "table.csv", "name,value\na,1\n");
    const RunLog log = read_run({scratch.path});
    REQUIRE(log.tensors.size() == 1);
    REQUIRE(log.tensors[0].points().size() == 1);
    CHECK(log.tensors[0].points()[0].amax == 1);
    CHECK(log.tensors[0].points()[0].amin == 0.5F);
    CHECK(log.losses.size() == 1);
    CHECK(log.recipe == "bf16");
    CHECK(has_note(log, "rank 0 of 2 is read"));
    CHECK(has_note(log, "table.csv is no log of tensors"));
    CHECK(read_run({scratch.path}, {.rank = 3}).tensors[0].points()[0].amax == 4);
    CHECK_THROWS_WITH_AS(read_run({scratch.path}, {.rank = 2}), doctest::Contains("ranks: 0 3"), Error);
    std::filesystem::create_directories(scratch.path / "empty");
    CHECK_THROWS_WITH_AS(read_run({scratch.path / "empty"}), doctest::Contains("no log in this folder"),
                         Error);
    CHECK_THROWS_AS(read_run({scratch.path / "none"}), Error);
}

TEST_CASE("two logs of the hook that hold the same tensor and step are refused, and --rank takes one") {
    const Scratch scratch;
    const std::string first = scratch / "run-0.jsonl", second = scratch / "run-1.jsonl";
    std::string healthy = kHead, sick = kHead;
    for (int step = 0; step < 10; ++step) {
        healthy += record(step, "a.x", 1);
        sick += step == 9 ? R"({"step":9,"tensor":"a.x","amax":NaN})"
                            "\n"
                          : record(step, "a.x", 1);
    }
    append(first, sick);
    append(second, healthy);
    const auto said = [](const std::vector<std::filesystem::path>& paths) -> std::string {
        try {
            read_run(paths);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    };
    for (const auto& paths : {std::vector<std::filesystem::path>{scratch.path}, {first, second}}) {
        const std::string why = said(paths);
        CAPTURE(why);
        CHECK(why.starts_with(second + ": a.x in step 0 is in " + first + " too"));
        CHECK(why.find("--rank") != std::string::npos);
    }
    CHECK(read_run({scratch.path}, {.rank = 0}).tensors.at(0).points()[9].nonfinite);
    CHECK_FALSE(read_run({scratch.path}, {.rank = 1}).tensors.at(0).points()[9].nonfinite);
    CHECK_THROWS_WITH_AS(read_run({scratch.path}, {.rank = 2}), doctest::Contains("ranks: 0 1"), Error);
    // Other steps of one run, or other tensors, are joined.
    const std::string later = scratch / "later.jsonl";
    append(later, kHead + record(10, "a.x", 1) + record(9, "b.x", 1));
    const RunLog log = read_run({first, later});
    CHECK(log.tensors.size() == 2);
    CHECK(log.tensors[0].points().size() == 11);
    // A log that is read on while it grows.
    RunReader reader(std::vector<std::filesystem::path>{first, later});
    reader.read();
    append(later, record(3, "a.x", 1));
    CHECK_THROWS_WITH_AS(reader.read(), doctest::Contains("a.x in step 3"), Error);
}

TEST_CASE(
    "logs of the hook that were trained in two recipes are refused, and a recipe that is unknown is said") {
    const Scratch scratch;
    const std::string first = scratch / "a.jsonl", second = scratch / "b.jsonl";
    append(first, kHead + record(0, "a.x", 1));
    append(second, R"({"fp8lab":1,"recipe":"delayed"})"
                   "\n" +
                       record(0, "b.x", 1));
    CHECK_THROWS_WITH_AS(
        read_run({first, second}),
        doctest::Contains((second + ": it was trained in delayed, " + first + " in bf16").c_str()), Error);
    const RunLog log = read_run_text(R"({"fp8lab":1,"recipe":"wat"})"
                                     "\n" +
                                         record(0, "x", 1),
                                     "f");
    CHECK(has_note(log, "the log says recipe wat, which is none of this program's"));
}

TEST_CASE("a CSV is read from its first arm that has values of tensors, and a byte order mark is skipped") {
    const std::string csv = "step,recipe,loss,amax_x1\n0,fp32,1,\n0,delayed,1,4\n1,fp32,1,\n1,delayed,1,5\n";
    const RunLog log = read_run_text(csv, "f");
    CHECK(log.arm == "delayed");
    CHECK(log.arms == std::vector<std::string>{"fp32", "delayed"});
    REQUIRE(log.tensors.size() == 1);
    CHECK(log.tensors[0].points().size() == 2);
    CHECK(log.losses.size() == 2);
    CHECK(read_run_text(csv, "f", {.arm = "fp32"}).tensors.empty());
    CHECK(read_run_text("step,recipe,loss,amax_x1\n0,fp32,1,\n", "f").tensors.empty());
    CHECK(read_run_text("\xEF\xBB\xBF" + kHead + record(0, "x", 1), "f").tensors.size() == 1);
}
