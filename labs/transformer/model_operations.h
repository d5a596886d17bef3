// The operations of a block and the head in the order of the flow: which format they read, and how the tensors are that
// they read.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/palette.h"
#include "labs/transformer/model_health.h"

namespace fp8lab::transformer {

struct Operation {
    std::string_view id, name, short_name;  // "gate_up", "gate · up", "g · u"
    std::string format;                     // what its operands are in: "E4M3", "BF16"
    Role role = Role::truth;
    bool narrow = false;                  // 8 bits or fewer
    std::string x = {}, w = {}, dy = {};  // its tensors by name; empty: it reads none that a recipe can cast
    double amax = kNan;                   // of x
    double x_lost_pct = kNan, dy_lost_pct = kNan;  // newest step; NaN: not cast
    int saturated_steps = -1;                      // steps in which x, w or dy was saturated; -1: not cast
    bool hurt = false;  // x loses 10 % or more, or more than 1 % of it is saturated
};
inline constexpr std::size_t kOperations = 9;
std::vector<Operation> operations(int block, const ModelPlan& plan, const Recipe& recipe,
                                  const Health& health);

// FLOP of a step in percent of all GEMMs' (forward and backward): of those that the recipe casts to 8 bits or fewer.
double flop_share_pct(const ModelPlan& plan, const Recipe& recipe, int context);
// How many linear layers of the blocks the recipe casts to 8 bits or fewer, and how many there are.
struct LinearCount {
    int narrow = 0, all = 0;
};
LinearCount narrow_linears(const ModelPlan& plan, const Recipe& recipe);

}  // namespace fp8lab::transformer
