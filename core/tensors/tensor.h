// Tensors for the labs: random ones from a specification, or the user's own from a file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"
#include "core/tensors/excluded.h"
#include "core/tensors/scales/scale_grid.h"

namespace fp8lab {

// The values, row-major (rows, cols).
struct Tensor {
    std::size_t rows = 0, cols = 0;
    std::vector<float> values;
    std::string name;                    // "normal", or the tensor's name in its file
    std::vector<std::size_t> outliers;   // which elements were made outliers, ascending
    bool picture = false;                // grey values of a picture (picture.h)
    Excluded excluded = {};              // of a file
    std::string scales = {}, note = {};  // of codes: StoredTensor::scale_words() and its note
    ScaleHealth scale_health = {};
};

// Sets the values that `excluded` counts to 0.
void exclude(Tensor& tensor);

// kind:
//   normal, laplace, uniform   standard deviation `size`
//   lognormal                  size * exp(sigma * N(0, 1)) with a random sign: `size` is the median of |x|
//   student_t                  size * t with 3 degrees of freedom: N(0, 1) over the root of a chi square of 3,
//                              divided by 3. Its standard deviation is sqrt(3) size
//   swiglu_h                   size * silu(g) u with g, u ~ N(0, 4): the input of the second linear layer of a SwiGLU
//   outlier_channel            standard deviation `size`; columns 3, 19, 35, ... are multiplied by 30
//   decades                    0.001 0.01 0.1 1 10 100 1000, as (1, 7): curriculum.md 3.4
//   zeros                      all 0
//   picture                    grey values 0 to 1 of a night sky, as (128, 128): picture.h
//   none                       (0, 0)
// Random tensors with the same number of elements have the same numbers in every shape. The second group of
// members uses random streams of its own, so that the other elements keep their numbers.
struct TensorSpec {
    std::string kind = "normal";
    double size = 100, sigma = 2;
    int seed = 5, rows = 1, cols = 16384;

    int outliers = 0;             // number of elements, at random places, that become +-outlier_ratio * size
    double outlier_ratio = 1000;  // in sigmas
    double row_spread = 0;        // row r is multiplied by 2^(row_spread * N(0, 1)): sigma in binades
    double outlier_column =
        1;  // column cols / 3 is multiplied by this, as in the outlier channels of activations

    std::string file = {};  // "FILE[:TENSOR]" (file.h); where set, nothing of the above is used

    bool operator==(const TensorSpec&) const = default;
};

std::span<const Choice> tensor_kinds();

// A file's values are those of read_tensor() after exclude(). Throws usage_error for an unknown kind, and what
// read_tensor() throws for a file.
Tensor make_tensor(const TensorSpec& spec);

// Adds the outliers of the specification to its tensor without outliers; make_tensor() ends with this.
void put_outliers(const TensorSpec& spec, Tensor& tensor);

// The field of a member of TensorSpec, the same in every lab: "tensor" (the kind, without
// none and picture), "size", "sigma", "seed", "rows", "cols", "outliers", "outlier_ratio", "row_spread",
// "outlier_column", "file". `more`: in the panel's second tier. Throws usage_error for another name.
Field tensor_field(TensorSpec& spec, std::string_view name, bool more = false);
// "tensor" in labs that show a picture.
Field tensor_or_picture_field(TensorSpec& spec);

// Whether the field has an effect on this tensor; controls without an effect are not shown. True for names of
// other fields.
bool has_effect(const TensorSpec& spec, std::string_view name);

}  // namespace fp8lab
