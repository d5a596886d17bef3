// A dot product of E4M3 numbers in a tensor core whose accumulator is narrower than FP32, and the same on
// hardware.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fp8lab::adding {

// A model of Hopper's FP8 tensor core (DeepSeek-V3 report, arXiv 2412.19437, section 3.5.2; 13 fraction bits
// there): 32 products and the accumulator are aligned to the largest exponent among them, cut off below
// `fraction_bits` bits of it, added exactly, and the sum is cut off again. Every `interval` products the
// accumulator is added to an FP32 register and starts from 0.
class Accumulator {
  public:
    static constexpr int kGroup = 32, kHopper = 13;

    Accumulator(int fraction_bits, int interval) : fraction_bits_(fraction_bits), interval_(interval) {}
    void add(std::span<const float> products);  // of two E4M3 values each; any number
    double value() const;

  private:
    void add_group(std::span<const float> products);

    int fraction_bits_, interval_;
    int since_promotion_ = 0;
    float narrow_ = 0, promoted_ = 0;
};

// Rows of products of E4M3 values, "uniform": U(0, 1) x U(0, 1), all of one sign; "normal": N(0, 1) x N(0,
// 1). `raw` are the products of the numbers before the cast.
struct Products {
    int rows = 0, k = 0;
    std::vector<float> cast;
    std::vector<double> raw;
    std::span<const float> row(int r) const {
        return std::span(cast).subspan(static_cast<std::size_t>(r) * static_cast<std::size_t>(k),
                                       static_cast<std::size_t>(k));
    }
};
Products draw_products(const std::string& data, int rows, int k, std::uint64_t seed);

// As AccumulationError (core/backend/backend.h): ||D - R|| / ||R|| and mean(D - R) / mean |R| over the rows.
struct DotError {
    int k = 0;
    double rel_rms = 0, rel_bias = 0;
};
// The sums of the first k products of every row, for every k of `lengths` (ascending).
std::vector<DotError> accumulator_error(const Products& products, int fraction_bits, int interval,
                                        std::span<const int> lengths);
std::vector<DotError> fp32_error(const Products& products, std::span<const int> lengths);
// The error of casting the operands to E4M3, in a sum without error.
std::vector<DotError> cast_error(const Products& products, std::span<const int> lengths);

}  // namespace fp8lab::adding
