// Python for the casts of a recipe: a function for each way in which operands are cast, and the helpers that these call.
// K, the dimension that a product sums over, is the last one of what is cast.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/side_cast.h"

namespace fp8lab::python {

// One operand of one product: x and w of fprop, dy and w of dgrad, dy and x of wgrad.
struct Operand {
    TensorClass tensor;
    Gemm gemm;
};
constexpr std::array<Operand, 6> kOperands = {{{TensorClass::x, Gemm::fprop},
                                               {TensorClass::w, Gemm::fprop},
                                               {TensorClass::dy, Gemm::dgrad},
                                               {TensorClass::w, Gemm::dgrad},
                                               {TensorClass::dy, Gemm::wgrad},
                                               {TensorClass::x, Gemm::wgrad}}};

// Operands that are cast in one way.
struct CastGroup {
    std::string name;  // "quantize_x_w", "quantize_dy_wgrad"
    SideCast cast;
    std::vector<Operand> operands;
    bool is_delayed() const { return cast.delayed && cast.plan.scaled; }
};
// In the order of kOperands. Together they have all of them.
std::vector<CastGroup> cast_groups(const Recipe& recipe);
const CastGroup& group_of(const std::vector<CastGroup>& groups, Operand operand);

// The definition: a function that returns values of the format and the factor that gives the operand back. For a group
// of delayed scaling there is none; its objects are made by delayed_call().
std::string quantize_function(const CastGroup& group, const Recipe& recipe);
std::string delayed_class(const Recipe& recipe);
std::string delayed_call(const CastGroup& group);  // "DelayedScale(e4m3, 448)"

// The helpers that a text calls, and those that these call, in an order in which Python reads them.
std::string helpers_for(std::string_view text, const Recipe& recipe);

}  // namespace fp8lab::python
