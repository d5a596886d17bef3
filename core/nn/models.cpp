#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/base/units.h"
#include "core/nn/model.h"
#include "core/nn/models/mlp/model.h"
#include "core/nn/models/moe/model.h"
#include "core/nn/models/transformer/model.h"

namespace fp8lab {

std::span<const ModelEntry> models() {
    static const std::array kModels = {
        mlp_model(),
        transformer_model(),
        moe_model(),
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

int ModelOption::read(std::string_view given) const {
    const std::string option = "--" + std::string(name);
    if (!names.empty()) {
        const auto hit = std::ranges::find(names, given);
        if (hit == names.end())
            throw unknown_name(option, name, given, names, [](std::string_view word) { return word; });
        return static_cast<int>(hit - names.begin());
    }
    double value = 0;
    const bool is_number = read_number(given, value);
    const double kept = std::round(value * parts);
    if (!is_number || (parts == 1 && kept != value))
        throw usage_error(option, fmt::format("'{}' is not a {}number", given, parts == 1 ? "whole " : ""));
    if (value != 0 && kept == 0)
        throw usage_error(option, fmt::format("{} is too small; the smallest number above 0 is {}", given,
                                              shortest(1.0 / parts)));
    if (!(kept >= low && kept <= high))
        throw usage_error(option, fmt::format("{} is not in {}..{}", given, text(low), text(high)));
    return static_cast<int>(kept);
}

std::string ModelOption::text(int value) const {
    if (!names.empty()) return std::string(names[static_cast<std::size_t>(value)]);
    return parts == 1 ? std::to_string(value) : shortest(static_cast<double>(value) / parts);
}

ModelPlan model_plan(const TrainSpec& spec) { return find_model(spec.model).plan(spec); }
std::unique_ptr<Model<float>> make_model(const TrainSpec& spec) { return find_model(spec.model).make(spec); }

}  // namespace fp8lab
