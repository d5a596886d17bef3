#include "labs/live/micro_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "labs/table/training_rows.h"

namespace fp8lab::live {
namespace {

constexpr int kMost = 256;  // micro-batches that are offered

std::vector<Choice> counts(int most) {
    std::vector<Choice> out;
    for (int count = 1; count <= std::min(most, kMost); count *= 2)
        out.push_back({std::to_string(count), std::to_string(count)});
    return out;
}

int count_of(const MicroBatches& micro) { return std::stoi(micro.count); }

}  // namespace

bool any_delayed(std::initializer_list<std::string_view> recipes) {
    return std::ranges::any_of(recipes, [](std::string_view name) {
        return name != "none" && parse_recipe(std::string(name)).scale == ScaleSource::delayed;
    });
}

void add_micro_batches(MicroBatches& micro, int most, bool delayed, std::vector<table::Row>& out) {
    const table::Adder add{out, true, table::kActsOnReset};
    const bool cut = count_of(micro) > 1;
    add(choice(
        {.name = "accumulate",
         .label = "Micro-batches",
         .help =
             "A step computes the gradients of so many parts of the batch one after the other and updates "
             "the weights once, with their mean."},
        &micro.count, counts(most)));
    add(choice({.name = "accumulate_in",
                .label = "Sums in",
                .help = "The format in which the weight gradients of the micro-batches are added; in 8 bits "
                        "with one scale for each weight."},
               &micro.sums_in, {{"fp32", "FP32"}, {"bf16", "BF16"}, {"e4m3", "E4M3"}, {"e5m2", "E5M2"}}))
        .shown = cut;
    add(choice({.name = "weight_cache",
                .label = "FP8 weights are cast",
                .te_name = "is_first_microbatch",
                .help = "Once a step, in the first micro-batch; in each micro-batch; or in the first step "
                        "only, which is the fault of a program that never sets is_first_microbatch again."},
               &micro.weight_cache,
               {{"once", "once a step"}, {"each", "each time"}, {"stale", "never again"}}));
    add(choice(
            {.name = "amax_of",
             .label = "Amax of a step",
             .help = "What goes into the history of delayed scaling: the largest amax of the micro-batches, "
                     "that of the last, or each of them, so that the history is that of fewer steps."},
            &micro.amax_of, {{"max", "largest"}, {"last", "last"}, {"each", "each"}}))
        .shown = cut && delayed;
}

void set_micro_batches(TrainOptions& options, const MicroBatches& micro, bool delayed) {
    const bool cut = count_of(micro) > 1;
    options.accumulate = count_of(micro);
    if (cut || micro.weight_cache == "stale") options.weight_cache = micro.weight_cache;
    if (cut) options.accumulate_in = micro.sums_in;
    if (cut && delayed) options.amax_of = micro.amax_of;
}

std::vector<Choice> dividing(const Field& accumulate, int batch) {
    std::vector<Choice> out;
    std::ranges::copy_if(accumulate.choices, std::back_inserter(out), [&](const Choice& choice) {
        return batch % std::stoi(choice.id) == 0 || choice.id == field_text(accumulate);
    });
    return out;
}

std::string sum_words(const ArmTrack& arm, const Accumulation& accumulate) {
    const double error = arm.accumulate_error_pct.value();
    if (std::isnan(error)) return {};
    return fmt::format("The sums of {} micro-batches in {} are {} % off, mean of the steps.",
                       accumulate.micro_batches, find_format(accumulate.format).label,
                       format_number(error, 2, true));
}

}  // namespace fp8lab::live
