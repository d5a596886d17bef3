// The table of token embeddings.
#pragma once

#include <cstddef>
#include <span>

#include "core/nn/matrix.h"

namespace fp8lab {

// table (vocabulary, d), tokens in 0 .. vocabulary - 1 -> out (tokens, d), resized: row r is the table's row
// tokens[r].
template <class T>
void gather(const Matrix<T>& table, std::span<const int> tokens, Matrix<T>& out);

// dout (tokens, d) -> dtable (vocabulary, d), resized: row v is the sum of the rows r with tokens[r] = v, in
// the order of r; 0 where the token does not occur.
template <class T>
void gather_backward(const Matrix<T>& dout, std::span<const int> tokens, std::size_t vocabulary,
                     Matrix<T>& dtable);

}  // namespace fp8lab
