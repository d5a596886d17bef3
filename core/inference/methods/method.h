// The methods that lower a trained network with more care than casting to nearest. All of them need only some rows of the
// training, no gradients. Layers are lowered in the order of the forward pass; the inputs that a method sees are those of
// the network lowered so far.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/inference/format.h"
#include "core/inference/lowering.h"
#include "core/inference/methods/gptq.h"
#include "core/nn/matrix.h"

namespace fp8lab {

enum class Method {
    nearest,  // no method: run_lowered()
    smooth,  // SmoothQuant with alpha 0.5 (rescale.h), of the inputs that the layer gets from a norm or a layer
    awq,     // awq.h, of the same layers
    gptq,    // gptq.h
    rotate,       // rotation.h; then to nearest
    rotate_gptq,  // then GPTQ
    four_or_six,  // NVFP4 with the better of two targets for each block (Nvfp4Target)
};
struct MethodInfo {
    Method id;
    std::string_view name, label;  // "rotate+gptq", "Rotation, GPTQ"
};
std::span<const MethodInfo> methods();
// Throws usage_error with the names that there are.
Method find_method(std::string_view name, std::string_view where);
std::string_view to_string(Method method);
bool has_gptq(Method method);
bool rotates(Method method);
bool sees_rows(Method method);  // of the training: all but nearest and 4or6

struct MethodOptions {
    Method method = Method::nearest;
    double damp = 0.01;                      // of GPTQ
    ColumnOrder order = ColumnOrder::given;  // of GPTQ
    bool awq_floor = true;                   // awq.h
    std::size_t rows = 0;                    // of the training that the method sees; 0: all that there are
    std::uint64_t seed = 7;                  // of the signs of a rotation
    float amax_factor = 1;  // the amax that an input's scale per tensor, or NVFP4's, follows from, times this
    bool operator==(const MethodOptions&) const = default;
};
// Of all layers together: throws usage_error where the method or an option has no effect on that mix: 4or6 without weights in
// NVFP4, damp or the order act without GPTQ, awq_floor without AWQ, rows of a method that sees none, an amax factor without
// inputs that have a scale per tensor.
void check_effect(const MethodOptions& options, const Mix& mix);

// The most input channels of a layer for the methods that see rows: GPTQ's time grows with their square, and a rotation is
// a matrix of that size.
inline constexpr std::size_t kMostChannels = 2048;

// A change of both operands of a product that leaves it as it is.
struct InputChange {
    std::vector<float> divisors = {};  // x_j / s_j and w_j s_j of each input channel; empty: none
    Matrix<float> rotation = {};       // x R and w R; empty: none
    Matrix<float> input(const Matrix<float>& x) const;
    Matrix<float> weights(const Matrix<float>& w) const;
};

struct LoweredLayer {
    InputChange change;
    Matrix<float> w;  // (out, in), as the GEMM reads it
    CastStats stats;  // of the weights behind the change
    double rel_out =
        0;  // |X W^T - X Q^T| / |X W^T| over the rows that the method saw, X in FP32; NaN: it saw none
    double rel_l2_w() const;  // |W - Q| / |W| behind the change
};

// The rows of x that a method sees: the first MethodOptions::rows, or all where there are no more.
Matrix<float> seen_rows(const Matrix<float>& x, const MethodOptions& options);

// Where a layer is in its network.
struct LayerPlace {
    std::string name;             // "1.qkv", of errors
    bool takes_divisors = false;  // the division of its input can be folded into what is before it
    bool rotates = false;         // its input is rotated while the model runs
};
// w: (out, in) in FP32; x: (rows, in), the inputs before the change and the cast. Of `nearest` and `four_or_six` x may be
// empty; the latter changes NVFP4 alone. A layer in FP32 stays as it is. Throws as gptq(), and usage_error: damp not above 0, an
// amax factor not above 0 or not finite, more than kMostChannels inputs of a method that sees rows.
LoweredLayer lower_layer(const LowFormat& format, const MethodOptions& options, const Matrix<float>& w,
                         const Matrix<float>& x, const LayerPlace& place);
// What the layer's GEMM reads of its input, `format` being that of the input.
Matrix<float> lowered_layer_input(const LowFormat& format, const MethodOptions& options,
                                  const LoweredLayer& layer, const Matrix<float>& x,
                                  CastStats* stats = nullptr);

}  // namespace fp8lab
