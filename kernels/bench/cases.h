// The fused kernels of a training step as a table for their tests and timings: how each is launched, its
// reference in core, and the bytes that it has to move.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/device/launch.h"

namespace fp8lab::cuda {

constexpr int kCaseInputs = 4;
// The update of the optimiser cases, and its factors as the kernels take them.
constexpr double kCaseRate = 1e-3, kCaseDecay = 0.01;
constexpr int kCaseStep = 6;
StepInput case_input();

// Device memory of a case. matrices[i]: input i, of the type inputs[i]; (padded_rows, padded_cols), or (rows,
// cols) where a batch is read. Everything else serves every case.
struct CaseMemory {
    std::array<void*, kCaseInputs> matrices{};
    const float* bias = nullptr;       // (padded_cols)
    float* bias_partials = nullptr;    // (tiles_down, padded_cols)
    double* loss_partials = nullptr;   // (stats_blocks)
    const StepInput* input = nullptr;  // one
    const ArmState* arm = nullptr;
    std::int32_t* finite = nullptr;
};

// The same on the host: matrices (rows, cols) as FP32 whatever their type in memory, bias (cols).
struct CaseValues {
    std::array<std::vector<float>, kCaseInputs> matrices;
    std::vector<float> bias;
};

// How closely the values before the cast agree with core: `exact` bit for bit; `rounded` within a few ulp of
// FP32 (exp or tanh of another library); `fast` within 2^-10 of the largest value (tanh.approx.f32).
enum class Agreement { exact, rounded, fast };

// The types of the matrices that a case reads, kCaseInputs at most.
struct CaseInputs {
    constexpr CaseInputs(std::initializer_list<Element> types) {
        for (const Element type : types) all[count++] = type;
    }
    constexpr std::size_t size() const { return count; }
    constexpr const Element* begin() const { return all.data(); }
    constexpr const Element* end() const { return all.data() + count; }
    constexpr Element operator[](std::size_t i) const { return all[i]; }
    std::array<Element, kCaseInputs> all{};
    std::size_t count = 0;
};

struct KernelCase {
    std::string_view name;
    CaseInputs inputs;
    Element payload = Element::e4m3;
    int unpadded = -1;  // the input that is a batch
    bool transposed = true;
    bool stores = true;     // false: amax only
    int updated_bytes = 0;  // of the inputs, written back, per element
    Agreement agreement = Agreement::exact;
    ScaleMode scaling = ScaleMode::tensor;
    void (*launch)(const CaseMemory& memory, Shape shape, const CastTarget& target, Pass pass,
                   cudaStream_t stream);
    // The FP32 values (rows, cols) that are cast. What the kernel updates in place is updated in `values`.
    std::vector<float> (*reference)(CaseValues& values, Shape shape);
    bool statistics = false;
};
// All launches of the case, including the scales of rows and columns.
void run(const KernelCase& kernel, const CaseMemory& memory, Shape shape, const CastTarget& target,
         cudaStream_t stream);
double bytes_per_element(const KernelCase& kernel);  // read and written
std::span<const KernelCase> kernel_cases();

}  // namespace fp8lab::cuda
