// The random Hadamard transform on the GPU, and the training that uses it.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "core/base/rng.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/scaling/hadamard.h"
#include "core/trainer/cpu_trainer.h"
#include "kernels/casts/emulate.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/training.h"

using namespace fp8lab;
using namespace fp8lab::test;

TEST_CASE("a rotation on the GPU has core's bits, in place and not, and leaves the padding alone") {
    NEEDS_GPU();
    struct Case {
        int rows, cols, stride;
        Along along;
    };
    for (const Case& c :
         {Case{16, 1, 16, Along::rows}, Case{32, 37, 48, Along::rows}, Case{1008, 1030, 1040, Along::rows},
          Case{1, 16, 16, Along::cols}, Case{37, 32, 48, Along::cols}, Case{1001, 1024, 1040, Along::cols}}) {
        CAPTURE(c.rows);
        CAPTURE(c.cols);
        const auto rows = static_cast<std::size_t>(c.rows), cols = static_cast<std::size_t>(c.cols),
                   stride = static_cast<std::size_t>(c.stride);
        std::vector<float> values(rows * cols), expected(values.size()), padded(rows * stride, 7.0F);
        Rng(3).fill_normal(values);
        values[0] = 0x1p-149F;
        values.back() = 3e38F;
        for (std::size_t i = 0; i < values.size(); ++i) padded[i / cols * stride + i % cols] = values[i];
        rotate(values, expected, rows, cols, c.along, drawn_signs(5));
        std::vector<float> wanted(padded);
        for (std::size_t i = 0; i < values.size(); ++i) wanted[i / cols * stride + i % cols] = expected[i];
        const cuda::Buffer<float> in{std::span(padded)}, out{std::span(padded)};
        for (const bool in_place : {false, true}) {
            float* const to = in_place ? in.get() : out.get();
            cuda::rotate(in.get(), to, c.rows, c.cols, c.stride, c.along, drawn_signs(5), nullptr);
            cuda::check(cudaDeviceSynchronize(), "rotate");
            const std::vector<float> found = (in_place ? in : out).download();
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < found.size(); ++i)
                wrong += std::bit_cast<std::uint32_t>(found[i]) != std::bit_cast<std::uint32_t>(wanted[i]);
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE(
    "options of four bits train on the GPU as on the CPU, 40 samples are padded where they are rotated") {
    NEEDS_GPU();
    for (const std::string name :
         {"nvfp4:w2d=1", "nvfp4:rht=1", "nvfp4-te:rht=bf16", "nvfp4:target=4", "nvfp4:target=4or6",
          "nvfp4-te:target=4or6", "nvfp4-te:wide=first+last", "mxfp4:wide=2", "delayed:wide=last"})
        for (const int batch : {40, 256}) {
            CAPTURE(name);
            CAPTURE(batch);
            TrainSpec spec = reference(name);
            spec.batch = batch;
            const auto cpu = make_cpu_trainer(spec);
            const auto gpu = cuda::make_cuda_trainer(spec, device());
            const Run expected = run(*cpu, 200), found = run(*gpu, 200);
            REQUIRE(found.losses.size() == 200);
            CHECK(found.last.provenance == Provenance::gpu_emulated);
            CHECK(std::abs(found.losses[0] / expected.losses[0] - 1) < 1e-4);
            double cpu_sum = 0, gpu_sum = 0;
            for (std::size_t i = 101; i < 200; ++i) cpu_sum += expected.losses[i], gpu_sum += found.losses[i];
            MESSAGE(name << ", batch " << batch << ": mean of steps 101-200 " << gpu_sum / cpu_sum);
            CHECK(std::abs(gpu_sum / cpu_sum - 1) < 0.05);
        }
}

TEST_CASE("records of dy of layer 1 describe what is cast, rotated and padded, on the GPU as on the CPU") {
    NEEDS_GPU();
    TrainSpec spec = reference("nvfp4-te");
    spec.batch = 40;
    const auto cpu = make_cpu_trainer(spec), gpu = cuda::make_cuda_trainer(spec, device());
    for (Trainer* trainer : {cpu.get(), gpu.get()}) {
        trainer->set(Watch{MlpTensor{TensorClass::dy, 1}});
        trainer->step(1);
    }
    const ArmSnapshot expected = cpu->snapshot().arms[0], found = gpu->snapshot().arms[0];
    const TensorRecord &a = expected.records.at(0).tensors.at(2), &b = found.records.at(0).tensors.at(2);
    CHECK(b.amax == doctest::Approx(static_cast<double>(a.amax)).epsilon(0.01));
    CHECK(std::abs(b.sqnr_db - a.sqnr_db) < 0.5F);
    CHECK(std::abs(b.underflow_pct - a.underflow_pct) < 1.0F);
    REQUIRE(expected.watched);
    REQUIRE(found.watched);
    CHECK(expected.watched->before.n == 48 * 64);
    CHECK(found.watched->before.n == 48 * 64);
    CHECK(found.watched->after.n == 48 * 64);
}
