// What AdamW keeps of the weights between two updates (core/scaling/moment_storage.h), in labs that train: its settings and
// their rows.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "labs/table/row.h"

namespace fp8lab::table {

// By the names of a recipe's options.
struct Moments {
    std::string m = "fp32", v = "fp32", block = "128", round_m = "nearest", round_v = "nearest";
    std::string master = "fp32", round_update = "nearest";
    bool operator==(const Moments&) const = default;
};

// A control of one option: what it is called, and its values; the last one needs no other option than those beside which
// the control is shown.
struct MomentControl {
    FieldInfo info;
    std::vector<Choice> choices;
};
// m, v, moment_block, round_m, round_v.
const std::vector<MomentControl>& moment_controls();

// The rows of all of them, and of the weights. What has no effect is not shown.
void add_moments(Moments& moments, std::vector<Row>& out);
// ":m=e4m3:v=bf16:round_v=stochastic"; what is not shown is not said. Empty: all is in FP32.
std::string moment_options(const Moments& moments);

}  // namespace fp8lab::table
