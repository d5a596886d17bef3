#include "kernels/infer/pack.h"

#include <cstring>

#include "core/formats/codec.h"
#include "core/scaling/scale_rule.h"

namespace fp8lab::cuda {
namespace {

float scale_of(std::span<const float> values) {
    return scale_from_amax(amax(values), static_cast<float>(max_finite(find_format("e4m3"))), 0, 1);
}

}  // namespace

PackedMatrix packed(const DecodeMatrix& m, std::span<const float> w, ServedWeights format, bool gate_up) {
    constexpr std::size_t kPiece = 16;
    const auto cols = static_cast<std::size_t>(m.cols);
    const bool wide = format == ServedWeights::bf16;
    const FormatInfo& element = find_format(wide ? "bf16" : "e4m3");
    const std::size_t row_bytes = cols * (wide ? 2 : 1);
    PackedMatrix out;
    out.bytes.resize(static_cast<std::size_t>(m.tiles) * static_cast<std::size_t>(m.blocks) *
                     kDecodeBlockBytes);
    out.scales.assign(static_cast<std::size_t>(m.rows), 1);
    const float of_tensor = format == ServedWeights::e4m3 ? scale_of(w) : 1;
    std::vector<std::uint16_t> words(wide ? cols : 0);
    std::vector<std::uint8_t> codes(row_bytes);
    for (int row = 0; row < m.rows; ++row) {
        const int from = gate_up ? row % 2 * (m.rows / 2) + row / 2 : row;
        const std::span<const float> values = w.subspan(static_cast<std::size_t>(from) * cols, cols);
        if (wide) {
            encode(element, values, std::span(words), {.overflow = default_overflow(element)});
            std::memcpy(codes.data(), words.data(), row_bytes);
        } else {
            const float scale = format == ServedWeights::e4m3 ? of_tensor : scale_of(values);
            encode(element, values, std::span(codes), {.scale = scale});
            out.scales[static_cast<std::size_t>(row)] = 1 / scale;
        }
        for (std::size_t byte = 0; byte < row_bytes; byte += kPiece)
            std::memcpy(out.bytes.data() + piece_at(m, row, static_cast<int>(byte)), codes.data() + byte,
                        kPiece);
    }
    return out;
}

}  // namespace fp8lab::cuda
