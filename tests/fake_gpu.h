// A GPU for machines without one: the CPU's trainer, with the costs, the gaps in its statistics and the
// failures that a real one has. For tests of models and views only.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "core/backend/backends.h"
#include "core/base/error.h"

namespace fp8lab::test {

struct FakeGpu {
    int statistics_every = 4;                              // steps; in between they are NaN
    int lost_at = -1;                                      // the step that fails
    int widest = 4096;                                     // layers beyond do not fit
    int made = 0;                                          // how many times the backend was made
    std::string refusal = {};                              // why it cannot be made
    std::function<void(const Preparation&)> prepare = {};  // what a trainer does before it is ready
};

// The first arm's step takes 12 ms, the second's 7.5 ms, the third's 9 ms.
inline ArmCost fake_cost(std::size_t arm) {
    constexpr double kMs[] = {12, 7.5, 9};
    const double ms = kMs[arm];
    return {
        .step_ms = ms,
        .step_q1_ms = 0.99 * ms,
        .step_q3_ms = 1.02 * ms,
        .steps = 64,
        .flop = 6e12,
        .memory_bytes = 4.2e9 - 3e8 * static_cast<double>(arm),
        .parts = {{"GEMM", 0.68 * ms}, {"casts", 0.15 * ms}, {"optimiser", 0.13 * ms}, {"gaps", 0.04 * ms}},
        .graphs = 3,
        .note = {}};
}

class FakeGpuTrainer : public Trainer {
  public:
    FakeGpuTrainer(std::unique_ptr<Trainer> inner, const FakeGpu& gpu)
        : inner_(std::move(inner)), gpu_(gpu) {}
    void step(int n) override {
        if (gpu_.lost_at >= 0 && inner_->steps_done() + n > gpu_.lost_at)
            throw Error(ErrorKind::backend, "step", "the GPU is lost (cudaErrorDeviceLost)");
        inner_->step(n);
    }
    void set(const Command& command) override { inner_->set(command); }
    Snapshot snapshot() override {
        Snapshot snapshot = inner_->snapshot();
        for (std::size_t i = 0; i < snapshot.arms.size(); ++i) {
            ArmSnapshot& arm = snapshot.arms[i];
            const bool emulated = spec().arms[i].granularity == Granularity::block16;
            arm.provenance = emulated ? Provenance::gpu_emulated : Provenance::tensor_core;
            if (emulated) arm.emulated_because = "no such cast";
            if (inner_->steps_done() > 0) arm.cost = fake_cost(i);
            for (StepRecord& record : arm.records)
                if (record.step % gpu_.statistics_every != 0) forget(record);
        }
        return snapshot;
    }
    int steps_done() const override { return inner_->steps_done(); }
    const std::optional<NonFinite>& stopped(int arm) const override { return inner_->stopped(arm); }
    const TrainSpec& spec() const override { return inner_->spec(); }
    void save(const std::filesystem::path& dir) const override { inner_->save(dir); }
    void load(const std::filesystem::path& path) override { inner_->load(path); }

  private:
    static void forget(StepRecord& record) {
        for (TensorRecord& tensor : record.tensors)
            tensor.underflow_pct = tensor.overflow_pct = tensor.sqnr_db = tensor.lost_l1_pct =
                tensor.lost_energy_pct = std::numeric_limits<float>::quiet_NaN();
    }
    std::unique_ptr<Trainer> inner_;
    FakeGpu gpu_;
};

class FakeGpuBackend : public Backend {
  public:
    explicit FakeGpuBackend(const FakeGpu& gpu) : gpu_(gpu) {}
    using Backend::make_trainer;
    DeviceInfo device() const override { return {"Test double, 80 GB", Provenance::tensor_core, {}, 80e9}; }
    // 4.2 GB and 0.3 GB less for each further arm, as fake_cost() has it.
    std::vector<double> allocated_bytes(const TrainSpec& spec) override {
        std::vector<double> out;
        for (std::size_t i = 0; i < spec.arms.size(); ++i) {
            if (gpu_.widest < 4096)
                throw Error(ErrorKind::backend, "GPU memory", "7.2 GB are needed, 1.0 of 80.0 GB are free");
            out.push_back(fake_cost(i).memory_bytes);
        }
        return out;
    }
    std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec, const Preparation& preparation) override {
        for (const int width : spec.layers)
            if (width > gpu_.widest)
                throw Error(ErrorKind::backend, "GPU memory",
                            "the arms need 96.4 GB, 79.1 GB are free; half the batch would fit");
        if (gpu_.prepare) gpu_.prepare(preparation);
        return std::make_unique<FakeGpuTrainer>(cpu_->make_trainer(spec), gpu_);
    }

  private:
    std::unique_ptr<Backend> cpu_ = cpu_backend();
    FakeGpu gpu_;
};

inline Backends fake_backends(std::shared_ptr<FakeGpu> gpu) {
    return {cpu_backend(), [gpu]() -> Result<std::unique_ptr<Backend>> {
                ++gpu->made;
                if (!gpu->refusal.empty()) return Unavailable{gpu->refusal};
                return std::unique_ptr<Backend>(std::make_unique<FakeGpuBackend>(*gpu));
            }};
}
inline Backends fake_backends(FakeGpu gpu = {}) {
    return fake_backends(std::make_shared<FakeGpu>(std::move(gpu)));
}

}  // namespace fp8lab::test
