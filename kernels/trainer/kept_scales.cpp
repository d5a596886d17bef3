#include "kernels/trainer/kept_scales.h"

#include "core/scaling/side_cast.h"

namespace fp8lab::cuda {

std::vector<ScaleCheckpoint> kept_scales(const std::vector<ScaleCheckpoint>& scales, const ModelPlan& plan,
                                         const Recipe& from, const Recipe& to) {
    std::vector<ScaleCheckpoint> kept;
    for (const ScaleCheckpoint& s : scales)
        for (const Along along : {Along::cols, Along::rows}) {
            const TensorClass tensor = plan.tensor(s.id).tensor;
            const Gemm reader = gemm_of(tensor, along);
            const Recipe before = plan.recipe_of(from, s.id), after = plan.recipe_of(to, s.id);
            const bool split = is_split(after, tensor);
            if ((s.gemm && *s.gemm != reader) || (!split && along == Along::rows) ||
                cast_plan(before, tensor, reader).format != cast_plan(after, tensor, reader).format)
                continue;
            kept.push_back(s);
            kept.back().gemm = split ? std::optional(reader) : std::nullopt;
        }
    return kept;
}

}  // namespace fp8lab::cuda
