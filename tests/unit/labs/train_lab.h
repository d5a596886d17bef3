// L8 on a small batch, its numbers and figures, and snapshots made by hand.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "labs/train/model.h"

namespace fp8lab::test {

using train::TrainLab;

inline std::unique_ptr<TrainLab> small_lab(std::initializer_list<const char*> settings = {}) {
    auto lab = std::make_unique<TrainLab>(cpu_backend());
    const auto fields = lab->fields();
    set_field(fields, "batch=32");
    for (const char* setting : settings) set_field(fields, setting);
    lab->update();
    return lab;
}

inline const Figure& figure_of(const std::vector<Figure>& figures, std::string_view id) {
    for (const Figure& figure : figures) {
        if (figure.id == id) return figure;
    }
    throw std::runtime_error("no figure " + std::string(id));
}

inline double metric(const TrainLab& lab, std::string_view name) {
    for (const Metric& metric : lab.metrics()) {
        if (metric.name == name) return metric.value;
    }
    throw std::runtime_error("no metric " + std::string(name));
}

// Steps [from, to) of one arm with the given losses and one layer whose dy loses `underflow` percent.
inline Snapshot snapshot_of(int from, const std::vector<std::vector<double>>& losses, float underflow = 0,
                            std::optional<float> lost_l1 = {}) {
    Snapshot snapshot;
    for (const auto& arm_losses : losses) {
        ArmSnapshot& arm = snapshot.arms.emplace_back();
        for (std::size_t i = 0; i < arm_losses.size(); ++i) {
            StepRecord& record = arm.records.emplace_back();
            record.step = from + static_cast<int>(i);
            record.loss = arm_losses[i];
            record.tensors.resize(3);
            record.tensors[2].underflow_pct = underflow;
            if (lost_l1) record.tensors[2].lost_l1_pct = *lost_l1;
        }
        snapshot.step = std::max(snapshot.step, from + static_cast<int>(arm_losses.size()));
    }
    return snapshot;
}

// Takes snapshots until `done` or ten seconds.
template <class Done>
void watch(TrainLab& lab, Done done) {
    for (int i = 0; i < 10000 && !done(); ++i) {
        lab.update();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(done());
}

}  // namespace fp8lab::test
