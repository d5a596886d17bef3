#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/nn/models/mlp/model.h"
#include "core/nn/models/transformer/model.h"

namespace fp8lab {

std::span<const ModelEntry> models() {
    static const std::array kModels = {
        mlp_model(),
        transformer_model(),
    };
    return kModels;
}

const ModelEntry& find_model(std::string_view id) {
    const auto hit = std::ranges::find(models(), id, &ModelEntry::id);
    if (hit != models().end()) return *hit;
    std::string known;
    for (const ModelEntry& model : models()) known += (known.empty() ? "" : ", ") + std::string(model.id);
    throw usage_error("--model", fmt::format("unknown model '{}'; known: {}", id, known));
}

template <class T>
void Model<T>::align_channel(int) {
    throw usage_error("align", "the model has no SwiGLU");
}
template <class T>
const Matrix<T>& Model<T>::decode(const Batch&, GemmCasts<T>&, KvState<T>&) {
    throw usage_error("cache", "is for models of tokens");
}
template class Model<float>;
template class Model<double>;

ModelPlan model_plan(const TrainSpec& spec) { return find_model(spec.model).plan(spec); }
std::unique_ptr<Model<float>> make_model(const TrainSpec& spec) { return find_model(spec.model).make(spec); }

}  // namespace fp8lab
