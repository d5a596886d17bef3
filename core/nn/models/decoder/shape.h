// What the decoders of this program have in common: their sizes, their options, and their plan but for the feed-forward
// parts. Models: transformer/model.h, which says what is computed.
#pragma once

#include <array>
#include <functional>

#include "core/nn/model.h"

namespace fp8lab {

struct TransformerShape {
    std::size_t d = 64, blocks = 2, heads = 4, kv_heads = 4, ffn = 192, context = 64, vocabulary = 0;
    bool tied = false;

    std::size_t head_size() const { return d / heads; }
    std::size_t key_cols() const { return kv_heads * head_size(); }
};

// Of every model that has decoder_options(). Throws usage_error naming the rule: heads divides d, kv-heads divides heads,
// d / heads is even.
TransformerShape transformer_shape(const TrainSpec& spec);

// d, blocks, heads, kv-heads, ffn (with this default), context, tie.
std::array<ModelOption, 7> decoder_options(int ffn);

// `feed_forward` adds the GEMMs and parameters between norm2 and the end of a block (1-based) to the plan.
using PlanFeedForward = std::function<void(ModelPlan& plan, int block)>;
ModelPlan decoder_plan(const TransformerShape& shape, const PlanFeedForward& feed_forward);
// A linear layer "b.name" (out, in) of the block.
void plan_linear(ModelPlan& plan, GemmRole role, int block, const std::string& name, std::size_t out,
                 std::size_t in);

}  // namespace fp8lab
