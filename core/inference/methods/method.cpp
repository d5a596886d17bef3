#include "core/inference/methods/method.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/inference/methods/awq.h"
#include "core/inference/methods/rotation.h"
#include "core/inference/rescale.h"

namespace fp8lab {
namespace {

constexpr std::array kMethods = {
    MethodInfo{Method::nearest, "nearest", "To nearest"},
    MethodInfo{Method::smooth, "smooth", "SmoothQuant"},
    MethodInfo{Method::awq, "awq", "AWQ"},
    MethodInfo{Method::gptq, "gptq", "GPTQ"},
    MethodInfo{Method::rotate, "rotate", "Rotation"},
    MethodInfo{Method::rotate_gptq, "rotate+gptq", "Rotation, GPTQ"},
    MethodInfo{Method::four_or_six, "4or6", "Four over six"},
};

LowFormat with_four_or_six(LowFormat format) {
    format.weights.target = format.activations.target = Nvfp4Target::four_or_six;
    return format;
}

bool is_nvfp4(const LowFormat& format) { return format.weights.granularity == Granularity::block16; }

double size_of(const Matrix<float>& m) {
    double sum = 0;
    for (const float v : m.values) sum += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(sum);
}

double output_error(const Matrix<float>& w, const Matrix<float>& lowered, const Matrix<float>& x) {
    if (x.rows == 0) return std::numeric_limits<double>::quiet_NaN();
    Matrix<float> lost = w, right, wrong;
    for (std::size_t i = 0; i < lost.values.size(); ++i) lost.values[i] -= lowered.values[i];
    multiply_nt(x, w, right), multiply_nt(x, lost, wrong);
    return size_of(wrong) / size_of(right);
}

InputChange change_of(const LowFormat& format, const MethodOptions& options, const Matrix<float>& w,
                      const Matrix<float>& x, const LayerPlace& place) {
    constexpr double kAlpha = 0.5;
    InputChange out;
    if (options.method == Method::smooth && place.takes_divisors) {
        std::vector<float> inputs, weights;
        add_column_amaxes(x, inputs), add_column_amaxes(w, weights);
        out.divisors = smoothing_scales(inputs, weights, kAlpha);
    }
    if (options.method == Method::awq && place.takes_divisors)
        out.divisors = awq_divisors(format, w, x, options.awq_floor);
    if (rotates(options.method) && place.rotates) out.rotation = random_hadamard(w.cols, options.seed);
    return out;
}

}  // namespace

std::span<const MethodInfo> methods() { return kMethods; }

Method find_method(std::string_view name, std::string_view where) {
    const auto found = std::ranges::find(kMethods, name, &MethodInfo::name);
    if (found != kMethods.end()) return found->id;
    throw unknown_name(std::string(where), "method", name, kMethods,
                       [](const MethodInfo& method) { return method.name; });
}

std::string_view to_string(Method method) {
    return std::ranges::find(kMethods, method, &MethodInfo::id)->name;
}

bool has_gptq(Method method) { return method == Method::gptq || method == Method::rotate_gptq; }
bool rotates(Method method) { return method == Method::rotate || method == Method::rotate_gptq; }

bool sees_rows(Method method) { return method != Method::nearest && method != Method::four_or_six; }

void check_effect(const MethodOptions& options, const Mix& mix) {
    const MethodOptions usual;
    const auto refuse = [&](const char* option) {
        throw usage_error(option, fmt::format("has no effect with method {}", to_string(options.method)));
    };
    if (options.method == Method::four_or_six &&
        std::ranges::none_of(mix.weights, [](const LowFormat* format) { return is_nvfp4(*format); }))
        throw usage_error("--method",
                          "4or6 chooses between two targets of an NVFP4 block: it needs weights in nvfp4");
    if (options.damp != usual.damp && !has_gptq(options.method)) refuse("--damp");
    if (options.order != usual.order && !has_gptq(options.method)) refuse("--order");
    if (!options.awq_floor && options.method != Method::awq) refuse("--no-awq-floor");
    if (options.rows > 0 && !sees_rows(options.method)) refuse("--rows");
    if (options.amax_factor != 1 && std::ranges::none_of(mix.activations, &LowFormat::has_static_scale))
        throw usage_error("--amax", "has no effect without inputs that have a scale per tensor");
}

Matrix<float> seen_rows(const Matrix<float>& x, const MethodOptions& options) {
    if (options.rows == 0 || options.rows >= x.rows) return x;
    Matrix<float> out(options.rows, x.cols);
    std::copy_n(x.values.begin(), out.values.size(), out.values.begin());
    return out;
}

Matrix<float> InputChange::input(const Matrix<float>& x) const {
    Matrix<float> out;
    if (rotation.rows > 0)
        multiply_nn(x, rotation, out);
    else
        out = x;
    if (!divisors.empty())
        for (std::size_t r = 0; r < out.rows; ++r)
            for (std::size_t c = 0; c < out.cols; ++c) out.row(r)[c] /= divisors[c];
    return out;
}

Matrix<float> InputChange::weights(const Matrix<float>& w) const {
    Matrix<float> out;
    if (rotation.rows > 0)
        multiply_nn(w, rotation, out);
    else
        out = w;
    if (!divisors.empty())
        for (std::size_t r = 0; r < out.rows; ++r)
            for (std::size_t c = 0; c < out.cols; ++c) out.row(r)[c] *= divisors[c];
    return out;
}

namespace {

void check_layer(const MethodOptions& options, const Matrix<float>& w, const LayerPlace& place) {
    const std::string where = "layer " + place.name;
    if (!(options.damp > 0 && std::isfinite(options.damp)))
        throw usage_error(where, fmt::format("damping must be above 0; got {}", options.damp));
    if (!(options.amax_factor > 0 && std::isfinite(options.amax_factor)))
        throw usage_error(where, fmt::format("an amax factor must be above 0; got {}", options.amax_factor));
    if (sees_rows(options.method) && w.cols > kMostChannels)
        throw usage_error(where, fmt::format("has {} inputs; method {} takes up to {}", w.cols,
                                             to_string(options.method), kMostChannels));
}

}  // namespace

double LoweredLayer::rel_l2_w() const { return std::sqrt(stats.noise / stats.signal); }

LoweredLayer lower_layer(const LowFormat& format, const MethodOptions& options, const Matrix<float>& w,
                         const Matrix<float>& x, const LayerPlace& place) {
    check_layer(options, w, place);
    LoweredLayer out;
    if (format.id == "fp32") {
        out.w = w;
        out.stats = measure_weights(w, w);
        return out;
    }
    out.change = change_of(format, options, w, x, place);
    const Matrix<float> weights = out.change.weights(w), inputs = out.change.input(x);
    if (has_gptq(options.method)) {
        out.w = gptq(format, weights, inputs, options.damp, place.name, options.order);
        out.stats = measure_weights(weights, out.w);
    } else {
        const bool by_block = options.method == Method::four_or_six && is_nvfp4(format);
        out.w = lowered_weights(weights, by_block ? with_four_or_six(format) : format, &out.stats);
    }
    out.rel_out = output_error(weights, out.w, inputs);
    return out;
}

Matrix<float> lowered_layer_input(const LowFormat& format, const MethodOptions& options,
                                  const LoweredLayer& layer, const Matrix<float>& x, CastStats* stats) {
    const Matrix<float> changed = layer.change.input(x);
    const bool by_block = options.method == Method::four_or_six && is_nvfp4(format);
    const float static_amax = options.amax_factor == 1 ? 0 : options.amax_factor * amax(changed.values);
    return lowered_input(changed, by_block ? with_four_or_six(format) : format, static_amax, stats);
}

}  // namespace fp8lab
