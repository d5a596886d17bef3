// L1, "What does a byte mean?": any code of any small format taken apart, all codes as a map, and the end of
// the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "labs/bits/model_map.h"
#include "labs/bits/model_reading.h"
#include "labs/lab.h"

namespace fp8lab::bits {

struct Params {
    std::string format = "e4m3";  // a tab, or custom
    std::string specials =
        "fn";  // fn ieee fnuz finite: where the format leaves a choice (E4M3, E5M2, custom)
    std::string shade = "magnitude";
    int code = 0x7E;
    int exponent_bits = 4, mantissa_bits = 3, bias = 7;  // of "custom"
};

struct Outcome {
    FormatInfo format;  // what the parameters add up to
    std::string rules;  // the special values in force: "fn"
    Reading reading;
    CodeMap map;
    LineEnd end;
    std::vector<Fact> facts, elsewhere;
};

class BitsLab final : public Lab {
  public:
    BitsLab() { update(); }
    const LabInfo& info() const override;
    std::vector<Field> fields() override { return fields_of(params_); }
    std::vector<Field> defaults() override { return fields_of(defaults_); }
    // A code that the format is too narrow for becomes the largest finite one. A format that has no choice of
    // special values keeps its own, whatever `specials` says.
    void update() override;
    std::vector<Figure> figures() const override;
    Figure thumbnail() const override;
    std::vector<Metric> metrics() const override;
    void reset() override;
    std::span<const NamedJudge> judges() const override;

    // What the view does; each ends with update().
    void select(std::uint32_t code);
    void toggle_bit(int bit);  // action "toggle <bit>"; 0 is the last; nothing happens beyond the width
    void select_format(std::string_view id);  // another width: starts at its largest finite value
    void select_specials(std::string_view id);
    // "0x7E" is a code, "448" a value, rounded to the nearest one. Returns what was done: "300 rounds to
    // 288". Throws usage_error when it is neither, or a code that the format does not have.
    std::string enter(std::string_view text);

    std::vector<Choice> specials_choices()
        const;  // that the format allows; fewer than two: nothing to choose
    const Outcome& outcome() const { return outcome_; }
    const Params& params() const { return params_; }

  private:
    void perform(std::string_view action) override;

    static std::vector<Field> fields_of(Params& params);

    Params params_;
    Params defaults_;  // never changed
    Outcome outcome_;
};

}  // namespace fp8lab::bits
