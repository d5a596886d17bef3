#include "core/trainer/gradient_sum.h"

#include <algorithm>
#include <cmath>

#include "core/formats/codec.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

// As scale_from_amax() does, but with room for the parts to come.
float scale_of(const FormatInfo& format, std::span<const float> first, int parts) {
    const float largest = amax(first) * static_cast<float>(parts);
    return largest > 0 && std::isfinite(largest) ? static_cast<float>(max_finite(format)) / largest : 1.0F;
}

}  // namespace

GradientSum::GradientSum(const Accumulation& accumulate, std::vector<bool> rounded)
    : micro_batches_(accumulate.micro_batches),
      format_(&find_format(accumulate.format)),
      rounded_(std::move(rounded)) {}

void GradientSum::add(std::span<const std::span<float>> gradients, bool first) {
    constexpr std::size_t kGrain = 65536;
    const bool scaled = is_element(*format_);
    sums_.resize(gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        Sum& sum = sums_[i];
        const std::span<const float> part = gradients[i];
        if (first) {
            sum.values.assign(part.size(), 0.0F);
            sum.exact.assign(part.size(), 0.0);
            sum.scale = scaled ? scale_of(*format_, part, micro_batches_) : 1.0F;
        }
        parallel_for(part.size(), kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t j = begin; j < end; ++j) {
                sum.values[j] += part[j];
                sum.exact[j] += static_cast<double>(part[j]);
            }
            const auto values = std::span(sum.values).subspan(begin, end - begin);
            if (rounded_[i] && format_->name != "fp32")
                quantize(
                    *format_, values, values,
                    {.overflow = scaled ? Overflow::saturate : Overflow::nonsaturate, .scale = sum.scale});
        });
    }
}

void GradientSum::mean(std::span<const std::span<float>> gradients) const {
    for (std::size_t i = 0; i < gradients.size(); ++i)
        for (std::size_t j = 0; j < gradients[i].size(); ++j)
            gradients[i][j] = sums_[i].values[j] / static_cast<float>(micro_batches_);
}

Distance GradientSum::distance() const {
    Distance out;
    for (std::size_t i = 0; i < sums_.size(); ++i)
        for (std::size_t j = 0; rounded_[i] && j < sums_[i].exact.size(); ++j)
            out.add(static_cast<double>(sums_[i].values[j]), sums_[i].exact[j]);
    return out;
}

}  // namespace fp8lab
