// Tensors to experiment with: drawn at random as a specification says, or the user's own from a file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"

namespace fp8lab {

// Row-major (rows, cols).
struct Tensor {
    std::size_t rows = 0, cols = 0;
    std::vector<float> values;
    std::string name;                   // "normal", or the tensor's name in its file
    std::vector<std::size_t> outliers;  // which elements were made outliers, ascending
};

// kind:
//   normal, laplace, uniform   standard deviation `size`
//   lognormal                  size * exp(sigma * N(0, 1)) with a random sign: `size` is the median of |x|
//   decades                    0.001 0.01 0.1 1 10 100 1000, as (1, 7): the seed notebook's array
//   zeros                      all 0
//   none                       (0, 0)
// A random tensor with rows = 1 has the same numbers as one of the same number of elements in another shape.
// What the second group of members does is drawn from streams of its own: the other elements keep their
// numbers.
struct TensorSpec {
    std::string kind = "normal";
    double size = 100, sigma = 2;
    int seed = 5, rows = 1, cols = 16384;

    int outliers = 0;             // so many elements, at random places, become +-outlier_ratio * size
    double outlier_ratio = 1000;  // in sigmas
    double row_spread = 0;        // row r is multiplied by 2^(row_spread * N(0, 1)): sigma in binades
    double outlier_column =
        1;  // column cols / 3 is multiplied by this, as the outlier channels of activations are

    std::string file = {};  // "FILE[:TENSOR]" (file.h); not empty: this, and nothing of the above

    bool operator==(const TensorSpec&) const = default;
};

std::span<const Choice> tensor_kinds();

// Throws usage_error for an unknown kind, and what read_tensor() throws for a file.
Tensor make_tensor(const TensorSpec& spec);

// Turns the tensor of the specification without outliers into the one with them: make_tensor() ends with this.
void put_outliers(const TensorSpec& spec, Tensor& tensor);

// The field of a member of TensorSpec, so that every lab calls it the same: "tensor" (the kind, without
// none), "size", "sigma", "seed", "rows", "cols", "outliers", "outlier_ratio", "row_spread",
// "outlier_column", "file". `more`: in the panel's second tier. Throws usage_error for another name.
Field tensor_field(TensorSpec& spec, std::string_view name, bool more = false);

// Whether that field changes anything in this tensor: controls that do not are not shown. True for names of
// others.
bool has_effect(const TensorSpec& spec, std::string_view name);

}  // namespace fp8lab
