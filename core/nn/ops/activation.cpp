#include "core/nn/ops/activation.h"

#include <Eigen/Core>
#include <numbers>

#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

template <class T>
using Column = Eigen::Array<T, Eigen::Dynamic, 1>;

template <class T>
void activate_range(Activation kind, Eigen::Map<const Column<T>> z, Eigen::Map<Column<T>> value,
                    Eigen::Map<Column<T>> slope) {
    const T one{1}, half{0.5};
    switch (kind) {
        case Activation::tanh:
            value = z.tanh();
            slope = one - value.square();
            return;
        case Activation::relu:
            value = z.max(T{0});
            slope = (z > T{0}).template cast<T>();
            return;
        case Activation::gelu: {
            const T c = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;  // sqrt(2 / pi)
            const T cubic = static_cast<T>(0.044715);
            value = (c * z * (one + cubic * z.square())).tanh();
            slope =
                half * (one + value) + half * z * (one - value.square()) * c * (one + 3 * cubic * z.square());
            value = half * z * (one + value);
            return;
        }
    }
}

}  // namespace

template <class T>
void activate(Activation kind, std::span<const T> in, std::span<T> value, std::span<T> slope) {
    constexpr std::size_t kGrain = 16384;  // about 20 microseconds of tanh
    parallel_for(in.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        const auto n = static_cast<Eigen::Index>(end - begin);
        activate_range<T>(kind, {in.data() + begin, n}, {value.data() + begin, n}, {slope.data() + begin, n});
    });
}

template void activate(Activation, std::span<const float>, std::span<float>, std::span<float>);
template void activate(Activation, std::span<const double>, std::span<double>, std::span<double>);

}  // namespace fp8lab
