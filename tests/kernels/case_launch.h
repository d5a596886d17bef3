// A case of the table in device memory: random values, its launches, and what they leave behind.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/formats/codec.h"
#include "core/scaling/quantizer.h"
#include "kernels/bench/cases.h"
#include "kernels/device/device.h"
#include "kernels/scaling/scale_buffers.h"

namespace fp8lab::cuda::test {

using Values = std::vector<float>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline std::size_t size_of(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}
inline void check_sums(const CastSums& sums, const CastStats& stats) {
    CHECK(sums.signal == doctest::Approx(stats.signal).epsilon(1e-12));
    CHECK(sums.noise == doctest::Approx(stats.noise).epsilon(1e-12));
    CHECK(sums.mass.l1 == doctest::Approx(stats.mass.l1).epsilon(1e-12));
    CHECK(sums.mass.lost_l1 == doctest::Approx(stats.mass.lost_l1).epsilon(1e-12));
    CHECK(sums.mass.lost_energy == doctest::Approx(stats.mass.lost_energy).epsilon(1e-12));
}
constexpr int up16(int n) { return (n + 15) / 16 * 16; }
constexpr Shape padded(int rows, int cols) { return {rows, cols, up16(rows), up16(cols)}; }

inline const FormatInfo& format_of(Element element) {
    return find_format(element == Element::e4m3 ? "e4m3" : element == Element::e5m2 ? "e5m2" : "bf16");
}
inline float as_bf16(float x) {
    quantize(find_format("bf16"), {&x, 1}, {&x, 1}, {.overflow = Overflow::nonsaturate});
    return x;
}

// Normal values over 12 binades with zeros and values far outside the range of FP8 in between.
inline CaseValues make_values(const KernelCase& kernel, Shape s) {
    std::mt19937 dice(static_cast<std::uint32_t>(s.rows * 1000 + s.cols));
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> binade(-10, 1), rare(0, 63);
    CaseValues values;
    for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
        values.matrices[i].resize(size_of(s.rows, s.cols));
        for (float& x : values.matrices[i]) {
            x = std::ldexp(normal(dice), binade(dice));
            const int special = rare(dice);
            if (special == 0) x = 0;
            if (special == 1) x *= 0x1p12F;
            if (special == 2) x *= 0x1p-14F;
            if (i == 3) x = std::abs(x);  // a second moment
            if (kernel.inputs[i] == Element::bf16) x = as_bf16(x);
        }
    }
    values.bias.resize(static_cast<std::size_t>(s.cols));
    for (float& b : values.bias) b = normal(dice);
    return values;
}

// (rows, cols) to (padded_rows, padded_cols), `filler` in the padding.
template <class T>
std::vector<T> pad(const std::vector<T>& values, Shape s, T filler) {
    std::vector<T> out(size_of(s.padded_rows, s.padded_cols), filler);
    for (int r = 0; r < s.rows; ++r)
        std::copy_n(values.begin() + r * s.cols, s.cols, out.begin() + r * s.padded_cols);
    return out;
}
template <class T>
std::vector<T> unpad(const std::vector<T>& values, Shape s) {
    std::vector<T> out;
    for (int r = 0; r < s.rows; ++r)
        out.insert(out.end(), values.begin() + r * s.padded_cols,
                   values.begin() + r * s.padded_cols + s.cols);
    return out;
}

// The memory of one launch. Padding of matrices that GEMMs write is NaN here: casts must not look at it.
// Parameters have zeros there, as in training.
class Launch {
  public:
    Launch(const KernelCase& kernel, const CaseValues& values, Shape s, float scale, bool with_stats,
           ScaleControls controls = {}, bool with_rows = true)
        : kernel_(kernel), s_(s), with_rows_(with_rows), rows_(payload_bytes()), columns_(payload_bytes()) {
        for (std::size_t i = 0; i < kernel.inputs.size(); ++i) put(values, i);
        Values bias = values.bias;
        bias.resize(static_cast<std::size_t>(s.padded_cols));
        bias_ = Buffer<float>(std::span<const float>(bias));
        const std::vector<std::uint8_t> poison(payload_bytes(), 0xA5);
        rows_.upload(poison);
        columns_.upload(poison);
        ScaleState state;
        state.scale = scale;
        if (bytes_of(kernel.payload) == 1)
            state.max_finite = static_cast<float>(max_finite(format_of(kernel.payload)));
        state_.upload({&state, 1});
        controls_.upload({&controls, 1});
        const StepInput input = case_input();
        input_.upload({&input, 1});
        const std::int32_t fine = 1;
        finite_.upload({&fine, 1});
        run(with_stats, 1);
    }

    void run(bool with_stats, int alive) {
        const ArmState arm{kCaseStep, alive};
        arm_.upload({&arm, 1});
        CaseMemory memory{{},           bias_.get(), bias_partials_.get(), loss_partials_.get(),
                          input_.get(), arm_.get(),  finite_.get()};
        for (std::size_t i = 0; i < kCaseInputs; ++i) memory.matrices[i] = inputs_[i].get();
        CastTarget target;
        target.element = kernel_.payload;
        if (with_rows_) target.rows = rows_.get();
        if (kernel_.transposed) target.columns = columns_.get();
        target.state = state_.get();
        target.scaled = bytes_of(kernel_.payload) == 1;
        if (with_stats) target.stats_partials = stats_.get();
        target.scaling = kernel_.scaling;
        target.vectors = scales_.vectors(controls_.get());
        cuda::run(kernel_, memory, s_, target, nullptr);
        check(cudaDeviceSynchronize(), "case");
    }

    std::vector<std::uint8_t> rows() const { return rows_.download(); }
    std::vector<std::uint8_t> columns() const { return columns_.download(); }
    const ScaleBuffers& scales() const { return scales_; }
    ScaleState state() const { return state_.download()[0]; }
    std::int32_t finite() const { return finite_.download()[0]; }
    Values parameter(std::size_t i) const {
        Values all(size_of(s_.padded_rows, s_.padded_cols));
        std::vector<std::uint16_t> codes(all.size());
        const bool wide = kernel_.inputs[i] == Element::f32;
        void* const to = wide ? static_cast<void*>(all.data()) : codes.data();
        check(cudaMemcpy(to, inputs_[i].get(), inputs_[i].bytes(), cudaMemcpyDeviceToHost), "parameter");
        if (!wide) decode(find_format("bf16"), std::span<const std::uint16_t>(codes), all);
        return unpad(all, s_);
    }
    Values bias_sums() const {  // over the tiles, in float64
        const Values partials = bias_partials_.download();
        Values sums;
        for (int c = 0; c < s_.cols; ++c) {
            double sum = 0;
            for (int tile = 0; tile < tiles_down(s_); ++tile)
                sum += static_cast<double>(
                    partials[size_of(tile, s_.padded_cols) + static_cast<std::size_t>(c)]);
            sums.push_back(static_cast<float>(sum));
        }
        return sums;
    }
    double loss_sum() const {
        double sum = 0;
        for (const double part : loss_partials_.download()) sum += part;
        return sum;
    }
    CastSums stats_sum() const {
        CastSums sum;
        for (const CastSums& part : stats_.download()) {
            sum.signal += part.signal, sum.noise += part.noise;
            sum.mass += part.mass;
        }
        return sum;
    }

  private:
    std::size_t payload_bytes() const {
        return size_of(s_.padded_rows, s_.padded_cols) * static_cast<std::size_t>(bytes_of(kernel_.payload));
    }
    void put(const CaseValues& values, std::size_t i) {
        const bool is_batch = static_cast<int>(i) == kernel_.unpadded;
        const bool is_parameter = kernel_.updated_bytes > 0;
        const Values in_memory =
            is_batch ? values.matrices[i] : pad(values.matrices[i], s_, is_parameter ? 0.0F : kNan);
        if (kernel_.inputs[i] == Element::f32) {
            inputs_[i] = Memory(in_memory.size() * sizeof(float));
            check(cudaMemcpy(inputs_[i].get(), in_memory.data(), inputs_[i].bytes(), cudaMemcpyHostToDevice),
                  "put");
            return;
        }
        std::vector<std::uint16_t> codes(in_memory.size());
        encode(find_format("bf16"), in_memory, std::span(codes), {.overflow = Overflow::nonsaturate});
        inputs_[i] = Memory(codes.size() * sizeof(std::uint16_t));
        check(cudaMemcpy(inputs_[i].get(), codes.data(), inputs_[i].bytes(), cudaMemcpyHostToDevice), "put");
    }

    const KernelCase& kernel_;
    Shape s_;
    bool with_rows_;
    std::array<Memory, kCaseInputs> inputs_;
    Buffer<std::uint8_t> rows_, columns_;
    Buffer<float> bias_;
    Buffer<float> bias_partials_{size_of(tiles_down(s_), s_.padded_cols)};
    Buffer<double> loss_partials_{static_cast<std::size_t>(stats_blocks(s_))};
    Buffer<CastSums> stats_{static_cast<std::size_t>(stats_blocks(s_))};
    ScaleBuffers scales_{kernel_.scaling, s_};
    Buffer<ScaleControls> controls_{1};
    Buffer<ScaleState> state_{1};
    Buffer<StepInput> input_{1};
    Buffer<ArmState> arm_{1};
    Buffer<std::int32_t> finite_{1};
};

}  // namespace fp8lab::cuda::test
