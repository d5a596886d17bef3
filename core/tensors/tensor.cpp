#include "core/tensors/tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/tensors/file.h"
#include "core/tensors/picture.h"
#include "core/threads/parallel.h"

namespace fp8lab {

namespace {

constexpr std::size_t kMostOfTensor = std::size_t{1} << 26;  // 256 MiB

enum Stream : std::uint64_t { values_stream, outlier_stream, row_stream };

Rng rng_of(const TensorSpec& spec, Stream stream) {
    return Rng(static_cast<std::uint64_t>(spec.seed), stream);
}

constexpr std::size_t kChannelPitch = 16, kOutlierChannel = 3;  // of outlier_channel: one in 16
constexpr float kChannelFactor = 30;

// How many 32-bit words of the stream two elements take: a normal number takes 2, a uniform one too.
std::uint64_t words_of_pair(std::string_view kind) {
    if (kind == "normal" || kind == "outlier_channel") return 4;
    return kind == "student_t" ? 16 : 8;
}

void fill_part(const TensorSpec& spec, Rng rng, std::span<float> out) {
    const auto draw = [&]() -> double {
        const auto normal = [&] { return static_cast<double>(rng.normal()); };
        if (spec.kind == "normal" || spec.kind == "outlier_channel") return normal();
        if (spec.kind == "student_t") {
            const double z = normal(), a = normal(), b = normal(), c = normal();
            return z / std::sqrt((a * a + b * b + c * c) / 3);
        }
        if (spec.kind == "swiglu_h") {
            const double g = 2 * normal(), u = 2 * normal();
            return g / (1 + std::exp(-g)) * u;
        }
        const double sign = rng.uniform() < 0.5 ? -1.0 : 1.0;
        if (spec.kind == "lognormal") return sign * std::exp(spec.sigma * static_cast<double>(rng.normal()));
        // Divided by the standard deviation of the unit distribution: sqrt(2) and 1 / sqrt(3).
        if (spec.kind == "laplace") return sign * -std::log1p(-rng.uniform()) / std::numbers::sqrt2;
        return sign * rng.uniform() * std::numbers::sqrt3;
    };
    for (float& x : out) x = static_cast<float>(spec.size * draw());
}

// Two elements take a known number of random words: every pair's place in the stream is known without those
// before it.
void fill_random(const TensorSpec& spec, std::span<float> out) {
    constexpr std::size_t kGrain = 4096;  // pairs that are worth a thread
    const std::uint64_t words_a_pair = words_of_pair(spec.kind);
    parallel_for((out.size() + 1) / 2, kGrain, [&](std::size_t begin, std::size_t end) {
        Rng rng = rng_of(spec, values_stream);
        rng.seek(begin * words_a_pair);
        fill_part(spec, rng, out.subspan(2 * begin, std::min(2 * end, out.size()) - 2 * begin));
    });
}

void spread_rows(const TensorSpec& spec, Tensor& tensor) {
    if (spec.row_spread == 0) return;
    Rng rng = rng_of(spec, row_stream);
    for (std::size_t r = 0; r < tensor.rows; ++r) {
        const auto factor =
            static_cast<float>(std::exp2(spec.row_spread * static_cast<double>(rng.normal())));
        for (float& x : std::span(tensor.values).subspan(r * tensor.cols, tensor.cols)) x *= factor;
    }
}

void widen_channels(const TensorSpec& spec, Tensor& tensor) {
    if (spec.kind != "outlier_channel") return;
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
        if (i % tensor.cols % kChannelPitch == kOutlierChannel) tensor.values[i] *= kChannelFactor;
}

void widen_column(const TensorSpec& spec, Tensor& tensor) {
    if (spec.outlier_column == 1) return;
    for (std::size_t i = tensor.cols / 3; i < tensor.values.size(); i += tensor.cols)
        tensor.values[i] *= static_cast<float>(spec.outlier_column);
}

}  // namespace

std::span<const Choice> tensor_kinds() {
    static const std::array kKinds = {
        Choice{"normal", "Gaussian"},
        Choice{"lognormal", "log-normal"},
        Choice{"uniform", "uniform"},
        Choice{"laplace", "Laplace"},
        Choice{"student_t", "Student t, 3"},
        Choice{"swiglu_h", "SwiGLU h = silu(g) u"},
        Choice{"outlier_channel", "1 of 16 columns × 30"},
        Choice{"decades", "0.001, 0.01 ... 1000"},
        Choice{"zeros", "zeros"},
        Choice{"picture", "a picture"},
        Choice{"none", "none"},
    };
    return kKinds;
}

void put_outliers(const TensorSpec& spec, Tensor& tensor) {
    if (!spec.file.empty()) return;
    const auto count = std::min(static_cast<std::size_t>(std::max(spec.outliers, 0)), tensor.values.size());
    Rng rng = rng_of(spec, outlier_stream);
    std::set<std::size_t> places;
    while (places.size() < count) {
        const std::size_t at = rng.below(static_cast<std::uint32_t>(tensor.values.size()));
        if (!places.insert(at).second) continue;
        const auto size = static_cast<float>(spec.outlier_ratio * spec.size);
        tensor.values[at] = std::copysign(size, tensor.values[at]);
    }
    tensor.outliers.assign(places.begin(), places.end());
}

void exclude(Tensor& tensor) {
    if (tensor.excluded.not_finite() == 0) return;
    for (float& value : tensor.values)
        if (!std::isfinite(value)) value = 0;
}

Tensor make_tensor(const TensorSpec& spec) {
    if (!spec.file.empty()) {
        Tensor own = read_tensor(spec.file);
        exclude(own);
        return own;
    }
    const auto kinds = tensor_kinds();
    if (std::none_of(kinds.begin(), kinds.end(), [&](const Choice& kind) { return kind.id == spec.kind; }))
        throw unknown_name("tensor", "kind", spec.kind, kinds, [](const Choice& kind) { return kind.id; });
    Tensor tensor;
    tensor.name = spec.kind;
    if (spec.kind == "none") return tensor;
    if (spec.kind == "picture") {
        tensor = draw_picture();
    } else if (spec.kind == "decades") {
        tensor.values = {0.001F, 0.01F, 0.1F, 1, 10, 100, 1000};
        tensor.rows = 1, tensor.cols = tensor.values.size();
    } else {
        tensor.rows = static_cast<std::size_t>(spec.rows), tensor.cols = static_cast<std::size_t>(spec.cols);
        if (tensor.rows > kMostOfTensor / tensor.cols)
            throw usage_error("tensor", "rows x cols are more than 2^26 elements");
        tensor.values.resize(tensor.rows * tensor.cols);
        if (spec.kind != "zeros") fill_random(spec, tensor.values);
    }
    widen_channels(spec, tensor);
    spread_rows(spec, tensor);
    widen_column(spec, tensor);
    put_outliers(spec, tensor);
    return tensor;
}

}  // namespace fp8lab
