#include "app/cli/bench/narrowing.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

namespace fp8lab::cli {
namespace {

namespace hn = hwy::HWY_NAMESPACE;  // of the build's own target: the memory limits any of them

constexpr std::size_t kLine = 64, kPage = 1024, kPages = 8;  // of `out`

void narrow_line(const float* in, std::uint8_t* out) {
    const hn::ScalableTag<std::uint8_t> d;
    const std::size_t width = hn::Lanes(d);  // bytes, and floats of four vectors
    for (std::size_t at = 0; at < kLine; at += width) {
        const auto* const from = reinterpret_cast<const std::uint8_t*>(in + at);
        const auto low = hn::Or(hn::LoadU(d, from), hn::LoadU(d, from + width)),
                   high = hn::Or(hn::LoadU(d, from + 2 * width), hn::LoadU(d, from + 3 * width));
        hn::Stream(hn::Or(low, high), d, out + at);
    }
}

}  // namespace

void read_4_write_1(std::span<const float> in, std::span<std::uint8_t> out) {
    for (std::size_t group = 0; group < out.size(); group += kPages * kPage)
        for (std::size_t line = group; line < group + kPage; line += kLine)
            for (std::size_t at = line; at < line + kPages * kPage; at += kPage)
                narrow_line(in.data() + at, out.data() + at);
    hwy::FlushStream();
}

}  // namespace fp8lab::cli
