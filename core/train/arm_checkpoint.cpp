// CPU arm <-> checkpoint.
#include "core/train/arm.h"
#include "core/train/checkpoint.h"

namespace fp8lab {

ArmCheckpoint Arm::checkpoint() const {
    ArmCheckpoint checkpoint{.recipe = recipe_text(casts_.recipe()), .layers = {}, .scales = {}};
    for (std::size_t l = 0; l < moments_.size(); ++l) {
        const Layer<float>& layer = network_.layers()[l];
        LayerCheckpoint values{layer.w.values, layer.b, moments_[l].w, moments_[l].b, {}};
        if (!stores_fp32()) values.storage_scale = storage_scales_[l];
        checkpoint.layers.push_back(std::move(values));
        for (const TensorClass t : {TensorClass::x, TensorClass::w, TensorClass::dy}) {
            const TensorId id{t, static_cast<int>(l) + 1};
            if (const DelayedScale* delayed = casts_.delayed(id))
                checkpoint.scales.push_back({id, delayed->scale(), delayed->scale_age(), delayed->history()});
        }
    }
    return checkpoint;
}

void Arm::restore(const ArmCheckpoint& checkpoint) {
    std::vector<float> storage_scales;
    for (std::size_t l = 0; l < moments_.size(); ++l) {
        const LayerCheckpoint& values = checkpoint.layers[l];
        network_.layers()[l].w.values = values.w;
        network_.layers()[l].b = values.b;
        moments_[l] = {values.w_moments, values.b_moments};
        if (values.storage_scale) storage_scales.push_back(*values.storage_scale);
    }
    if (!stores_fp32())
        use_storage_scales(storage_scales.size() == moments_.size() ? storage_scales : scales_for_weights());
    for (const ScaleCheckpoint& s : checkpoint.scales)
        casts_.restore_delayed(s.id, s.scale, s.scale_age, s.history);
}

}  // namespace fp8lab
