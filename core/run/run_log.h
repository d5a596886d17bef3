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
    bool nonfinite = false;            // NaN or Inf among the elements
    std::uint16_t source = 0;          // which log of the hook says it, from 1 on; 0: another kind of log

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
    // Appends them in the form that TensorSeries keeps: LEB128 numbers, a byte or two each.
    void pack(std::vector<std::uint8_t>& into) const;
};

// Two logs of the hook that hold the same tensor and step: they are of two ranks, or of two runs.
struct SameRecord {
    std::int32_t step;
    std::uint16_t first, second;  // TensorPoint::source
};

// One tensor through all steps that were logged.
class TensorSeries {
  public:
    explicit TensorSeries(std::string name = {});

    const std::string& name() const { return name_; }                // "blocks.1.down.x"
    TensorClass tensor_class() const { return class_; }              // by the end of the name
    std::span<const TensorPoint> points() const { return points_; }  // ascending steps, each once
    bool has_counters() const { return !packed_.empty(); }
    bool has_scales() const { return has_scales_; }  // of at least one point
    // Half of the last decimal that was logged (0.00005 in a log of nvidia-dlfw-inspect, which has four): an amax of 0
    // means "below this". 0: all digits were logged, and 0 is 0.
    float resolution() const { return resolution_; }

    // The counters of a point of this series; none where they were not logged. The second form keeps the memory of
    // `into` and returns false where there are none.
    std::optional<BinadeCounters> counters(const TensorPoint& point) const;
    bool counters(const TensorPoint& point, BinadeCounters& into) const;
    // The point of this step, or the last one before it; null where there is none.
    const TensorPoint* at(std::int32_t step) const;

    // For readers: adds what was logged of a step. `packed`: BinadeCounters::pack(), may be empty. If the newest point
    // has this step, what is logged in both is replaced. Steps may come in any order until settle() sorts them.
    void add(const TensorPoint& point, std::span<const std::uint8_t> packed = {});
    void set_resolution(float resolution) { resolution_ = resolution; }
    // Sorts the points by step and joins those of one step: the later one wins. To be called before points() is read.
    void settle();
    // What settle() and add() met: points that came after one of a higher step, values that a later one replaced.
    std::uint64_t unsorted() const { return unsorted_; }
    std::uint64_t twice() const { return twice_; }
    const std::optional<SameRecord>& same_record() const { return same_record_; }

  private:
    void join(TensorPoint& point, const TensorPoint& later);

    std::string name_;
    TensorClass class_;
    std::vector<TensorPoint> points_;
    std::vector<std::uint8_t> packed_;
    float resolution_ = 0;
    bool has_scales_ = false, settled_ = true;
    std::uint64_t unsorted_ = 0, twice_ = 0;
    std::optional<SameRecord> same_record_;
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
