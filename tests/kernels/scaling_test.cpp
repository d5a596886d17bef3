// Scales, losses over rows, biases and the ends of a step on the device, against core.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/formats/codec.h"
#include "core/nn/loss.h"
#include "core/nn/optimizer.h"
#include "core/scaling/delayed.h"
#include "kernels/bench/cases.h"
#include "kernels/device/device.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::cuda;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
Buffer<T> on_device(const std::vector<T>& values) {
    return Buffer<T>(std::span<const T>(values));
}
template <class T>
Buffer<T> one(const T& value) {
    return Buffer<T>(std::span<const T>(&value, 1));
}
template <class T>
void set(Buffer<T>& buffer, const T& value) {
    buffer.upload({&value, 1});
}
void done() { check(cudaDeviceSynchronize(), "kernel"); }
bool same_bits(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

std::vector<float> random_values(std::size_t n, std::uint32_t seed) {
    std::mt19937 dice(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& x : values) x = normal(dice);
    return values;
}

// Amaxes as training has them and as it must survive them.
float an_amax(std::mt19937& dice) {
    constexpr float kRare[] = {0, 0, kInf, kNan, 1e-40F, 1e-37F, 3e38F};
    const auto pick = static_cast<std::size_t>(dice() % 40);
    if (pick < std::size(kRare)) return kRare[pick];
    return std::ldexp(1.0F + static_cast<float>(dice() % 1000) / 1000, static_cast<int>(dice() % 30) - 15);
}

UpdatedTensors all_of(int tensors) {
    UpdatedTensors all;
    all.of = all.count = tensors;
    for (int i = 0; i < tensors; ++i) all.tensor[i] = i;
    return all;
}

// The states of a launch whose first step is `step`.
Buffer<ArmState> launch_at(int step) {
    std::vector<ArmState> states;
    for (int i = 0; i < kStepsPerLaunch; ++i) states.push_back({step + i, 1});
    return on_device(states);
}

}  // namespace

TEST_CASE("delayed scales are core's over random amaxes while every slider moves") {
    NEEDS_GPU();
    constexpr int kTensors = 5, kSteps = 600, kInterval = 3;
    constexpr float kLargest[kTensors] = {448, 57344, 448, 57344, 448};
    for (const bool pow2 : {false, true})
        for (const int interval : {1, kInterval}) {
            CAPTURE(pow2);
            CAPTURE(interval);
            std::mt19937 dice(static_cast<std::uint32_t>(interval) + (pow2 ? 100 : 0));
            std::vector<DelayedScale> expected;
            std::vector<ScaleState> states(kTensors);
            for (std::size_t t = 0; t < kTensors; ++t) {
                expected.emplace_back(16, AmaxAlgo::max, 0, interval, kLargest[t], pow2);
                states[t].max_finite = kLargest[t];
                states[t].delayed = 1;
            }
            ScaleControls controls{16, 0, 0, interval, pow2};
            Buffer<ScaleState> device = on_device(states);
            const Buffer<float> history(std::size_t{kTensors} * kHistoryCapacity);
            Buffer<ScaleControls> device_controls = one(controls);
            const Buffer<TensorResult> records(std::size_t{kTensors} * kRecordSlots);
            const Buffer<ArmState> arm(1);
            std::size_t wrong = 0;
            for (int step = 0; step < kSteps; ++step) {
                if (step % 37 == 36) {  // a slider
                    const int was = controls.history;
                    controls.history = 1 + static_cast<int>(dice() % (step % 2 ? 20 : 1500));
                    controls.margin = static_cast<int>(dice() % 5) - 2;
                    controls.most_recent = static_cast<int>(dice() % 2);
                    for (DelayedScale& scale : expected) {
                        scale.set_history(controls.history);
                        scale.set_margin(controls.margin);
                        scale.set_algo(controls.most_recent ? AmaxAlgo::most_recent : AmaxAlgo::max);
                    }
                    truncate_history(device.get(), history.get(), kTensors,
                                     std::min(was, controls.history) - 1, nullptr);
                    set(device_controls, controls);
                }
                states = device.download();
                for (std::size_t t = 0; t < kTensors; ++t) {
                    const float amax = an_amax(dice);
                    states[t].amax_bits = std::bit_cast<std::uint32_t>(amax);
                    states[t].underflow = 5;
                    expected[t].update(amax);
                }
                device.upload(states);
                update_scales(device.get(), history.get(), all_of(kTensors), device_controls.get(),
                              records.get(), arm.get(), nullptr);
                states = device.download();
                for (std::size_t t = 0; t < kTensors; ++t) {
                    wrong += !same_bits(states[t].scale, expected[t].scale());
                    wrong += states[t].scale_age != expected[t].scale_age();
                    wrong += states[t].amax_bits != 0 || states[t].underflow != 0 || states[t].overflow != 0;
                }
            }
            CHECK(wrong == 0);
        }
}

TEST_CASE(
    "update_scales() leaves a record of every tensor in its step's slot, and scales alone that are not "
    "delayed") {
    NEEDS_GPU();
    std::vector<ScaleState> states(2);
    states[0].amax_bits = std::bit_cast<std::uint32_t>(3.0F);
    states[1].amax_bits = std::bit_cast<std::uint32_t>(kInf);
    states[1].scale = states[1].scale_used = 7;
    states[1].underflow = 11;
    states[1].overflow = 12;
    const Buffer<ScaleState> device = on_device(states);
    const Buffer<float> history(2 * kHistoryCapacity);
    const Buffer<ScaleControls> controls = one(ScaleControls{});
    const Buffer<TensorResult> records(2 * kRecordSlots);
    const Buffer<ArmState> arm = one(ArmState{kRecordSlots + 3, 1});
    update_scales(device.get(), history.get(), all_of(2), controls.get(), records.get(), arm.get(), nullptr);
    const std::vector<TensorResult> found = records.download();
    CHECK(std::bit_cast<float>(found[6].amax_bits) == 3);
    CHECK(found[7].scale == 7);
    CHECK(found[7].underflow == 11);
    CHECK(found[7].overflow == 12);
    CHECK(std::isnan(found[7].sums.signal));
    CHECK(std::isnan(found[7].sums.mass.l1));
    CHECK(device.download()[1].scale == 7);
    // Statistics of the step arrive afterwards.
    std::vector<CastSums> partials(1000);
    for (std::size_t i = 0; i < partials.size(); ++i)
        partials[i] = {static_cast<double>(i), 0.5, {2, static_cast<double>(i % 4), 0.25}};
    reduce_stats(on_device(partials).get(), 1000, records.get(), 1, 2, arm.get(), nullptr);
    done();
    const CastSums sums = records.download()[7].sums;
    CHECK(sums.signal == 999 * 500);
    CHECK(sums.noise == 500);
    CHECK(sums.mass.l1 == 2000);
    CHECK(sums.mass.lost_l1 == 1500);
    CHECK(sums.mass.lost_energy == 250);
}

TEST_CASE("update_scales() clears the amaxes of rows and columns of the tensors that it is told") {
    NEEDS_GPU();
    constexpr std::size_t kCount = 1000;  // more than a block of threads has
    const std::vector<std::uint32_t> start(kCount, std::bit_cast<std::uint32_t>(5.0F));
    Buffer<std::uint32_t> first = on_device(start);
    const Buffer<std::uint32_t> second = on_device(start);
    const Buffer<ScaleState> device(3);
    const Buffer<float> history(3 * kHistoryCapacity);
    const Buffer<ScaleControls> controls = one(ScaleControls{});
    const Buffer<TensorResult> records(3 * kRecordSlots);
    const Buffer<ArmState> arm(1);
    UpdatedTensors updated;
    updated.of = 3;
    updated.count = 2;
    updated.tensor[1] = 2;
    updated.amaxes[0] = first.get();
    updated.amaxes[1] = second.get();
    updated.amax_count[0] = updated.amax_count[1] = static_cast<int>(kCount) - 1;
    update_scales(device.get(), history.get(), updated, controls.get(), records.get(), arm.get(), nullptr);
    std::vector<std::uint32_t> cleared(kCount, 0);
    cleared.back() = start.back();
    CHECK(first.download() == cleared);
    CHECK(second.download() == cleared);
    first.upload(start);
    updated.count = 1;
    updated.tensor[0] = 1;
    updated.amaxes[0] = nullptr;
    updated.amax_count[0] = 0;
    update_scales(device.get(), history.get(), updated, controls.get(), records.get(), arm.get(), nullptr);
    done();
    CHECK(first.download() == start);
}

TEST_CASE("current scales are core's for every kind of amax") {
    NEEDS_GPU();
    std::mt19937 dice(4);
    std::size_t wrong = 0;
    for (int i = 0; i < 500; ++i) {
        const float amax = an_amax(dice);
        ScaleState state;
        state.scale = 99;
        state.max_finite = i % 2 ? 448.0F : 57344.0F;
        state.amax_bits = std::bit_cast<std::uint32_t>(amax);
        ScaleControls controls;
        controls.margin = i % 7 - 3;
        controls.pow2 = i % 3 == 0;
        const Buffer<ScaleState> device = one(state);
        scale_from_amax(device.get(), one(controls).get(), nullptr);
        const float expected =
            fp8lab::scale_from_amax(amax, state.max_finite, controls.margin, 1, controls.pow2 != 0);
        wrong += !same_bits(device.download()[0].scale, expected);
    }
    CHECK(wrong == 0);
}

TEST_CASE("amax of a matrix in memory is exact at every length") {
    NEEDS_GPU();
    for (const std::size_t n : {1, 7, 255, 4096, 100003}) {
        CAPTURE(n);
        std::vector<float> values = random_values(n, 3);
        values[n * 2 / 3] = -9.25F;
        const Buffer<std::uint32_t> bits(1);
        const Buffer<float> device = on_device(values);
        cuda::amax(device.get(), Element::f32, static_cast<long long>(n), bits.get(), nullptr);
        CHECK(std::bit_cast<float>(bits.download()[0]) == 9.25F);
        std::vector<std::uint16_t> codes(n);
        encode(find_format("bf16"), values, std::span(codes), {.overflow = Overflow::nonsaturate});
        const Buffer<std::uint32_t> of_bf16(1);
        cuda::amax(on_device(codes).get(), Element::bf16, static_cast<long long>(n), of_bf16.get(), nullptr);
        CHECK(std::bit_cast<float>(of_bf16.download()[0]) == 9.25F);
    }
}

TEST_CASE("softmax, its loss, its gradient and the accuracy are core's") {
    NEEDS_GPU();
    for (const auto& [rows, cols] : {std::pair{1, 2}, {33, 10}, {64, 100}, {17, 333}}) {
        CAPTURE(rows);
        CAPTURE(cols);
        const auto n = static_cast<std::size_t>(rows * cols);
        const Shape s{rows, cols, (rows + 15) / 16 * 16, (cols + 15) / 16 * 16};
        const auto stride = static_cast<std::size_t>(s.padded_cols);
        Matrix<float> y(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)), target = y, dy;
        y.values = random_values(n, 8);
        for (float& x : y.values) x *= 20;
        std::vector<float> bias(stride), h(static_cast<std::size_t>(s.padded_rows) * stride, kNan);
        for (std::size_t r = 0; r < y.rows; ++r) {
            target.row(r)[(r * 7) % y.cols] = 1;
            for (std::size_t c = 0; c < y.cols; ++c) h[r * stride + c] = y.row(r)[c];
        }
        for (std::size_t c = 0; c < y.cols; ++c) bias[c] = static_cast<float>(c % 3);
        for (std::size_t i = 0; i < n; ++i) y.values[i] += bias[i % y.cols];
        const LossValue expected = loss_and_gradient(LossKind::cross_entropy, y, target, dy);

        const Buffer<float> device_h = on_device(h), device_bias = on_device(bias),
                            device_target = on_device(target.values), out(h.size()),
                            bias_partials(static_cast<std::size_t>(tiles_down(s)) * stride);
        Buffer<ArmState> arm = one(ArmState{5, 1});
        const Buffer<float2> row_stats(y.rows);
        const Buffer<double> row_loss(y.rows), partials(static_cast<std::size_t>(stats_blocks(s)));
        const Buffer<std::uint8_t> correct(y.rows);
        const Buffer<StepResult> records(kRecordSlots);
        LossSource source;
        source.h = device_h.get();
        source.h_element = Element::f32;
        source.bias = device_bias.get();
        source.target.base = device_target.get();
        source.target.arm = arm.get();
        source.loss_partials = partials.get();
        source.bias_partials = bias_partials.get();
        softmax_rows(source, s, row_stats.get(), row_loss.get(), correct.get(), nullptr);
        source.row_stats = row_stats.get();
        CastTarget to;
        to.element = Element::f32;
        to.rows = out.get();
        cast_loss_gradient(source, s, to, Pass::cast, nullptr);
        finish_loss(row_loss.get(), rows, rows, correct.get(), rows, records.get(), arm.get(), nullptr);
        done();
        const StepResult record = records.download()[5];
        CHECK(record.loss == doctest::Approx(expected.loss).epsilon(1e-6));
        CHECK(record.correct == std::round(expected.accuracy * rows));
        CHECK(record.step == 5);
        CHECK(arm.download()[0].alive == 1);
        const std::vector<float> found = out.download();
        double worst = 0, padding = 0;
        for (std::size_t r = 0; r < static_cast<std::size_t>(s.padded_rows); ++r)
            for (std::size_t c = 0; c < stride; ++c) {
                const auto value = static_cast<double>(found[r * stride + c]);
                if (r < y.rows && c < y.cols)
                    worst = std::max(worst, std::abs(value - static_cast<double>(dy.row(r)[c])));
                else
                    padding += std::abs(value);
            }
        CHECK(worst < 4e-6 / rows);  // probabilities of at most 1, over the rows
        CHECK(padding == 0);
    }
}

TEST_CASE(
    "the last step of a launch prepares the next launch, the others tell the step behind them to stop") {
    NEEDS_GPU();
    const Buffer<StepResult> records(kRecordSlots);
    const Buffer<ArmState> arms = launch_at(kRecordSlots - 2);
    const auto finish = [&](int step, bool finite, bool last) {
        finish_step(one(std::int32_t{finite}).get(), records.get(), arms.get() + step,
                    last ? arms.get() : nullptr, nullptr);
        done();
    };
    finish(0, true, false);
    finish(1, false, false);
    auto now = arms.download();
    for (int i = 0; i < kStepsPerLaunch; ++i) {
        CHECK(now[static_cast<std::size_t>(i)].step == kRecordSlots - 2 + i);
        CHECK(now[static_cast<std::size_t>(i)].alive == (i != 2));
    }
    finish(2, true, true);
    now = arms.download();
    for (int i = 0; i < kStepsPerLaunch; ++i) {
        CHECK(now[static_cast<std::size_t>(i)].step == kRecordSlots + 1 + i);
        CHECK(now[static_cast<std::size_t>(i)].alive == 0);
    }
    const auto results = records.download();
    CHECK(results[kRecordSlots - 2].alive == 1);
    CHECK(results[kRecordSlots - 1].alive == 0);
    CHECK(results[0].alive == 0);
}

TEST_CASE("a loss that is not finite stops the arm") {
    NEEDS_GPU();
    const Buffer<double> partials = on_device(std::vector<double>{1, kInf, 2});
    const Buffer<StepResult> records(kRecordSlots);
    const Buffer<ArmState> arm = launch_at(2);
    finish_loss(partials.get(), 3, 10, nullptr, 0, records.get(), arm.get(), nullptr);
    finish_step(one(std::int32_t{1}).get(), records.get(), arm.get(), arm.get(), nullptr);
    done();
    CHECK(arm.download()[0].alive == 0);
    CHECK(arm.download()[0].step == 3);
    CHECK(records.download()[2].alive == 0);
    CHECK(std::isinf(records.download()[2].loss));
}

TEST_CASE("weights that are not finite stop the arm at the end of the step") {
    NEEDS_GPU();
    const Buffer<StepResult> records(kRecordSlots);
    const Buffer<ArmState> arm = launch_at(0);
    finish_step(one(std::int32_t{1}).get(), records.get(), arm.get(), arm.get(), nullptr);
    CHECK(arm.download()[0].alive == 1);
    finish_step(one(std::int32_t{0}).get(), records.get(), arm.get(), arm.get(), nullptr);
    CHECK(arm.download()[0].alive == 0);
    CHECK(records.download()[0].alive == 1);
    CHECK(records.download()[1].alive == 0);
}

TEST_CASE("biases of all layers are updated in one launch, bit for bit as on the CPU") {
    NEEDS_GPU();
    for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
        constexpr int kCounts[] = {5, 300}, kTiles[] = {1, 43};
        std::vector<Buffer<float>> kept;
        const auto keep = [&](const std::vector<float>& values) {
            kept.push_back(on_device(values));
            return kept.back().get();
        };
        BiasUpdates updates;
        updates.layers = 2;
        std::vector<std::vector<float>> b, g, partials;
        std::vector<Moments> moments(2);
        for (std::size_t l = 0; l < 2; ++l) {
            const int padded = (kCounts[l] + 15) / 16 * 16;
            const auto n = static_cast<std::size_t>(kCounts[l]);
            const auto seed = static_cast<std::uint32_t>(l) * 10;
            b.push_back(random_values(n, seed + 1));
            moments[l].m = random_values(n, seed + 2);
            moments[l].v = random_values(n, seed + 3);
            for (float& v : moments[l].v) v = std::abs(v);
            partials.push_back(random_values(static_cast<std::size_t>(padded * kTiles[l]), seed + 4));
            g.emplace_back(n);
            for (std::size_t i = 0; i < n; ++i) {
                float sums[kBiasSums] = {};
                for (std::size_t t = 0; t < static_cast<std::size_t>(kTiles[l]); ++t)
                    sums[t % kBiasSums] += partials[l][t * static_cast<std::size_t>(padded) + i];
                for (const float sum : sums) g[l][i] += sum;
            }
            BiasUpdate& u = updates.layer[l];
            u.b = keep(b[l]);
            if (kind == OptimizerKind::adamw) u.m = keep(moments[l].m), u.v = keep(moments[l].v);
            u.db = keep(std::vector<float>(n));
            u.before = keep(std::vector<float>(n));
            u.partials = keep(partials[l]);
            u.tiles = kTiles[l];
            u.count = kCounts[l];
            u.padded = padded;
        }
        const Buffer<std::int32_t> finite = one(std::int32_t{1});
        update_biases(updates, one(case_input()).get(), 1, one(ArmState{kCaseStep, 1}).get(), finite.get(),
                      nullptr);
        done();
        for (std::size_t l = 0; l < 2; ++l) {
            CAPTURE(l);
            const std::vector<float> before = b[l];
            update({kind, kCaseRate, kCaseDecay, kCaseStep}, b[l], g[l], moments[l]);
            const auto at = [&](const float* p) {
                std::vector<float> values(b[l].size());
                check(cudaMemcpy(values.data(), p, values.size() * sizeof(float), cudaMemcpyDeviceToHost),
                      "read");
                return values;
            };
            CHECK(at(updates.layer[l].b) == b[l]);
            CHECK(at(updates.layer[l].db) == g[l]);
            CHECK(at(updates.layer[l].before) == before);
            if (kind == OptimizerKind::sgd) continue;
            CHECK(at(updates.layer[l].m) == moments[l].m);
            CHECK(at(updates.layer[l].v) == moments[l].v);
        }
        CHECK(finite.download()[0] == 1);
    }
}

TEST_CASE("a batch is the entry of its step in the ring, times the poison factor") {
    NEEDS_GPU();
    constexpr int kRows = 20, kCols = 19, kSlots = 3, kStep = 5;
    const Shape s{kRows, kCols, 32, 32};
    const std::vector<float> ring = random_values(std::size_t{kSlots} * kRows * kCols, 6);
    std::vector<StepInput> inputs(4);
    inputs[kStep % 4].poison = 0.5F;
    const Buffer<float> device = on_device(ring), out(32 * 32);
    const Buffer<StepInput> device_inputs = on_device(inputs);
    const Buffer<ArmState> arm = one(ArmState{kStep, 1});
    CastTarget to;
    to.element = Element::f32;
    to.rows = out.get();
    cast_batch({device.get(), kRows * kCols, kSlots, device_inputs.get(), 4, arm.get()}, s, to, Pass::cast,
               nullptr);
    done();
    const std::vector<float> found = out.download();
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < 32; ++r)
        for (std::size_t c = 0; c < 32; ++c) {
            const bool real = r < kRows && c < kCols;
            const std::size_t slot = kStep % kSlots;
            wrong += found[r * 32 + c] != (real ? 0.5F * ring[(slot * kRows + r) * kCols + c] : 0.0F);
        }
    CHECK(wrong == 0);
}
