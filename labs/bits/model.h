// L1, "What does a byte mean?": any code of any small format taken apart, all codes as a map, and the end of
// the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "labs/bits/model_map.h"
#include "labs/bits/model_reading.h"
#include "labs/table/table_lab.h"

namespace fp8lab::bits {

struct Params {
    std::string format = "e4m3";  // a tab, or custom
    std::string specials =
        "fn";  // fn ieee fnuz finite: where the format leaves a choice (E4M3, E5M2, custom)
    std::string shade = "magnitude";
    int code = 0x7E;
    int exponent_bits = 4, mantissa_bits = 3, bias = 7;  // of "custom"
    bool operator==(const Params&) const = default;
};

struct Outcome {
    FormatInfo format;  // what the parameters add up to
    std::string rules;  // the special values in force: "fn"
    Reading reading;
    CodeMap map;
    LineEnd end;
    std::vector<Fact> facts, elsewhere;
};

Outcome compute(const Params& params);

struct Bits {
    static const LabInfo kInfo;
    using Params = bits::Params;
    static std::vector<table::Row> rows(Params& params);
    static std::span<const table::Experiment<Bits>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&outcome}; }
    Figure thumbnail() const;
    // A code that the format is too narrow for becomes the largest finite one; a design whose values are no float32
    // becomes the nearest that has them. A format that has no choice of special values keeps its own, whatever
    // `specials` says.
    void settle();
    bool perform(std::string_view action);  // "toggle <bit>"; 0 is the last; nothing happens beyond the width

    // What the view does.
    void select(std::uint32_t code) { params.code = static_cast<int>(code); }
    void select_format(std::string_view id);  // another width: starts at its largest finite value
    // "0x7E" is a code, "448" a value, rounded to the nearest one. Returns what was done: "300 rounds to
    // 288". Throws usage_error when it is neither, or a code that the format does not have.
    std::string enter(std::string_view text);

    std::vector<Choice> specials_choices()
        const;  // that the format allows; fewer than two: nothing to choose

    Params params;
    table::Computed<Params, Outcome> outcome{"", [this] { return params; }, compute, table::When::in_frame};

  private:
    std::vector<Figure> figures() const;
    std::vector<table::MetricRow> metrics() const;
};
using BitsLab = table::TableLab<Bits>;

}  // namespace fp8lab::bits
