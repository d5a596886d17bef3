#include "core/plan/flop.h"

#include <algorithm>

namespace fp8lab::plan {
namespace {

double keys_of_a_query(double tokens, int window, bool causal) {
    const double kept = window > 0 ? std::min<double>(tokens, window) : tokens;
    return causal ? kept - kept * kept / (2 * tokens) : kept;
}

}  // namespace

TokenFlop training_flop(const ModelSize& model, double tokens, bool causal) {
    TokenFlop out{.matrices = 6 * model.matrices};
    for (const KvLayer& layer : model.kv)
        out.attention += 12 * model.attention_width * keys_of_a_query(tokens, layer.window, causal);
    return out;
}

double mfu(const TokenFlop& flop, double tokens_per_second, double peak) {
    return flop.all() * tokens_per_second / (peak * 1e12);
}

}  // namespace fp8lab::plan
