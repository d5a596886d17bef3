// Loops over rows that are bound by arithmetic: the exponential and the gated activation, of FP32 compiled for
// every vector target of the machine family and chosen at run time. No target contracts a product and a sum, so
// all give the same bytes.
#pragma once

#include <cstddef>

#include "core/nn/ops/swiglu.h"

namespace fp8lab {

// row[i] = e^(row[i] - shift)
void exponential_row(float* row, std::size_t n, float shift);
void exponential_row(double* row, std::size_t n, double shift);

// One row of gated_activation() and of gated_activation_backward(), f channels.
void gate_row(GatedActivation kind, const float* gate, const float* up, std::size_t f, float* a);
void gate_row(GatedActivation kind, const double* gate, const double* up, std::size_t f, double* a);
void gate_row_backward(GatedActivation kind, const float* da, const float* gate, const float* up,
                       std::size_t f, float* dgate, float* dup);
void gate_row_backward(GatedActivation kind, const double* da, const double* gate, const double* up,
                       std::size_t f, double* dgate, double* dup);

}  // namespace fp8lab
