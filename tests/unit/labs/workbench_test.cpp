// The shipped samples, files of one's own, and what a window does while they are read. The numbers of casts are held to
// numpy and to quantize in tests/unit/cli/inspect_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/tensors/npy.h"
#include "core/tensors/safetensors.h"
#include "labs/set_fields.h"
#include "labs/workbench/model.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::workbench;

namespace {

struct Made {
    WorkbenchLab lab;
    Made(std::initializer_list<std::string> assignments = {}) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
    double operator()(std::string_view name) const {
        const auto metrics = lab.metrics();
        const auto it = std::ranges::find(metrics, name, &Metric::name);
        REQUIRE_MESSAGE(it != metrics.end(), name);
        return it->value;
    }
};

void wait(Lab& lab) {
    while (lab.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    lab.update();
    while (lab.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    lab.update();
}

std::string big_file(const Scratch& scratch) {
    std::mt19937 random(1);
    std::vector<float> values(1 << 24);
    for (float& value : values) value = static_cast<float>(random()) - 2e9F;
    SafeTensors file;
    for (const char* name : {"a.1", "a.2", "b"}) file.tensors[name] = {{4096, 4096}, values};
    write_file(scratch.path / "big.safetensors", to_safetensors(file));
    return scratch / "big.safetensors";
}

}  // namespace

TEST_CASE("the samples are what the lesson says of them") {
    const Made made;
    CHECK(made("tensors") == 150);
    CHECK(made("losing_unscaled") == 111);
    CHECK(made("losing_current") == 7);
    CHECK(made("losing_mxfp8") == 6);
    double least_w = 99, most_w = 0, least_dy = 99, most_dy = 0;
    int attention = 0;
    const Scanned& all = made.lab->scanned();
    for (const ScanRow& row : all.rows) {
        const StoredTensor& tensor = all.store->tensors()[row.tensor];
        const bool inside = tensor.name.find(".attention.") != std::string::npos;
        const double binades = row.summary.binades();
        if (tensor.name.starts_with("dact.") && !inside)
            least_dy = std::min(least_dy, binades), most_dy = std::max(most_dy, binades);
        if (row.use == TensorUse::w && tensor.shape.size() == 2)
            least_w = std::min(least_w, binades), most_w = std::max(most_w, binades);
        attention += inside && row.outcomes[*made.lab->find_recipe("current")].underflow_pct > 10;
    }
    CHECK(std::lround(least_w) == 12);
    CHECK(std::lround(most_w) == 19);
    CHECK(std::lround(least_dy) == 16);
    CHECK(std::lround(most_dy) == 31);
    CHECK(attention == 6);
    const Made p = {"tensor=act.blocks.4.attention.p"};
    CHECK(p("underflow_pct_current") == doctest::Approx(17.9).epsilon(0.002));
    CHECK(p("lost_l1_pct") == doctest::Approx(0.0004).epsilon(0.1));
    CHECK(std::ilogb(p("least")) == -60);
    CHECK(Made({"tensor=adam.v.embedding.weight"})("underflow_pct_current") ==
          doctest::Approx(0.34).epsilon(0.01));
    const Made head = {"tensor=dact.head", "recipe=mxfp6-e2m3"};
    CHECK(head("sqnr_db_mxfp6-e2m3") == doctest::Approx(29.8).epsilon(0.002));
    CHECK(head("underflow_pct_mxfp6-e2m3") == doctest::Approx(67).epsilon(0.01));
    std::uintmax_t bytes = 0;
    for (const auto name : {kTrained, kUntrained})
        bytes += std::filesystem::file_size(path_of(std::string(name)));
    CHECK(bytes < 13'000'000);
}

TEST_CASE("folding, filter, use and order choose and sort the rows") {
    const Made folded;
    const Made flat = {"fold=false"};
    CHECK(flat.lab->list.size() == 150);
    CHECK(folded.lab->list.size() < 60);
    std::size_t members = 0;
    for (const TableRow& row : folded.lab->list) {
        members += row.members.size();
        for (const std::size_t m : row.members) {
            const ScanRow& member = folded.lab->scanned().rows[m];
            CHECK(member.kind == row.name);
            CHECK(member.summary.amax <= row.amax);
            CHECK(member.summary.binades() <= row.binades);
            for (std::size_t r = 0; r < row.underflow_pct.size(); ++r)
                CHECK(member.outcomes[r].underflow_pct <= row.underflow_pct[r]);
        }
    }
    CHECK(members == 150);
    for (const char* order : {"underflow", "mxfp4", "binades", "amax"}) {
        CAPTURE(order);
        const Made up = {"fold=false", std::string("order=") + order, "ascending=true"};
        const Made down = {"fold=false", std::string("order=") + order};
        const auto key = [&](const TableRow& row) {
            const std::string by = order;
            if (by == "binades") return row.binades;
            if (by == "amax") return static_cast<double>(row.amax);
            return row.underflow_pct[*up.lab->find_recipe(by == "underflow" ? "current" : by)];
        };
        for (std::size_t i = 1; i < 150; ++i) {
            CHECK(key(up.lab->list[i - 1]) <= key(up.lab->list[i]));
            CHECK(key(down.lab->list[i - 1]) >= key(down.lab->list[i]));
        }
    }
    const Made state = {"show=state", "fold=false"};
    CHECK(state.lab->list.size() == 54);
    for (const TableRow& row : state.lab->list) CHECK(row.name.starts_with("adam."));
    const Made kind = {"filter=DACT.BLOCKS.*.QKV", "fold=false"};
    CHECK(kind.lab->list.size() == 4);
    const Made none = {"filter=no such name"};
    CHECK(none.lab->list.empty());
    CHECK(none.lab->title() == "No tensor is called that");
}

TEST_CASE("two files: what is in both, new, missing and reshaped") {
    const Made made = {"compare=transformer-0"};
    REQUIRE(made.lab->comparison);
    CHECK(made.lab->comparison->added.size() == 54);  // the moments: before the first step there are none
    CHECK(made.lab->comparison->missing.empty());
    const Made back = {"file=transformer-0", "compare=transformer-600"};
    CHECK(back.lab->comparison->missing.size() == 54);
    CHECK(back.lab.figures()[1].id == "change");
    const Scratch scratch;
    SafeTensors a, b;
    a.tensors["w"] = {{2, 2}, {1, 2, 3, 4}}, b.tensors["w"] = {{4}, {1, 2, 3, 4}};
    a.tensors["v.0"] = {{1}, {1}}, b.tensors["v.0"] = {{1}, {8}};
    write_file(scratch.path / "a.safetensors", to_safetensors(a));
    write_file(scratch.path / "b.safetensors", to_safetensors(b));
    const Made own = {"file=" + (scratch / "b.safetensors"), "compare=" + (scratch / "a.safetensors")};
    CHECK(own.lab->comparison->reshaped == std::vector<std::string>{"w"});
    REQUIRE(own.lab->comparison->kinds.size() == 1);
    CHECK(own.lab->comparison->kinds[0].amax_log2() == 3);
    CHECK(own.lab->comparison->grown() == 1);
}

TEST_CASE(
    "without a window a file that cannot be read is an error, in a window it is a sentence and the table "
    "stays") {
    WorkbenchLab lab;
    set_field(lab.fields(), "file=/no/such/file.safetensors");
    CHECK_THROWS_AS(lab.update(), Error);
    WorkbenchLab shown;
    shown.set_wake([] {});
    shown.update();
    wait(shown);
    CHECK(shown->list.size() > 20);
    const std::size_t before = shown->list.size();
    set_field(shown.fields(), "file=/no/such/file.safetensors");
    shown.update();
    CHECK(shown->problem == "/no/such/file.safetensors: No such file or directory");
    CHECK(shown->list.size() == before);
    CHECK(shown->file_name() == "transformer-600.safetensors");
    set_field(shown.fields(), "file=transformer-0");
    shown.update();
    wait(shown);
    CHECK(shown->problem.empty());
    CHECK(shown->file_name() == "transformer-0.safetensors");
}

TEST_CASE("in a window a scan can be stopped, keeps what it has and starts again") {
    const Scratch scratch;
    WorkbenchLab lab;
    lab.set_wake([] {});
    set_field(lab.fields(), "file=" + big_file(scratch));
    lab.update();
    CHECK(lab->scans.busy());
    CHECK_FALSE(lab.stale());
    while (lab->scans.busy() && !std::ranges::all_of(lab->scanned().rows, &ScanRow::summarised)) lab.update();
    lab.act("cancel");
    wait(lab);
    CHECK_FALSE(lab->scans.busy());
    CHECK(lab->scans->cancelled == (lab->scanned().scanned < 3));
    CHECK(lab->list.size() == 2);
    CHECK(lab->list[0].amax > 0);
    lab.act("scan");
    wait(lab);
    CHECK(lab->scanned().scanned == 3);
    CHECK(lab.table_csv().find("a.1,a.*,w,F32,4096x4096") != std::string::npos);
}

TEST_CASE("the fields for another lab open the same tensor there") {
    const Made made = {"tensor=dact.head"};
    for (const LabEntry& entry : lab_registry()) {
        const auto fields = made.lab->fields_for(entry.id);
        CHECK(fields.empty() == !takes_tensor(entry.id));
        if (fields.empty()) continue;
        CAPTURE(std::string(entry.id));
        const auto other = entry.make();
        set_fields(*other, fields);
        CHECK(field_text(*find_field(other->fields(), "file"))
                  .ends_with("transformer-600.safetensors:dact.head"));
    }
}

TEST_CASE("files that have no floats, one row, or zeros") {
    const Scratch scratch;
    write_file(scratch.path / "row.npy", to_npy(std::vector<float>{1, 0.5F, 0}, std::vector<std::size_t>{3}));
    const Made row = {"file=" + (scratch / "row.npy")};
    CHECK(row("tensors") == 1);
    CHECK(row("worst_row_db_mxfp4") == row("sqnr_db_mxfp4"));
    write_file(scratch.path / "zeros.npy", to_npy(std::vector<float>(8), std::vector<std::size_t>{8}));
    const Made zeros = {"file=" + (scratch / "zeros.npy")};
    CHECK(zeros("binades") == 0);
    CHECK(zeros.lab->advice_title() == "Every recipe is exact");
    CHECK(std::isnan(zeros("sqnr_db_mxfp8")));
    const Made numpy = {"file=" FP8LAB_SOURCE "/tests/unit/tensors/published/savez.npz"};
    CHECK(numpy("tensors") == 4);
    CHECK(numpy.lab->list.size() == 6);
}

TEST_CASE("several files are one list, and a tensor of it leads to its own file") {
    const Scratch scratch;
    SafeTensors a, b;
    a.tensors["w"] = {{2, 2}, {1, 2, 3, 4}}, b.tensors["w"] = {{2, 2}, {8, 7, 6, 5}};
    write_file(scratch.path / "a.safetensors", to_safetensors(a));
    write_file(scratch.path / "b.safetensors", to_safetensors(b));
    const Made made = {"file=" + (scratch / "a.safetensors") + "\n" + (scratch / "b.safetensors"),
                       "fold=false", "tensor=b/w"};
    CHECK(made("tensors") == 2);
    CHECK(made.lab->file_name() == "2 files");
    CHECK(made("amax") == 8);
    CHECK(made.lab->fields_for("error").back() == "file=" + (scratch / "b.safetensors") + ":w");
    Made broken;
    set_field(broken.lab.fields(), "file=" + (scratch / "a.safetensors") + "\n/no/such.npy");
    CHECK_THROWS_WITH_AS(broken.lab.update(), doctest::Contains("/no/such.npy"), Error);
}

TEST_CASE("a tensor's use can be corrected, by itself and back") {
    Made made = {"tensor=dact.head"};
    const double by_name = made("sqnr_db_block128");
    CHECK(made.lab->row()->use == TensorUse::dy);
    set_field(made.lab.fields(), "uses=" + made.lab->uses_with(TensorUse::w));
    made.lab.update();
    CHECK(made.lab->row()->use == TensorUse::w);
    CHECK(made("sqnr_db_block128") != by_name);
    CHECK(made("sqnr_db_mxfp8") == Made({"tensor=dact.head"})("sqnr_db_mxfp8"));
    set_field(made.lab.fields(), "show=w");
    made.lab.update();
    CHECK(std::ranges::count(made.lab->list, "dact.head", &TableRow::name) == 1);
    CHECK(made.lab->uses_with(TensorUse::dy).empty());
    set_field(made.lab.fields(), "uses=");
    made.lab.update();
    CHECK(made("sqnr_db_block128") == by_name);
    for (const char* wrong : {"uses=[1]", "uses={\"a\": \"q\"}", "uses={\"a\": 1}", "uses=w"}) {
        set_field(made.lab.fields(), wrong);
        CHECK_THROWS_AS(made.lab.update(), Error);
    }
}

TEST_CASE("a column for NaN and Inf is there when one is") {
    const Scratch scratch;
    const Made plain;
    CHECK_FALSE(plain.lab->shows_not_finite());
    write_file(scratch.path / "n.npy",
               to_npy(std::vector<float>{1, std::nanf(""), INFINITY, 2}, std::vector<std::size_t>{2, 2}));
    const Made made = {"file=" + (scratch / "n.npy")};
    CHECK(made.lab->shows_not_finite());
    CHECK(made("not_finite") == 2);
    CHECK(made("amax") == 2);
}

// The files: scripts/layout_samples.py.
TEST_CASE("codes without a scale are said, and judged only where that is asked for") {
    const std::string file = FP8LAB_SOURCE "/tests/unit/tensors/layouts/plain.safetensors";
    const Made made{"file=" + file}, taken{"file=" + file, "unscaled_codes=true"};
    CHECK(made("tensors") == 1);
    CHECK(taken("tensors") == 3);
    CHECK(made.lab->file_words() == "3 tensors, 11 values, F32 F8_E4M3; 2 without a scale");
    CHECK(made.lab->scanned().rows[0].not_scanned == "codes without a scale");
    const Made odd{std::string("file=") + FP8LAB_SOURCE "/tests/unit/tensors/layouts/misfit.safetensors"};
    CHECK(odd.lab->file_words() == "2 tensors, 48 values, F8_E4M3");
    CHECK(odd("tensors") == 1);  // the other is refused, and scales are no tensors here
    const Made fused{std::string("file=") + FP8LAB_SOURCE
                     "/tests/unit/tensors/layouts/fused-qkv-alone.safetensors"};
    CHECK(fused.lab->title() == "No tensor can be read: 1 refused, each with its reason");
    CHECK(fused.lab.figures()[0].title.starts_with("Not judged: 3 scales for a fused matrix"));
}
