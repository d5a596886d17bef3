#include "core/backend/infer_case.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace fp8lab {

void check_infer_case(const InferCase& of) {
    const auto refuse = [](const std::string& why) { throw usage_error("--shape", why); };
    if (of.d % of.heads != 0) refuse(fmt::format("HEADS: {} does not divide D {}", of.heads, of.d));
    if (of.heads % of.kv_heads != 0)
        refuse(fmt::format("KV: {} does not divide HEADS {}", of.kv_heads, of.heads));
    if (of.d / of.heads % 2 != 0)
        refuse(fmt::format("a head of D / HEADS = {} is not even, as rotation needs it", of.d / of.heads));
    if (of.tokens > of.context)
        throw usage_error("--tokens", fmt::format("{} are more than CONTEXT {}", of.tokens, of.context));
}

double weight_bytes(const InferCase& of) {
    const double d = of.d, kv = d / of.heads * of.kv_heads;
    return of.layers * d * (2 * d + 2 * kv + 3.0 * of.ffn) * info_of(of.formats.weights).bytes;
}

double cache_bytes(const InferCase& of) {
    const double head = static_cast<double>(of.d) / of.heads,
                 value = of.formats.cache == ServedCache::bf16 ? 2 : 1;
    return 2.0 * of.layers * of.batch * of.kv_heads * head * of.context * value;
}

double token_flop(const InferCase& of) {
    const double weights = weight_bytes(of) / info_of(of.formats.weights).bytes;
    return of.batch * (2 * weights + 4.0 * of.layers * of.d * of.context);
}

}  // namespace fp8lab
