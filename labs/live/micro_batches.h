// Gradient accumulation in labs that train (Accumulation in core/nn/train_spec.h): its settings, their rows, what a run
// counted.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/train_spec.h"
#include "labs/live/history.h"
#include "labs/table/row.h"

namespace fp8lab::live {

// By the names of `fp8lab train`; all act on Reset.
struct MicroBatches {
    std::string count = "1", sums_in = "fp32", weight_cache = "once", amax_of = "max";
    bool operator==(const MicroBatches&) const = default;
};
inline constexpr std::array<std::string_view, 4> kMicroBatchFields = {"accumulate", "accumulate_in",
                                                                      "weight_cache", "amax_of"};

// Whether one of these recipes, by name, has delayed scaling; "none" is no recipe.
bool any_delayed(std::initializer_list<std::string_view> recipes);

// The rows of those fields. most: the largest batch that the lab offers. The format of the sums is shown with two
// micro-batches or more, the amax where a recipe is also `delayed`.
void add_micro_batches(MicroBatches& micro, int most, bool delayed, std::vector<table::Row>& out);
// What is not shown has no effect.
void set_micro_batches(TrainOptions& options, const MicroBatches& micro, bool delayed);
// Of the choices of field "accumulate" those that divide the batch, and the chosen one.
std::vector<Choice> dividing(const Field& accumulate, int batch);

// "The sums of 8 micro-batches in E4M3 are 6.3 % off, mean of the steps."; empty with one, and where it was not measured.
std::string sum_words(const ArmTrack& arm, const Accumulation& accumulate);

}  // namespace fp8lab::live
