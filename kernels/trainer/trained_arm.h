// What a trainer has of its arms and of the launches that are on their way.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/trainer.h"
#include "kernels/arm/arm.h"
#include "kernels/arm/part_times.h"
#include "kernels/device/graph.h"

namespace fp8lab::cuda {

// One arm with its graphs and what is known of its finished steps.
struct TrainedArm {
    std::unique_ptr<CudaArm> arm;
    std::optional<Graph> many, one, one_with_stats, network_graph;
    std::vector<StepRecord> records;
    std::optional<NonFinite> stopped;
    std::deque<double> step_ms;
    std::vector<std::pair<std::string, double>> parts;
    NetworkTimes network;
    std::vector<NetworkTimes::Times> network_times;
    std::optional<Evaluation> evaluation;  // the newest
    std::optional<TensorView> watched;     // before the evaluation
    int graphs = 0;                        // captured
    void forget_graphs() {
        many.reset();
        one.reset();
        one_with_stats.reset();
        network_graph.reset();
        network = {};
    }
};

// Work that is on its way: the host looks at its records when `done`.
struct InFlight {
    int first = 0, count = 0;
    bool with_stats = false, timed = true;
    std::vector<Event> marks;  // arms + 1: before the first, after each
};

}  // namespace fp8lab::cuda
