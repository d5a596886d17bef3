#include "labs/adding/model_dot.h"

#include <algorithm>
#include <cmath>

#include "core/base/rng.h"
#include "core/formats/codec.h"
#include "core/threads/parallel.h"

namespace fp8lab::adding {

namespace {

// Errors of `sums` against `exact`, (rows, lengths) each.
std::vector<DotError> errors(std::span<const int> lengths, const std::vector<double>& sums,
                             const std::vector<double>& exact) {
    std::vector<DotError> out;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        double error = 0, square = 0, bias = 0, size = 0;
        for (std::size_t at = i; at < sums.size(); at += lengths.size()) {
            const double e = sums[at] - exact[at];
            error += e * e;
            square += exact[at] * exact[at];
            bias += e;
            size += std::abs(exact[at]);
        }
        out.push_back({lengths[i], std::sqrt(error / square), bias / size});
    }
    return out;
}

// The value of `make()` after it was given the first lengths[i] products of row r, at [r, i].
template <class Make>
std::vector<double> prefix_sums(const Products& products, std::span<const int> lengths, Make make) {
    std::vector<double> out(static_cast<std::size_t>(products.rows) * lengths.size());
    parallel_for(static_cast<std::size_t>(products.rows), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
            auto sum = make(static_cast<int>(r));
            int from = 0;
            for (std::size_t i = 0; i < lengths.size(); ++i) {
                sum.add(from, lengths[i]);
                out[r * lengths.size() + i] = sum.value();
                from = lengths[i];
            }
        }
    });
    return out;
}

template <class T, class Sum>
struct PlainSum {
    std::span<const T> terms;
    Sum sum = 0;
    void add(int from, int to) {
        for (int i = from; i < to; ++i) sum += static_cast<Sum>(terms[static_cast<std::size_t>(i)]);
    }
    double value() const { return static_cast<double>(sum); }
};

std::vector<double> exact_sums(const Products& products, std::span<const int> lengths) {
    return prefix_sums(products, lengths, [&](int r) { return PlainSum<float, double>{products.row(r)}; });
}

}  // namespace

void Accumulator::add(std::span<const float> products) {
    while (!products.empty()) {
        const auto room = static_cast<std::size_t>(std::min(kGroup, interval_ - since_promotion_));
        const auto group = products.first(std::min(room, products.size()));
        add_group(group);
        products = products.subspan(group.size());
        since_promotion_ += static_cast<int>(group.size());
        if (since_promotion_ < interval_) continue;
        promoted_ += narrow_;
        narrow_ = 0;
        since_promotion_ = 0;
    }
}

void Accumulator::add_group(std::span<const float> products) {
    float largest = std::fabs(narrow_);
    for (const float product : products) largest = std::max(largest, std::fabs(product));
    if (largest == 0) return;
    // In units of the last bit kept every addend is below 2^24 and the sum below 2^30; the conversion to
    // integers cuts off.
    const int unit = std::ilogb(largest) - fraction_bits_;
    const float per_unit = std::ldexp(1.0F, -unit);
    auto sum = static_cast<std::int32_t>(narrow_ * per_unit);
    for (const float product : products) sum += static_cast<std::int32_t>(product * per_unit);
    // Kept below the sum's own leading bit.
    const int excess = sum == 0 ? 0 : std::max(0, std::ilogb(static_cast<double>(sum)) - fraction_bits_);
    narrow_ = std::ldexp(static_cast<float>(sum / (1 << excess)), unit + excess);
}

double Accumulator::value() const { return static_cast<double>(promoted_ + narrow_); }

Products draw_products(const std::string& data, int rows, int k, std::uint64_t seed) {
    Products out;
    out.rows = rows;
    out.k = k;
    const std::size_t n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(k);
    std::vector<float> raw[2], cast[2];
    for (std::size_t operand = 0; operand < 2; ++operand) {
        Rng rng(seed, operand);
        raw[operand].resize(n);
        for (float& x : raw[operand])
            x = data == "uniform" ? static_cast<float>(rng.uniform()) : rng.normal();
        cast[operand].resize(n);
        quantize(find_format("e4m3"), raw[operand], cast[operand]);
    }
    out.cast.resize(n);
    out.raw.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        out.cast[i] = cast[0][i] * cast[1][i];  // exact: 8 bits of significand
        out.raw[i] = static_cast<double>(raw[0][i]) * static_cast<double>(raw[1][i]);
    }
    return out;
}

std::vector<DotError> accumulator_error(const Products& products, int fraction_bits, int interval,
                                        std::span<const int> lengths) {
    struct Narrow {
        std::span<const float> terms;
        Accumulator accumulator;
        void add(int from, int to) {
            accumulator.add(
                terms.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)));
        }
        double value() const { return accumulator.value(); }
    };
    const auto sums = prefix_sums(products, lengths, [&](int r) {
        return Narrow{products.row(r), Accumulator(fraction_bits, interval)};
    });
    return errors(lengths, sums, exact_sums(products, lengths));
}

std::vector<DotError> fp32_error(const Products& products, std::span<const int> lengths) {
    const auto sums =
        prefix_sums(products, lengths, [&](int r) { return PlainSum<float, float>{products.row(r)}; });
    return errors(lengths, sums, exact_sums(products, lengths));
}

std::vector<DotError> cast_error(const Products& products, std::span<const int> lengths) {
    const auto k = static_cast<std::size_t>(products.k);
    const auto before = prefix_sums(products, lengths, [&](int r) {
        return PlainSum<double, double>{std::span(products.raw).subspan(static_cast<std::size_t>(r) * k, k)};
    });
    return errors(lengths, exact_sums(products, lengths), before);
}

}  // namespace fp8lab::adding
