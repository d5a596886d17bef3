// What labs/table does for every lab on it, with a table of two experiments.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "labs/table/table_lab.h"

using namespace fp8lab;
using namespace fp8lab::table;

namespace {

struct Sums {
    static constexpr LabInfo kInfo = {"sums", 0, "Sums", "Sums", "", 1};
    struct Params {
        std::string experiment = "double";
        int n = 1, extra = 0, both = 0;
        bool odd = false;
    };
    static std::vector<Row> rows(Params& p) {
        return {
            {choice({.name = "experiment", .label = "L", .hidden = true}, &p.experiment,
                    {{"double", "Double"}, {"square", "Square"}, {"squares", "Squares"}})},
            {integer({.name = "n", .label = "L"}, &p.n, 0, 100)},
            {integer({.name = "extra", .label = "L"}, &p.extra, 0, 9), "square", p.odd ? "It is odd." : ""},
            {.field = toggle({.name = "odd", .label = "L"}, &p.odd), .of = "square", .shown = p.n > 0},
            {integer({.name = "both", .label = "L"}, &p.both, 0, 9), "double squares"}};
    }
    static std::span<const Experiment<Sums>> experiments() {
        static constexpr std::array<Experiment<Sums>, 3> kAll = {
            {{"double", {}, &Sums::figures, &Sums::double_metrics},
             {"square", {}, &Sums::figures, &Sums::square_metrics, &Sums::has_square},
             {.id = "squares", .figures = &Sums::figures}}};
        return kAll;
    }
    std::vector<Part*> parts() { return {&square, &twice, &halves}; }
    std::vector<MetricRow> common_metrics() const { return {known("n", params.n)}; }
    bool stale() const { return params.n == 99; }
    std::string table_csv() const { return "n\n"; }
    Figure thumbnail() const { return {}; }
    void settle() { params.extra = params.odd ? 0 : params.extra; }
    bool perform(std::string_view action) { return action == "more" ? ++params.n, true : false; }

    void tell(const Error& error) { told = error.what(); }

    Sums() { square.begin_with(1000); }

    Params params;
    std::string told;
    double half = 0;
    Derived halves{[this] { half = *twice / 2.0; }};
    int worked = 0;  // how often `twice` was computed
    Computed<int, int> twice{"double", [this] { return params.n; },
                             [this](int n) {
                                 ++worked;
                                 return 2 * n;
                             },
                             When::once};
    Computed<int, int> square{
        "square", [this] { return params.n < 50 ? std::optional(params.n + params.extra) : std::nullopt; },
        [](int n) {
            if (n == 13) throw usage_error("n", "13 is refused");
            return n * n;
        }};

  private:
    std::vector<Figure> figures() const { return {}; }
    std::vector<MetricRow> double_metrics() const {
        return {{"twice", "u", [this] { return static_cast<double>(*twice); }}};
    }
    std::vector<MetricRow> square_metrics() const {
        return {{"square", "", [this] { return static_cast<double>(*square); }},
                {"word", "", {}, [] { return std::string("known"); }}};
    }
    bool has_square() const { return *square > 0; }
};
using SumsLab = TableLab<Sums>;

void set(SumsLab& lab, const std::string& assignment) {
    set_field(lab.fields(), assignment);
    lab.update();
}

Metric metric(const SumsLab& lab, std::string_view name) {
    const std::vector<Metric> all = lab.metrics();
    const auto found = std::ranges::find(all, name, &Metric::name);
    REQUIRE(found != all.end());
    return *found;
}

}  // namespace

TEST_CASE(
    "labs/table: numbers of the experiment that is shown, NaN of the other, and where there is no result") {
    SumsLab lab;
    lab.update();
    CHECK(metric(lab, "twice").value == 2);
    CHECK(metric(lab, "twice").unit == "u");
    CHECK(std::isnan(metric(lab, "square").value));
    CHECK(metric(lab, "word").text == "not computed");
    set(lab, "experiment=square");
    set(lab, "n=5");
    CHECK(metric(lab, "square").value == 25);
    CHECK(metric(lab, "word").text == "known");
    CHECK(std::isnan(metric(lab, "twice").value));
    CHECK(lab->worked == 1);  // hidden, it was not asked again
    set(lab, "n=60");         // no result is wanted
    CHECK(std::isnan(metric(lab, "square").value));
    CHECK(metric(lab, "word").text == "not computed");
}

TEST_CASE("labs/table: a field may belong to several experiments, and to none whose name only begins so") {
    SumsLab lab;
    CHECK(lab.belongs("both"));
    set(lab, "experiment=square");
    CHECK_FALSE(lab.belongs("both"));
    set(lab, "experiment=squares");
    CHECK(lab.belongs("both"));
    CHECK_FALSE(lab.belongs("extra"));
}

TEST_CASE("labs/table: numbers of every experiment stand before those of each, and are always known") {
    SumsLab lab;
    for (const char* experiment : {"experiment=double", "experiment=square", "experiment=squares"}) {
        set(lab, experiment);
        CHECK(lab.metrics().front().name == "n");
        CHECK(metric(lab, "n").value == 1);
    }
    CHECK(std::isnan(metric(lab, "square").value));
}

TEST_CASE("labs/table: what a model says of itself, and what stands for its first result") {
    SumsLab lab;
    CHECK(*lab->square == 1000);
    set(lab, "experiment=square");
    CHECK(*lab->square == 1);
    CHECK_FALSE(lab.stale());
    lab->params.n = 99;
    CHECK(lab.stale());
    CHECK(lab.table_csv() == "n\n");
}

TEST_CASE("labs/table: what is computed follows the parameters, once for each change") {
    SumsLab lab;
    lab.update();
    lab.update();
    CHECK(lab->worked == 1);
    set(lab, "n=7");
    CHECK(metric(lab, "twice").value == 14);
    lab.act("more");
    CHECK(metric(lab, "twice").value == 16);
    CHECK(lab->worked == 3);
    CHECK_THROWS(lab.act("less"));
    lab.reset();
    lab.update();
    CHECK(metric(lab, "twice").value == 2);
}

TEST_CASE("labs/table: rows say where a field belongs and why it has no effect") {
    SumsLab lab;
    CHECK(lab.belongs("n"));
    CHECK_FALSE(lab.belongs("extra"));
    set(lab, "experiment=square");
    CHECK(lab.belongs("extra"));
    set(lab, "extra=4");
    CHECK(lab.applies("extra"));
    set(lab, "odd=on");
    CHECK(lab.why_not("extra") == "It is odd.");
    CHECK_FALSE(lab.applies("extra"));
    CHECK(lab->params.extra == 0);  // settle()
    CHECK(lab.applies("odd"));
    set(lab, "n=0");
    CHECK_FALSE(lab.applies("odd"));
    CHECK_THROWS(lab.why_not("none"));
    CHECK(lab.defaults().size() == lab.fields().size());
}

TEST_CASE(
    "labs/table: what an experiment refuses is told while it is shown, and again when it is shown again") {
    SumsLab lab;
    set(lab, "experiment=square");
    set_field(lab.fields(), "n=13");
    CHECK_THROWS(lab.update());
    CHECK_THROWS(lab.update());
    set(lab, "experiment=double");
    CHECK(metric(lab, "twice").value == 26);
    set_field(lab.fields(), "experiment=square");
    CHECK_THROWS(lab.update());
    set(lab, "n=4");
    CHECK(metric(lab, "square").value == 16);
}

TEST_CASE("labs/table: what is derived follows the result before it in the same update") {
    SumsLab lab;
    set(lab, "n=7");
    CHECK(lab->half == 7);
}

TEST_CASE("labs/table: in a window a model may keep what a part throws, and the others go on") {
    SumsLab lab;
    lab.set_wake([] {});
    set(lab, "experiment=square");
    set_field(lab.fields(), "n=13");
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while ((lab->told.empty() || *lab->twice == 0) && std::chrono::steady_clock::now() < give_up) {
        CHECK_NOTHROW(lab.update());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(lab->told == "n: 13 is refused");
    CHECK(*lab->twice > 0);  // it comes after the one that threw
}

TEST_CASE("labs/table: in a window what sums up all experiments is computed once before it is shown") {
    SumsLab lab;
    set_field(lab.fields(), "experiment=square");
    lab.set_wake([] {});
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (*lab->twice == 0 && std::chrono::steady_clock::now() < give_up) {
        lab.update();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(*lab->twice == 2);
    while (lab.busy() && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_FALSE(lab.busy());
}
