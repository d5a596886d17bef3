// What a run wrote about its tensors, step by step, whichever program wrote it: the hook for PyTorch
// (assets/hooks/fp8lab_hook.py), nvidia-dlfw-inspect, or `train --csv`. read_run.h reads it, replay.h says what a recipe
// does to it, findings.h what is wrong.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/scaling/quantizer.h"

namespace fp8lab {

inline constexpr float kNotLogged = std::numeric_limits<float>::quiet_NaN();

// One tensor in one step. What was not logged is kNotLogged.
struct TensorPoint {
    std::int32_t step = 0;
    float amax = kNotLogged;           // largest magnitude; of the finite values where `counters` are there
    float amin = kNotLogged;           // smallest magnitude that is not 0
    float scale = kNotLogged;          // that the run's own cast used: it multiplies
    float underflow_pct = kNotLogged;  // of the non-zero elements, that the run's own cast made 0
    float overflow_pct = kNotLogged;   // of the elements, that the run's own cast changed by saturation
    std::uint32_t counters = kNone;    // where TensorSeries has them; kNone: not logged

    static constexpr std::uint32_t kNone = 0xFFFFFFFF;
};

// Elements counted by their binade: bins[k] of them have floor(log2 |x|) = top - k. The last of kBinades bins is open
// below. Trailing zeros are dropped.
struct BinadeCounters {
    std::uint64_t n = 0, nan = 0, inf = 0, zero = 0;  // n counts all elements
    int top = 0;                                      // of the amax; no meaning where bins are empty
    std::vector<std::uint64_t> bins;

    static constexpr std::size_t kBinades = 64;
    std::uint64_t nonzero() const;  // the sum of the bins
};

// One tensor through all steps that were logged.
class TensorSeries {
  public:
    explicit TensorSeries(std::string name = {});

    const std::string& name() const { return name_; }    // "blocks.1.down.x"
    TensorClass tensor_class() const { return class_; }  // by the end of the name; tensor_class_of()
    std::span<const TensorPoint> points() const { return points_; }  // ascending steps, each once
    bool has_counters() const { return !counters_.empty(); }
    bool has_scales() const { return has_scales_; }
    // Half of the last decimal that was logged (0.00005 in a log of nvidia-dlfw-inspect, which has four): an amax of 0
    // means "below this". 0: all digits were logged, and 0 is 0.
    float resolution() const { return resolution_; }

    // The counters of a point; none where they were not logged.
    std::optional<BinadeCounters> counters(const TensorPoint& point) const;
    // The point of this step, or the last one before it; null where there is none.
    const TensorPoint* at(int step) const;
    // NaN or Inf among the elements, or an amax that is not finite.
    bool nonfinite(const TensorPoint& point) const;

    // For readers. Adds a point behind all others, whatever its step.
    void add(TensorPoint point, const BinadeCounters* counters = nullptr);
    // Fills what `point` has logged into the newest point if that has its step, else adds it.
    void merge(const TensorPoint& point);
    void set_resolution(float resolution) { resolution_ = resolution; }
    // Sorts the points by step; of several with one step the last one stays. `unsorted`: points that did not stand
    // behind those of lower steps; `twice`: those that a later one replaced.
    struct Order {
        std::uint64_t unsorted = 0, twice = 0;
    };
    Order settle();

  private:
    std::string name_;
    TensorClass class_;
    std::vector<TensorPoint> points_;
    std::vector<std::uint8_t> counters_;  // LEB128 numbers, one point after the other
    float resolution_ = 0;
    bool has_scales_ = false, settled_ = true;
};

// dy: the name ends in "dy", "dy3", or in a part "d"; w: in a part "w" or "w3"; else x.
TensorClass tensor_class_of(std::string_view name);

struct LossPoint {
    std::int32_t step;
    double loss;  // NaN or Inf where the run had it
};

struct RunLog {
    std::vector<TensorSeries> tensors;  // in the order in which they first came
    std::vector<LossPoint> losses;      // ascending steps, each once
    std::string recipe;  // that the run was trained in, as the log says: "bf16"; empty: it does not say
    std::string arm;     // of a CSV with several arms: the one that was read
    std::vector<std::string> arms;   // all of them
    int every = 1;                   // steps from one record to the next, as the log says
    std::string kinds;               // "xwd": which tensors were logged
    std::vector<std::string> notes;  // what is odd about the files, a sentence each, to be said

    std::int32_t first_step() const;  // over tensors and losses; 0 where there is none
    std::int32_t last_step() const;
    std::uint64_t points() const;  // of all tensors
    const TensorSeries* find(std::string_view tensor) const;
};

}  // namespace fp8lab
