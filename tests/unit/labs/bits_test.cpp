// Oracles: hand-computed facts of OCP E4M3 and E5M2 (numerics.md 1.1), and decode(), which the golden edges
// hold to CUDA.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/formats/codec.h"
#include "labs/bits/model.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::bits;

namespace {

const Metric& metric(const std::vector<Metric>& metrics, std::string_view name) {
    const auto it =
        std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return *it;
}
double number_metric(const BitsLab& lab, std::string_view name) { return metric(lab.metrics(), name).value; }
std::string text_metric(const BitsLab& lab, std::string_view name) {
    return metric(lab.metrics(), name).text;
}

void set(BitsLab& lab, std::string_view assignment) {
    set_field(lab.fields(), assignment);
    lab.update();
}

std::string enter(BitsLab& lab, std::string_view text) {
    std::string answer = lab->enter(text);
    lab.update();
    return answer;
}

bool same(double a, double b) {
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

}  // namespace

TEST_CASE("the lab opens on 448, the last code before NaN") {
    BitsLab lab;
    const Reading& reading = lab->outcome->reading;
    CHECK(reading.value == 448);
    CHECK(reading.code_text == "0x7E");
    CHECK(reading.headline == "448");
    CHECK(reading.hex == "0x1.cp+8");
    CHECK(reading.note == "largest finite, next: NaN");
    CHECK(reading.formula.sign.written == "(\u22121)^0");
    CHECK(reading.formula.power.written == "2^15\u00a0\u2212\u00a07");
    CHECK(reading.formula.power.value == "2^8 = 256");
    CHECK(reading.formula.significand.written == "(1 + 6/8)");
    CHECK(reading.formula.significand.value == "1.75");
    CHECK(reading.formula.result.value == "1 × 256 × 1.75");
}

TEST_CASE("one toggled bit turns 448 into NaN") {
    BitsLab lab;
    lab.act("toggle " + std::to_string(0));
    CHECK(lab->outcome->reading.code == 0x7F);
    CHECK(std::isnan(lab->outcome->reading.value));
    CHECK(text_metric(lab, "class") == "nan");
    lab.act("toggle " + std::to_string(0));
    CHECK(lab->outcome->reading.value == 448);
    lab.act("toggle " + std::to_string(8));
    CHECK(lab->outcome->reading.code == 0x7E);
}

TEST_CASE("the map of codes is told in words as codes, not as the lines it is drawn with") {
    BitsLab lab;
    const Figure map = lab.figures().front();
    REQUIRE(map.id == "codes");
    REQUIRE(map.words.size() == 3);
    CHECK(map.words[0] == "A map of 16 rows of 16 cells, one code per cell, from 0x00 up");
    CHECK(map.words[1] == "254 codes are finite, 14 of them subnormal; 0 are infinite and 2 are NaN");
    CHECK(map.words[2] == "The code that is shown is 0x7E = 448");
}

TEST_CASE("IEEE rules end E4M3 at 240, FNUZ halves it, and the list of last codes shows what follows") {
    BitsLab lab;
    set_field(lab.fields(), std::string("specials=") + "ieee");
    lab.update();
    CHECK(number_metric(lab, "max") == 240);
    CHECK(std::isnan(lab->outcome->reading.value));  // 0x7E again
    const LineEnd& ieee = lab->outcome->end;
    REQUIRE(ieee.codes.size() == 8);
    CHECK(ieee.codes[5].value_text == "240");
    CHECK(ieee.codes[6].value_text == "+Inf");
    CHECK(ieee.codes[7].value_text == "NaN");
    CHECK(ieee.phantom == 256);

    set_field(lab.fields(), std::string("specials=") + "fnuz");
    lab.update();
    CHECK(number_metric(lab, "max") == 240);
    CHECK(lab->outcome->reading.value == 224);
    CHECK(number_metric(lab, "nan_codes") == 1);

    set_field(lab.fields(), std::string("specials=") + "fn");
    lab.update();
    const LineEnd& fn = lab->outcome->end;
    REQUIRE(fn.codes.size() == 8);
    CHECK(fn.codes.front().value_text == "256");
    CHECK(fn.codes[6].value_text == "448");
    CHECK(fn.codes[7].value_text == "NaN");
    CHECK_FALSE(fn.codes[7].finite);
    CHECK(fn.phantom == 480);
    CHECK(fn.notes == std::vector<std::string>{"480 would be next.", "OCP made it NaN."});
}

TEST_CASE("E5M2 writes 448 as 0x5F") {
    BitsLab lab;
    lab->select_format("e5m2");
    lab.update();
    CHECK(enter(lab, "0x5F") == "0x5F is 448");
    CHECK(lab->outcome->reading.value == 448);
    enter(lab, "448");
    CHECK(lab->outcome->reading.code == 0x5F);
}

TEST_CASE("the numbers of E4M3 and E5M2 are those of the specification") {
    BitsLab lab;
    CHECK(number_metric(lab, "finite_codes") == 254);
    CHECK(number_metric(lab, "nan_codes") == 2);
    CHECK(number_metric(lab, "infinity_codes") == 0);
    CHECK(number_metric(lab, "subnormal_codes") == 14);
    CHECK(number_metric(lab, "min_normal") == 0x1p-6);
    CHECK(number_metric(lab, "min_subnormal") == 0x1p-9);
    CHECK(lab->outcome->facts[1].value == "2^\u22126 = 0.0156");
    CHECK(lab->outcome->facts[4].remark == "7F FF");
    lab->select_format("e5m2");
    lab.update();
    CHECK(number_metric(lab, "max") == 57344);
    CHECK(number_metric(lab, "finite_codes") == 248);
    CHECK(number_metric(lab, "nan_codes") == 6);
    CHECK(number_metric(lab, "infinity_codes") == 2);
    CHECK(lab->outcome->facts[4].remark == "±7D\u20137F");
    CHECK(lab->outcome->facts[5].remark == "7C FC");
}

TEST_CASE("toggling any bit of any code of every tab shows what decode says") {
    BitsLab lab;
    for (const char* tab : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e8m0"}) {
        for (const char* rules : {"fn", "ieee", "fnuz"}) {
            lab->select_format(tab);
            lab.update();
            set_field(lab.fields(), std::string("specials=") + rules);
            lab.update();
            const FormatInfo format = lab->outcome->format;
            CAPTURE(format.name);
            for (std::uint32_t code = 0; code < (1U << width_bits(format)); ++code) {
                for (int bit = 0; bit < width_bits(format); ++bit) {
                    lab->select(code);
                    lab.update();
                    lab.act("toggle " + std::to_string(bit));
                    const std::uint32_t expected = code ^ (1U << bit);
                    CAPTURE(expected);
                    REQUIRE(lab->outcome->reading.code == expected);
                    REQUIRE(same(lab->outcome->reading.value, static_cast<double>(decode(format, expected))));
                }
            }
        }
    }
}

TEST_CASE("every code of the 16-bit formats has the value that decode gives") {
    for (const char* name : {"fp16", "bf16"}) {
        const FormatInfo& format = find_format(name);
        for (std::uint32_t code = 0; code < 0x10000; ++code) {
            CAPTURE(code);
            REQUIRE(same(exact_value(format, code), static_cast<double>(decode(format, code))));
        }
    }
}

TEST_CASE("a format of one's own with 4, 3, 7 and FN is E4M3, code by code") {
    BitsLab lab;
    set(lab, "format=custom");
    const FormatInfo& e4m3 = find_format("e4m3");
    for (std::uint32_t code = 0; code < 256; ++code) {
        lab->select(code);
        lab.update();
        CAPTURE(code);
        REQUIRE(same(lab->outcome->reading.value, static_cast<double>(decode(e4m3, code))));
    }
    CHECK(number_metric(lab, "max") == 448);
    set_field(lab.fields(), std::string("specials=") + "ieee");
    lab.update();
    CHECK(number_metric(lab, "max") == 240);
    set_field(lab.fields(), std::string("specials=") + "finite");
    lab.update();
    CHECK(number_metric(lab, "max") == 480);
    CHECK(number_metric(lab, "nan_codes") == 0);
}

TEST_CASE("every format that can be designed has a map, a list and tables") {
    BitsLab lab;
    set(lab, "format=custom");
    for (int e = 1; e <= 8; ++e) {
        for (int m = 0; m <= 10; ++m) {
            for (const char* rules : {"fn", "ieee", "fnuz", "finite"}) {
                CAPTURE(e);
                CAPTURE(m);
                CAPTURE(rules);
                lab.reset();
                set(lab, "format=custom");
                set(lab, "exponent_bits=" + std::to_string(e));
                set(lab, "mantissa_bits=" + std::to_string(m));
                set_field(lab.fields(), std::string("specials=") + rules);
                lab.update();
                const CodeMap& map = lab->outcome->map;
                CHECK(static_cast<int>(map.cells.size()) == map.rows * map.cols);
                CHECK(map.cells.size() * map.codes_per_cell ==
                      std::size_t{1} << (1 + e + (e == 8 ? std::max(m, 1) : m)));
                CHECK(lab->outcome->end.codes.size() >= 2);
                CHECK(std::isfinite(number_metric(lab, "max")));
                for (const MapCell& cell : map.cells)
                    CHECK((std::isnan(cell.shade) || (cell.shade >= 0 && cell.shade <= 1)));
            }
        }
    }
}

TEST_CASE("a design beyond float32 becomes the nearest possible one") {
    BitsLab lab;
    set(lab, "format=custom");
    set(lab, "exponent_bits=8");  // FN would reach 2^129; IEEE with bias 127 is BF16 with 3 mantissa bits
    CHECK(lab->outcome->rules == "ieee");
    CHECK(lab->params.bias == 127);
    CHECK(number_metric(lab, "max") == 0x1.ep127);
    set(lab, "exponent_bits=7");
    set(lab, "bias=-64");
    set_field(lab.fields(), std::string("specials=") + "finite");
    lab.update();
    CHECK(lab->params.bias == 0);
    CHECK(number_metric(lab, "max") == 0x1.ep127);
}

TEST_CASE("the map is darker where the value is larger, and plain where there is no number") {
    const CodeMap map = code_map(find_format("e4m3"), "magnitude");
    REQUIRE(map.cells.size() == 256);
    for (std::size_t code = 1; code < 0x7E; ++code) CHECK(map.cells[code].shade < map.cells[code + 1].shade);
    for (const std::size_t code : {0x00, 0x80, 0x7F, 0xFF}) CHECK(std::isnan(map.cells[code].shade));
    CHECK(map.cells[0x7E].shade == 1);
    REQUIRE(map.subnormals.size() == 2);  // 0x01 to 0x07 and 0x81 to 0x87
    CHECK(map.subnormals[1].row == 8);
    CHECK(map.subnormals[1].first == 1);
    CHECK(map.subnormals[1].last == 7);
    CHECK(map.cells[0x7E].label == "448");
    CHECK(map.cells[0x7F].label == "NaN");
    CHECK(map.title == "254 of 256 codes are numbers");
    const auto note = [&](int row) {
        return std::find_if(map.notes.begin(), map.notes.end(),
                            [&](const RowNote& n) { return n.row == row; })
            ->text;
    };
    CHECK(note(0) == "subnormals to 0.0137");
    CHECK(note(1) == "0.03125 to 0.1172");
    CHECK(note(7) == "128 to 448, then NaN");
    CHECK(note(15) == "\u2212128 to \u2212448, then NaN");

    const CodeMap gaps = code_map(find_format("e4m3"), "gap");
    CHECK(gaps.cells[0x01].shade == gaps.cells[0x0F].shade);  // subnormals share the lowest binade's gap
    CHECK(gaps.cells[0x0F].shade < gaps.cells[0x10].shade);
}

TEST_CASE("four-bit codes are all labelled with their values") {
    const CodeMap map = code_map(find_format("e2m1"), "magnitude");
    std::vector<std::string> labels;
    for (const MapCell& cell : map.cells) labels.push_back(cell.label);
    const std::vector<std::string> expected = {
        "0",       "0.5",       "1",       "1.5",       "2",       "3",       "4",       "6",
        "\u22120", "\u22120.5", "\u22121", "\u22121.5", "\u22122", "\u22123", "\u22124", "\u22126"};
    CHECK(labels == expected);
    CHECK(map.title == "All 16 codes are numbers");
}

TEST_CASE("a number that is typed in becomes the nearest code") {
    BitsLab lab;
    CHECK(enter(lab, "300") == "300 becomes 288");
    CHECK(lab->outcome->reading.code == 0x79);
    CHECK(enter(lab, "1e9") == "1e9 becomes 448");
    CHECK(enter(lab, "-0.5") == "-0.5 is \u22120.5 itself");
    CHECK_THROWS_WITH_AS(enter(lab, "0x100"), doctest::Contains("too many bits"), Error);
    CHECK_THROWS_AS(enter(lab, "0xG"), Error);
    CHECK_THROWS_AS(enter(lab, "four"), Error);
    CHECK_THROWS_AS(enter(lab, ""), Error);
    CHECK(lab->outcome->reading.value == -0.5);
}

TEST_CASE("another width starts at that format's largest value, the same width keeps the byte") {
    BitsLab lab;
    lab->select(0x38);
    lab.update();
    lab->select_format("e5m2");
    lab.update();
    CHECK(lab->outcome->reading.code == 0x38);
    lab->select_format("fp16");
    lab.update();
    CHECK(lab->outcome->reading.value == 65504);
    set(lab, "format=e2m1");  // 0x7BFF does not fit
    CHECK(lab->outcome->reading.value == 6);
}

TEST_CASE("the same byte means something else in each format") {
    BitsLab lab;
    const std::vector<Fact>& places = lab->outcome->elsewhere;
    const auto at = [&](std::string_view label) {
        const auto found = std::ranges::find(places, label, &Fact::label);
        REQUIRE_MESSAGE(found != places.end(), label);
        return found->value + ", " + found->remark;
    };
    CHECK(at("E4M3 IEEE") == "NaN, max 240");
    CHECK(at("E4M3 FNUZ") == "224, max 240");
    CHECK(at("E5M2") == "NaN, max 57344");
    CHECK(at("E5M2 FNUZ") == "49152, max 57344");
    CHECK(at("E3M4") == "NaN, max 15.5");
    CHECK(std::ranges::find(places, "E4M3", &Fact::label) == places.end());  // the format itself
    CHECK(std::ranges::find(places, "INT8", &Fact::label) == places.end());
    CHECK(std::ranges::find(places, "BF16", &Fact::label) == places.end());
}

TEST_CASE("bits: the field table reads back what it wrote and refuses what it does not know") {
    BitsLab lab;
    set(lab, "format=custom");
    set(lab, "exponent_bits=5");
    set(lab, "bias=15");
    set_field(lab.fields(), std::string("specials=") + "finite");
    lab.update();
    const auto state = lab.state();
    BitsLab other;
    other.restore(state);
    other.update();
    CHECK(other.state() == state);
    CHECK(number_metric(other, "max") == number_metric(lab, "max"));
    CHECK_THROWS_WITH_AS(set(lab, "format=e9m9"), doctest::Contains("e4m3 e5m2"), Error);
    CHECK_THROWS_AS(set(lab, "code=-1"), Error);
    CHECK_THROWS_AS(set(lab, "mantissa_bits=11"), Error);
    CHECK(lab.state() == state);
    lab.reset();
    CHECK(lab.state() == BitsLab().state());
}

TEST_CASE("the figures of the lab are finite and named for what they show") {
    BitsLab lab;
    for (const char* tab : {"e4m3", "e5m2", "e3m2", "e2m1", "e8m0", "fp16", "bf16", "custom"}) {
        lab->select_format(tab);
        lab.update();
        CAPTURE(tab);
        const auto figures = lab.figures();
        REQUIRE(figures.size() == 2);
        for (const Figure& figure : figures) {
            CHECK_FALSE(figure.series.empty());
            CHECK_FALSE(figure.title.empty());
            const Extents shown = fit(figure);
            for (const double edge : {shown.x.lo, shown.x.hi, shown.y.lo, shown.y.hi})
                CHECK(std::isfinite(edge));
        }
    }
}

TEST_CASE("every number in the lesson of L1 is computed here") {
    BitsLab lab;
    const Reading reading = lab->outcome->reading;
    std::set<std::string> computed = {"0", "1"};  // the leading digit and the empty exponent
    const auto add = [&](double value) { computed.insert(value_text(value)); };
    add(number_metric(lab, "codes"));
    computed.insert(reading.code_text);
    add(reading.fields.exponent);
    add(reading.fields.mantissa);
    add(lab->outcome->format.bias);
    add(std::pow(2, lab->outcome->format.mantissa_bits));
    add(2);  // the base
    add(reading.fields.exponent - static_cast<double>(lab->outcome->format.bias));
    add(reading.value);
    add(lab->outcome->end.phantom);
    add(lab->outcome->format.exponent_bits);
    add(lab->outcome->format.mantissa_bits);
    set_field(lab.fields(), std::string("specials=") + "ieee");
    lab.update();
    add(number_metric(lab, "max"));
    for (const std::string& number : test::lesson_numbers("bits")) {
        CAPTURE(number);
        CHECK(computed.count(number) == 1);
    }
}

TEST_CASE("each of the sixteen bits of FP16 can be flipped, and back") {
    BitsLab lab;
    set_field(lab.fields(), "format=fp16");
    lab.update();
    for (int bit = 0; bit < 16; ++bit) {
        const auto before = lab.state();
        lab.act("toggle " + std::to_string(bit));
        CHECK(lab.state() != before);
        lab.act("toggle " + std::to_string(bit));
        CHECK(lab.state() == before);
    }
    CHECK_THROWS_AS(lab.act("toggle 16"), Error);
    CHECK_THROWS_AS(lab.act("toggle -1"), Error);
    CHECK_THROWS_AS(lab.act("toggle "), Error);
}
