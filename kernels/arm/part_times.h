// Where the time of a step goes: an event after every launch, in a graph.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/arm/arm.h"

namespace fp8lab::cuda {

class PartTimes {
  public:
    explicit PartTimes(cudaStream_t stream) : stream_(stream) {}
    // For the capture: begin() is called at its start, marks() is the callback of the launches.
    void begin() { mark(CudaArm::Part::bookkeeping); }
    CudaArm::Mark marks() {
        return [this](CudaArm::Part part) { mark(part); };
    }
    // Once the stream has run the graph: ms of each part, ArmCost::parts without the gaps.
    std::vector<std::pair<std::string, double>> read(bool multiplies_in_update) const;

  private:
    void mark(CudaArm::Part part) {
        events_.emplace_back();
        events_.back().record_in_graph(stream_);
        parts_.push_back(part);
    }
    cudaStream_t stream_;
    std::deque<Event> events_;
    std::vector<CudaArm::Part> parts_;
};

// How long something travels between GPUs while no GEMM runs: a step as it is, with an event before and after each of both.
class NetworkTimes {
  public:
    CudaArm::Watch watch() {
        return [this](CudaArm::Part part, bool begins, cudaStream_t stream) { add(part, begins, stream); };
    }
    struct Times {
        double travels_ms = 0, shown_ms = 0;  // shown: no GEMM runs meanwhile
    };
    Times read() const;  // once the streams have run the graph

  private:
    void add(CudaArm::Part part, bool begins, cudaStream_t stream);
    struct Span {
        CudaArm::Part part;
        Event from, to;
    };
    std::deque<Span> spans_;
};
// Each of the two alone; none: there are no times.
std::optional<NetworkTimes::Times> median(const std::vector<NetworkTimes::Times>& times);

}  // namespace fp8lab::cuda
