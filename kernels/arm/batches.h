// The batches and learning rates of a run on their way to the GPU, shared by its arms. Data that never change are
// staged once; the others through rings that are as long as the host may be ahead.
#pragma once

#include <memory>

#include "core/nn/tasks.h"
#include "core/trainer/micro_batches.h"
#include "kernels/arm/arm.h"
#include "kernels/device/device.h"

namespace fp8lab::cuda {

class Batches {
  public:
    // all: of all ranks, where there are several; this one has the part of its rank.
    explicit Batches(const TrainSpec& spec, const TrainSpec* all = nullptr, int rank = 0);

    StepRings rings(bool overlap) const;
    // What `step` needs. Its slot was last read by launches that are done. `poison` multiplies its x.
    void stage(int step, double lr, float poison, cudaStream_t stream);
    // How many rows, or tokens, of all ranks together the accuracy of that step is about; of the newest kInputSlots steps.
    double scored(int step) const { return scored_[static_cast<std::size_t>(step % kInputSlots)]; }
    // Stages held-out batch i in the place of the batch of `step`, which is done with, piece by piece where it has other
    // sequences than a batch; what the last piece lacks is sequences of the first one, not scored. The number of scored
    // tokens is scored(step) then. Every rank has all of it. False: there is no such piece; of piece 0: the task holds out
    // nothing.
    bool stage_held_out(int i, int piece, int step, cudaStream_t stream);
    std::size_t memory_bytes() const {  // on the device
        return (x_.size() + y_.size()) * sizeof(float) + tokens_.size() * sizeof(std::int32_t) +
               inputs_.size() * sizeof(StepInput);
    }
    const Task& task() const { return *task_; }

  private:
    const Batch& draw(int step);  // the part of this rank
    void copy_dense(const DenseBatch& batch, std::size_t slot, cudaStream_t stream);
    // scored: how many targets count, of all ranks.
    void copy_tokens(const TokenBatch& batch, std::size_t scored, std::size_t slot, cudaStream_t stream);
    void stage_input(std::size_t slot, const StepInput& input, cudaStream_t stream);

    const TrainSpec& spec_;
    const int rank_, ranks_;
    std::unique_ptr<Task> task_;
    int data_slots_ = 1;
    Batch batch_;  // of all ranks
    MicroBatch part_;
    Buffer<float> x_, y_;
    Buffer<std::int32_t> tokens_;
    Buffer<StepInput> inputs_;
    std::unique_ptr<Pinned<float>> host_x_, host_y_;
    std::unique_ptr<Pinned<std::int32_t>> host_tokens_;
    Pinned<StepInput> host_inputs_;
    std::vector<double> scored_;
};

}  // namespace fp8lab::cuda
