// Rotary position embedding: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv
// 2104.09864, section 3.2.2, with the halves of a head as pairs, as in Llama and Transformer Engine.
#pragma once

#include <cstddef>

#include "core/nn/matrix.h"

namespace fp8lab {

inline constexpr double kRopeBase = 10000;

// cos and sin of the angles t * base^(-2i / head_size), i < head_size / 2, t < context; computed in float64.
template <class T>
class RotaryTable {
  public:
    // Throws usage_error where head_size is odd or 0.
    RotaryTable(std::size_t context, std::size_t head_size, double base = kRopeBase);
    std::size_t context() const { return cos_.rows; }
    std::size_t head_size() const { return 2 * cos_.cols; }
    const Matrix<T>& cos() const { return cos_; }  // (context, head_size / 2)
    const Matrix<T>& sin() const { return sin_; }

  private:
    Matrix<T> cos_, sin_;
};

// Rotates x (sequences * context, heads * head_size) in place, any number of heads: row r is at position t = r %
// context. The pair (x[i], x[i + head_size / 2]) of each head is turned by the angle of (t, i).
template <class T>
void rotate(Matrix<T>& x, const RotaryTable<T>& table);
// The same of x (sequences * tokens, ...), tokens that begin at a position: row r is at t = first + r % tokens.
template <class T>
void rotate_from(Matrix<T>& x, const RotaryTable<T>& table, std::size_t first, std::size_t tokens);

// Rotates by the negative angle: the inverse of rotate(), and its backward pass.
template <class T>
void rotate_back(Matrix<T>& x, const RotaryTable<T>& table);

}  // namespace fp8lab
