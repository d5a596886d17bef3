#include "labs/adding/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "labs/seeded.h"

namespace fp8lab::adding {

namespace {

constexpr int kRows = 32, kLongest = 16384;  // dot products and their length
constexpr int kNever = std::numeric_limits<int>::max();

constexpr std::string_view kFirstRecorded = "recorded";

// The recordings, the first by the name that it has in older evidence, then the card at hand.
std::vector<Choice> hardware_choices() {
    std::vector<Choice> out;
    for (const Recording& recording : shipped()->recordings)
        out.push_back(
            {out.empty() ? std::string(kFirstRecorded) : recording.id, short_gpu_name(recording.gpu)});
    if (out.empty()) out.push_back({std::string(kFirstRecorded), "Recorded"});
    out.push_back({"live", "This GPU"});
    return out;
}

std::vector<Choice> method_choices() {
    std::vector<Choice> out;
    for (const Method method : kMethods)
        out.push_back({std::string(id_of(method)), std::string(label_of(method))});
    return out;
}

std::vector<int> powers_of_two(int from, int to) {
    std::vector<int> out;
    for (int n = from; n <= to; n *= 2) out.push_back(n);
    return out;
}

}  // namespace

Outcome Compute::operator()(const Params& params) {
    Outcome out;
    out.params = params;
    if (params.experiment == "sum") {
        out.sums = make_sums(params);
        out.chosen = static_cast<std::size_t>(
            std::ranges::find(out.sums, params.format, [](const Sum& s) { return s.format.name; }) -
            out.sums.begin());
    } else if (params.experiment == "dice") {
        out.dice = make_dice(params);
    } else if (params.experiment == "dot") {
        out.dot = make_dot(params);
    } else {
        out.weight = make_weight(params);
    }
    return out;
}

Dot Compute::make_dot(const Params& params) {
    if (products_.rows == 0 || data_ != params.data || seed_ != params.seed) {
        products_ = draw_products(params.data, kRows, kLongest, static_cast<std::uint64_t>(params.seed));
        data_ = params.data;
        seed_ = params.seed;
    }
    Dot dot;
    std::vector<int> lengths = powers_of_two(64, kLongest);
    if (std::ranges::find(lengths, params.k) == lengths.end()) {
        lengths.push_back(params.k);
        std::ranges::sort(lengths);
    }
    const auto at_k = [&](const std::vector<DotError>& errors) {
        return *std::ranges::find(errors, params.k, &DotError::k);
    };
    dot.narrow = accumulator_error(products_, params.width, kNever, lengths);
    dot.promoted = accumulator_error(products_, params.width, params.interval, lengths);
    dot.fp32 = fp32_error(products_, lengths);
    dot.cast = cast_error(products_, lengths);
    dot.narrow_at_k = at_k(dot.narrow);
    dot.promoted_at_k = at_k(dot.promoted);
    dot.fp32_at_k = at_k(dot.fp32);
    dot.cast_at_k = at_k(dot.cast);
    const std::array one_length = {params.k};
    dot.half_as_often_at_k =
        accumulator_error(products_, params.width, 2 * params.interval, one_length).front();
    for (const int interval : powers_of_two(16, params.k)) {
        dot.sweep.push_back(accumulator_error(products_, params.width, interval, one_length).front());
        dot.sweep.back().k = interval;
    }
    return dot;
}

const LabInfo Adding::kInfo = {"adding",
                               7,
                               "Adding it up",
                               "Rounding and adding",
                               "Sums in few bits lose small addends. When, and what keeps them right?",
                               20,
                               "L3",
                               "",
                               "it is about the order and the width of sums, and no layer is cast"};

Adding::Adding(Backends backends)
    : measured(
          "dot",
          [this]() -> std::optional<bool> {
              const bool known = !measured->lines.empty() || !measured->problem.empty();
              return known || params.hardware == "live" ? std::optional(true) : std::nullopt;
          },
          [backends](bool) { return measured_hardware(backends); }) {}

std::span<const table::Experiment<Adding>> Adding::experiments() {
    static constexpr std::array<table::Experiment<Adding>, 1> kOne = {
        {{.figures = &Adding::figures, .metrics = &Adding::metrics}}};
    return kOne;
}

namespace {

table::Row of(const Params& params, std::string_view experiments, Field field) {
    return {.field = std::move(field),
            .shown = experiments.find(params.experiment) != std::string_view::npos};
}

std::vector<table::Row> rows_of_rounding(Params& params) {
    return {
        of(params, "sum dice weight",
           choice({.name = "format",
                   .label = "Kept in",
                   .help = "The format of the sum or the weight: every result is rounded to it before it is "
                           "used again."},
                  &params.format, sum_formats())),
        of(params, "sum dice weight",
           choice(
               {.name = "rounding",
                .label = "Rounding",
                .help = "Stochastic rounds up with the probability that makes the mean right. Notebook’s "
                        "noise: a widely used FP8 notebook adds noise of up to one unit and rounds to whole "
                        "numbers. Constant noise: half the gap at 1, for every number."},
               &params.rounding, method_choices())),
        of(params, "sum",
           number({.name = "addend",
                   .label = "Added each time",
                   .help = "The number that is added again and again."},
                  &params.addend, 1e-4, 16, true)),
        of(params, "sum",
           integer({.name = "terms", .label = "Terms", .help = "How many times it is added."}, &params.terms,
                   16, 65536, true)),
        of(params, "dice",
           number({.name = "x", .label = "Number", .help = "The number that is rounded."}, &params.x, 0x1p-11,
                  448, true)),
        of(params, "dice",
           integer({.name = "draws",
                    .label = "Draws",
                    .help = "How many times it is rounded. The mean is taken over all draws."},
                   &params.draws, 1, 20000, true)),
    };
}

std::vector<table::Row> rows_of_dot_and_weight(Params& params) {
    return {
        of(params, "dot",
           choice(
               {.name = "data",
                .label = "Products",
                .help = "One sign: factors from U(0, 1), as after a ReLU. Both signs: factors from N(0, 1), "
                        "whose products cancel."},
               &params.data, {{"uniform", "One sign"}, {"normal", "Both signs"}})),
        of(params, "dot",
           integer({.name = "k",
                    .label = "Length K",
                    .help = "The number of products in one dot product: the K dimension of a GEMM."},
                   &params.k, 64, kLongest, true)),
        of(params, "dot",
           integer({.name = "width",
                    .label = "Fraction bits",
                    .unit = "bits",
                    .help = "Fraction bits of the accumulator. 13 is the model of Hopper, FP32 has 23."},
                   &params.width, 3, 23)),
        of(params, "dot",
           integer({.name = "interval",
                    .label = "Promote every",
                    .help = "After this many products the accumulator is added to an FP32 register. "
                            "DeepSeek-V3: 128."},
                   &params.interval, 16, kLongest, true)),
        of(params, "dot",
           choice(
               {.name = "hardware",
                .label = "Measured on",
                .help = "The same products on a GPU: recorded numbers, or those of this machine, which are "
                        "measured when you choose it."},
               &params.hardware, hardware_choices())),
        of(params, "weight",
           number({.name = "start", .label = "Weight", .help = "The weight’s value before the first update."},
                  &params.start, 0x1p-6, 64, true)),
        of(params, "weight",
           number({.name = "update",
                   .label = "Update",
                   .help = "What each step adds to the weight: learning rate times gradient."},
                  &params.update, 1e-5, 1, true)),
        of(params, "weight",
           integer({.name = "updates", .label = "Steps", .help = "How many updates."}, &params.updates, 10,
                   4000, true)),
    };
}

}  // namespace

std::vector<table::Row> Adding::rows(Params& params) {
    return table::join({
        {
            {choice(
                {.name = "experiment",
                 .label = "Experiment",
                 .help =
                     "Sum: a running sum. Number: one number, rounded many times. Dot: a dot product in a "
                     "tensor core. Weight: a weight that takes small updates."},
                &params.experiment,
                {{"sum", "Sum"}, {"dice", "Number"}, {"dot", "Dot"}, {"weight", "Weight"}})},
        },
        rows_of_rounding(params),
        rows_of_dot_and_weight(params),
        {
            {integer({.name = "seed",
                      .label = "Seed",
                      .help = "Another seed gives other random numbers and other products.",
                      .more = true},
                     &params.seed, 0, 9999)},
        },
    });
}

Hardware Adding::hardware() const {
    if (outcome->params.hardware != "live") return recorded_hardware(outcome->params.hardware);
    if (!measured->lines.empty() || !measured->problem.empty()) return *measured;
    Hardware none;
    none.problem = "The GPU is measuring.";
    return none;
}

std::vector<Figure> Adding::figures() const {
    const Params& of = outcome->params;
    std::vector<Figure> out = of.experiment == "sum"    ? sum_figures(*outcome, of)
                              : of.experiment == "dice" ? dice_figures(*outcome, of)
                              : of.experiment == "dot"  ? dot_figures(*outcome, of, hardware())
                                                        : weight_figures(*outcome, of);
    const bool drawn = of.experiment == "dot" || of.rounding != "nearest";
    return drawn ? of_seed(of.seed, std::move(out)) : out;
}

Figure Adding::thumbnail() const {
    const Params standard;
    Outcome small;
    small.sums = make_sums(standard);
    return sum_figures(small, standard).front();
}

Hardware recorded_hardware(std::string_view id) {
    Hardware out;
    const auto all = shipped();
    const Recording* recording = id != kFirstRecorded      ? all->find(id)
                                 : all->recordings.empty() ? nullptr
                                                           : &all->recordings.front();
    if (!recording || recording->accumulation.empty()) {
        out.problem =
            all->problem.empty() ? "This build carries no recording of a GPU's accumulation." : all->problem;
        return out;
    }
    out.lines = recording->accumulation;
    out.where = recording->gpu + ", " + recording->date;
    return out;
}

Hardware measured_hardware(const Backends& backends) {
    Hardware out;
    try {
        Backend& gpu = backends.get("cuda");
        out.lines = gpu.accumulation_errors();
        out.where = gpu.device().name;
        out.provenance = gpu.device().provenance;
    } catch (const Error& error) {
        out.problem = error.what();
    }
    return out;
}

LabEntry entry() { return entry_of<AddingLab>(Adding::kInfo); }

}  // namespace fp8lab::adding
