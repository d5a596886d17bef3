// CUDA graphs, and the counters that a graph clears once.
//
// Kernels of cuBLASLt and cuDNN that hand out tiles at run time count them in the first bytes of their workspace, which a
// memset of four bytes clears right before each. Such a memset and the gaps around it take 4.6 us of a step on its stream, where
// a launch after a kernel takes 0.3 (one H200, CUDA 13.0, 2026-11-25). Where each launch counts in a place of its own, all
// places can be cleared at the beginning of the graph: Graph takes these memsets out and clears the places at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "kernels/device/device.h"

namespace fp8lab::cuda {

// Workspaces of a few bytes for such launches, of one stream. They live as long as the graphs that use them.
class Counters {
  public:
    static constexpr std::size_t kBytes = 256;  // of a place
    Counters() : memory_(kPlaces * kBytes) {}
    // A place for one launch; its address is a multiple of 256. After kPlaces of them they come again. A graph that has got a
    // place twice keeps the memsets there.
    void* next() const;

  private:
    static constexpr std::size_t kPlaces = 4096;
    Memory memory_;
    mutable std::size_t taken_ = 0;
};

// Runs `launch`, which puts a library's launches on `stream`. Where they are captured and the first of them is a memset at the
// beginning of `workspace`, the graph does without it. A kernel on `stream` has cleared the first Counters::kBytes bytes before,
// and nothing has written there since.
void launch_cleared(const void* workspace, cudaStream_t stream, const std::function<void()>& launch);

// Where `main` is captured, what follows on `side` waits for all launches of `main` but the last, and so begins beside that
// one, whose results it must not need. Elsewhere it waits for `before`, an event that was recorded on `main` before the last
// launches.
void begin_beside_last(cudaStream_t side, cudaStream_t main, const Event& before);

// A captured sequence of launches, ready to run again. Its kernels have the priority of the stream that they were captured on.
class Graph {
  public:
    // Captures what `enqueue` puts on the stream (which must be warm: every kernel and plan has run once).
    template <class Enqueue>
    Graph(cudaStream_t stream, Enqueue&& enqueue) {
        begin(stream);
        try {
            enqueue();
        } catch (...) {
            abandon(stream);
            throw;
        }
        end(stream);
    }
    ~Graph();
    Graph(Graph&& other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}
    Graph& operator=(Graph&& other) noexcept {
        std::swap(exec_, other.exec_);
        return *this;
    }
    void launch(cudaStream_t stream) const;

  private:
    static void begin(cudaStream_t stream);
    static void abandon(cudaStream_t stream);  // what was captured so far
    void end(cudaStream_t stream);
    cudaGraphExec_t exec_ = nullptr;
};

}  // namespace fp8lab::cuda
