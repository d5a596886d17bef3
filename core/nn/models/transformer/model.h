// A decoder-only transformer, pre-norm, without biases (Touvron et al., "LLaMA", arXiv 2302.13971, section 2.2):
//   x = E[token]
//   per block  x += out attention(rope(qkv norm1(x)));  x += down act(gate_up norm2(x))
//   logits = head norm(x)
// Norms are RMSNorm with eps 1e-6. attention: causal, scores / sqrt(d / heads), RoPE over halves with base 10000, K and V
// of kv_heads shared by heads / kv_heads heads each. act: SwiGLU, silu(gate) up, and its forms SwigluForm.
//
// GEMMs of block b: "b.qkv" (d + 2 kv_heads d / heads, d), "b.attention", "b.out" (d, d), "b.gate_up" (2 ffn, d), "b.down"
// (d, ffn); then "head" (vocabulary, d). Tensors: "b.qkv.x", ".w", ".dy"; "b.attention.q", ".k", ".v", ".p" (the
// probabilities), ".do", ".ds" (gradients of the output and of the scores). Parameters: "embedding", "b.norm1", "b.qkv.w",
// ..., "norm", "head.w"; with tie=1 the head has no weights of its own and reads the embedding.
//
// In every recipe but fp32 the outputs of GEMMs and norms, the products of gate and up and the residual stream are
// rounded to BF16. Start: weights ~ N(0, 1 / fan_in), those of out and down divided by sqrt(2 blocks) besides;
// embedding ~ N(0, 1); head (or tied embedding) ~ N(0, 0.02^2), so that the first loss is ln(vocabulary); gains 1.
//
// Options (TrainSpec::sizes): decoder_options(192).
#pragma once

#include "core/nn/models/decoder/shape.h"

namespace fp8lab {

ModelPlan transformer_plan(const TransformerShape& shape);

ModelEntry transformer_model();

}  // namespace fp8lab
