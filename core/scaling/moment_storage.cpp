#include "core/scaling/moment_storage.h"

namespace fp8lab {
namespace {

std::optional<CastPlan> plan_of(const FormatInfo* format, MomentBlock block, Rounding rounding) {
    if (!format) return std::nullopt;
    const bool scaled = is_fp8(*format);
    const bool blocks = scaled && block == MomentBlock::block128;
    return CastPlan{.format = format,
                    .granularity = blocks ? Granularity::block128 : Granularity::tensor,
                    .scaled = scaled,
                    .rounding = rounding,
                    .overflow = default_overflow(*format)};
}

}  // namespace

MomentStorage moment_storage(const Recipe& recipe) {
    const bool bf16 = recipe.master == MasterWeights::bf16;
    return {
        .m = plan_of(recipe.moment_m, recipe.moment_block, recipe.round_m),
        .v = plan_of(recipe.moment_v, recipe.moment_block, recipe.round_v),
        .weights = plan_of(bf16 ? &find_format("bf16") : nullptr, recipe.moment_block, recipe.round_update)};
}

std::int64_t store(const std::optional<CastPlan>& how, std::span<float> values, std::uint64_t seed,
                   std::uint64_t stream, bool count) {
    if (!how) return 0;
    // As one row, so that blocks of 1x128 run through the matrix and not only through its rows.
    const QuantizeResult result =
        quantize(*how, values, values,
                 {.rows = 1, .cols = values.size(), .seed = seed, .stream = stream, .with_stats = count});
    return result.stats.underflow;
}

}  // namespace fp8lab
