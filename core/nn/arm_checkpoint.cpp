// Arm <-> tensors of a checkpoint. Names: w1 b1 (layer 1), m.w1 v.w1 m.b1 v.b1 (moments), scale.x1
// scale_age.x1 history.x1 (delayed scaling, slot 0 first), storage_scale.w1 (master=none).
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/arm.h"

namespace fp8lab {
namespace {

std::string numbered(std::string_view name, std::size_t layer) {
    return std::string(name) + std::to_string(layer + 1);
}

template <class Visit>
void for_each_tensor(std::size_t layers, Visit visit) {
    for (int l = 1; l <= static_cast<int>(layers); ++l)
        for (const TensorClass t : {TensorClass::x, TensorClass::w, TensorClass::dy}) visit(TensorId{t, l});
}

struct DelayedState {
    TensorId id;
    float scale;
    int scale_age;
    std::vector<float> history;
};

// Reads what it is asked for and names what does not fit.
class Source {
  public:
    Source(const SafeTensors& file, const std::string& where) : file_(file), where_(where) {}

    const SafeTensor* find(const std::string& name) const {
        const auto hit = file_.tensors.find(name);
        return hit == file_.tensors.end() ? nullptr : &hit->second;
    }
    void read(const std::string& name, std::vector<std::size_t> shape, std::vector<float>& values) const {
        const SafeTensor* tensor = find(name);
        if (!tensor) throw input_error(where_, "tensor '" + name + "' is missing");
        if (tensor->shape != shape)
            throw input_error(where_, "tensor '" + name + "' does not have the shape that --layers asks for");
        values = tensor->values;
    }
    // Moments are optional: a run under SGD has none.
    void read_moments(const std::string& name, const std::vector<std::size_t>& shape,
                      Moments& moments) const {
        moments = {};
        if (!find("m." + name) && !find("v." + name)) return;
        read("m." + name, shape, moments.m);
        read("v." + name, shape, moments.v);
    }
    // One number of the scaling state: finite, not negative.
    std::optional<float> scalar(const std::string& name) const {
        const SafeTensor* tensor = find(name);
        if (!tensor) return std::nullopt;
        if (tensor->values.size() != 1 || !std::isfinite(tensor->values[0]) || tensor->values[0] < 0)
            throw input_error(where_, "tensor '" + name + "' is not one finite number of at least 0");
        return tensor->values[0];
    }
    std::vector<DelayedState> delayed_states(std::size_t layers) const {
        constexpr float kLongestRun = 1e9F;  // steps
        std::vector<DelayedState> states;
        for_each_tensor(layers, [&](TensorId id) {
            const auto scale = scalar("scale." + to_string(id)), age = scalar("scale_age." + to_string(id));
            const SafeTensor* history = find("history." + to_string(id));
            if (scale && age && history && !history->values.empty())
                states.push_back(
                    {id, *scale, static_cast<int>(std::min(*age, kLongestRun)), history->values});
        });
        return states;
    }
    std::optional<std::vector<float>> storage_scales(std::size_t layers) const {
        std::vector<float> scales;
        for (std::size_t l = 0; l < layers; ++l) {
            const auto scale = scalar(numbered("storage_scale.w", l));
            if (!scale) return std::nullopt;
            scales.push_back(*scale);
        }
        return scales;
    }

  private:
    const SafeTensors& file_;
    const std::string& where_;
};

}  // namespace

SafeTensors Arm::checkpoint(int steps_done) const {
    SafeTensors file;
    file.metadata = {{"format", "fp8lab-checkpoint-1"},
                     {"step", std::to_string(steps_done)},
                     {"recipe", recipe_text(casts_.recipe())},
                     {"command_line", command_line(spec_)}};
    const auto put = [&](std::string name, std::vector<std::size_t> shape, const std::vector<float>& values) {
        if (!values.empty()) file.tensors[std::move(name)] = {std::move(shape), values};
    };
    for (std::size_t l = 0; l < moments_.size(); ++l) {
        const Layer<float>& layer = network_.layers()[l];
        const std::vector<std::size_t> w_shape{layer.w.rows, layer.w.cols}, b_shape{layer.b.size()};
        put(numbered("w", l), w_shape, layer.w.values);
        put(numbered("b", l), b_shape, layer.b);
        put(numbered("m.w", l), w_shape, moments_[l].w.m);
        put(numbered("v.w", l), w_shape, moments_[l].w.v);
        put(numbered("m.b", l), b_shape, moments_[l].b.m);
        put(numbered("v.b", l), b_shape, moments_[l].b.v);
        if (!stores_fp32()) put(numbered("storage_scale.w", l), {1}, {storage_scales_[l]});
    }
    for_each_tensor(moments_.size(), [&](TensorId id) {
        const DelayedScale* delayed = casts_.delayed(id);
        if (!delayed) return;
        put("scale." + to_string(id), {1}, {delayed->scale()});
        put("scale_age." + to_string(id), {1}, {static_cast<float>(delayed->scale_age())});
        put("history." + to_string(id), {delayed->history().size()}, delayed->history());
    });
    return file;
}

void Arm::restore(const SafeTensors& file, const std::string& where) {
    const Source source(file, where);
    auto layers = network_.layers();
    auto moments = moments_;
    for (std::size_t l = 0; l < layers.size(); ++l) {
        Layer<float>& layer = layers[l];
        const std::vector<std::size_t> w_shape{layer.w.rows, layer.w.cols}, b_shape{layer.b.size()};
        source.read(numbered("w", l), w_shape, layer.w.values);
        source.read(numbered("b", l), b_shape, layer.b);
        source.read_moments(numbered("w", l), w_shape, moments[l].w);
        source.read_moments(numbered("b", l), b_shape, moments[l].b);
    }
    const auto storage_scales = source.storage_scales(moments_.size());
    const std::vector<DelayedState> delayed = source.delayed_states(moments_.size());
    network_.layers() = std::move(layers);  // nothing changes when a tensor does not fit
    moments_ = std::move(moments);
    if (!stores_fp32()) use_storage_scales(storage_scales.value_or(scales_for_weights()));
    for (const DelayedState& s : delayed) casts_.restore_delayed(s.id, s.scale, s.scale_age, s.history);
}

}  // namespace fp8lab
