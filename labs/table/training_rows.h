// The rows of labs that train: each help line ends with when the setting acts.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "labs/table/row.h"

namespace fp8lab::table {

inline constexpr std::string_view kActsAtNextStep = " A change acts at the next step.",
                                  kActsIfDelayed = " Delayed scaling only; a change acts at the next step.",
                                  kActsOnReset = " A change acts on Reset.";

// Adds rows to a table: to the second tier where `more`, and `acts` to their help.
struct Adder {
    std::vector<Row>& out;
    bool more = false;
    std::string_view acts = {};

    Row& operator()(Field field) const {
        field.info.help += acts;
        return as_it_is(std::move(field));
    }
    // A help line that says it in other words.
    Row& as_it_is(Field field) const {
        field.info.more = more;
        return out.emplace_back(Row{std::move(field)});
    }
};

// What the operands of one GEMM are cast to (Recipe::inputs): what every recipe takes. `same`: the id of "as the recipe
// says".
inline std::vector<Choice> input_choices(std::string same) {
    return {{std::move(same), "Recipe's"}, {"fp32", "FP32"},   {"bf16", "BF16"},
            {"current", "FP8, current"},   {"mxfp8", "MXFP8"}, {"nvfp4", "NVFP4"}};
}

// The fields of a GEMM's operands, by their names in a recipe's text.
struct GemmInputRow {
    std::string_view name, label, help;
};
inline constexpr std::array<GemmInputRow, 3> kGemmInputs = {
    {{"fprop_in", "Operands of fprop",
      "What x and w are cast to for fprop. x is cast once more for wgrad, w for dgrad."},
     {"dgrad_in", "Operands of dgrad", "What dy and w are cast to for dgrad."},
     {"wgrad_in", "Operands of wgrad", "What dy and x are cast to for wgrad. The gradient itself is FP32."}}};

}  // namespace fp8lab::table
