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

struct Use {
    std::string_view field, experiments;
};
// What the experiments read; "experiment" and "seed" belong to all of them.
constexpr std::array kUses = {
    Use{"format", "sum dice weight"},
    Use{"rounding", "sum dice weight"},
    Use{"addend", "sum"},
    Use{"terms", "sum"},
    Use{"x", "dice"},
    Use{"draws", "dice"},
    Use{"data", "dot"},
    Use{"k", "dot"},
    Use{"width", "dot"},
    Use{"interval", "dot"},
    Use{"hardware", "dot"},
    Use{"start", "weight"},
    Use{"update", "weight"},
    Use{"updates", "weight"},
};

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

// The products of the request before are kept. Lives with the job, used by its thread only.
struct Computation {
    Products products = {};  // of data and seed
    std::string data = {};
    int seed = 0;

    Outcome operator()(const Params& params) {
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

    Dot make_dot(const Params& params) {
        if (products.rows == 0 || data != params.data || seed != params.seed) {
            products = draw_products(params.data, kRows, kLongest, static_cast<std::uint64_t>(params.seed));
            data = params.data;
            seed = params.seed;
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
        dot.narrow = accumulator_error(products, params.width, kNever, lengths);
        dot.promoted = accumulator_error(products, params.width, params.interval, lengths);
        dot.fp32 = fp32_error(products, lengths);
        dot.cast = cast_error(products, lengths);
        dot.narrow_at_k = at_k(dot.narrow);
        dot.promoted_at_k = at_k(dot.promoted);
        dot.fp32_at_k = at_k(dot.fp32);
        dot.cast_at_k = at_k(dot.cast);
        const std::array one_length = {params.k};
        dot.half_as_often_at_k =
            accumulator_error(products, params.width, 2 * params.interval, one_length).front();
        for (const int interval : powers_of_two(16, params.k)) {
            dot.sweep.push_back(accumulator_error(products, params.width, interval, one_length).front());
            dot.sweep.back().k = interval;
        }
        return dot;
    }
};

}  // namespace

AddingLab::AddingLab(Backends backends)
    : backends_(std::move(backends)),
      computing_(std::make_unique<Job<Params, Outcome>>(Computation())),
      measuring_(std::make_unique<Job<Backends, Hardware>>(measured_hardware)) {
    update();
}

namespace {
constexpr LabInfo kInfo = {"adding",
                           7,
                           "Adding it up",
                           "Rounding and adding",
                           "Sums in few bits lose small addends. When, and what keeps them right?",
                           20,
                           "L3"};
}  // namespace

const LabInfo& AddingLab::info() const { return kInfo; }

std::vector<Field> AddingLab::fields_of(Params& params) {
    return {
        choice({.name = "experiment",
                .label = "Experiment",
                .help = "Sum: a running sum. Number: one number, rounded many times. Dot: a dot product in a "
                        "tensor core. Weight: a weight that takes small updates."},
               &params.experiment,
               {{"sum", "Sum"}, {"dice", "Number"}, {"dot", "Dot"}, {"weight", "Weight"}}),
        choice({.name = "format",
                .label = "Kept in",
                .help = "The format of the sum or the weight: every result is rounded to it before it is "
                        "used again."},
               &params.format, sum_formats()),
        choice({.name = "rounding",
                .label = "Rounding",
                .help = "Stochastic rounds up with the probability that makes the mean right. Notebook’s "
                        "noise: a widely used FP8 notebook adds noise of up to one unit and rounds to whole "
                        "numbers. Constant noise: half the gap at 1, for every number."},
               &params.rounding, method_choices()),
        number({.name = "addend",
                .label = "Added each time",
                .help = "The number that is added again and again."},
               &params.addend, 1e-4, 16, true),
        integer({.name = "terms", .label = "Terms", .help = "How many times it is added."}, &params.terms, 16,
                65536, true),
        number({.name = "x", .label = "Number", .help = "The number that is rounded."}, &params.x, 0x1p-11,
               448, true),
        integer({.name = "draws",
                 .label = "Draws",
                 .help = "How many times it is rounded. The mean is taken over all draws."},
                &params.draws, 1, 20000, true),
        choice({.name = "data",
                .label = "Products",
                .help = "One sign: factors from U(0, 1), as after a ReLU. Both signs: factors from N(0, 1), "
                        "whose products cancel."},
               &params.data, {{"uniform", "One sign"}, {"normal", "Both signs"}}),
        integer({.name = "k",
                 .label = "Length K",
                 .help = "The number of products in one dot product: the K dimension of a GEMM."},
                &params.k, 64, kLongest, true),
        integer({.name = "width",
                 .label = "Fraction bits",
                 .unit = "bits",
                 .help = "Fraction bits of the accumulator. 13 is the model of Hopper, FP32 has 23."},
                &params.width, 3, 23),
        integer(
            {.name = "interval",
             .label = "Promote every",
             .help =
                 "After this many products the accumulator is added to an FP32 register. DeepSeek-V3: 128."},
            &params.interval, 16, kLongest, true),
        choice({.name = "hardware",
                .label = "Measured on",
                .help = "The same products on a GPU: recorded numbers, or those of this machine, which are "
                        "measured when you choose it."},
               &params.hardware, hardware_choices()),
        number({.name = "start", .label = "Weight", .help = "The weight’s value before the first update."},
               &params.start, 0x1p-6, 64, true),
        number({.name = "update",
                .label = "Update",
                .help = "What each step adds to the weight: learning rate times gradient."},
               &params.update, 1e-5, 1, true),
        integer({.name = "updates", .label = "Steps", .help = "How many updates."}, &params.updates, 10, 4000,
                true),
        integer({.name = "seed",
                 .label = "Seed",
                 .help = "Another seed gives other random numbers and other products.",
                 .more = true},
                &params.seed, 0, 9999),
    };
}

bool AddingLab::applies(std::string_view field) const {
    const auto* const use = std::ranges::find(kUses, field, &Use::field);
    return use == kUses.end() || use->experiments.find(params_.experiment) != std::string_view::npos;
}

void AddingLab::update() {
    if (asked_ != params_) {
        asked_ = params_;
        computing_->request(params_);
    }
    if (auto outcome = computing_->take()) {
        outcome_ = std::move(*outcome);
        add_hardware();
    }
    take_measurement();
}

void AddingLab::add_hardware() {
    if (outcome_.params.experiment != "dot") return;
    Hardware& hardware = outcome_.dot.hardware;
    if (outcome_.params.hardware == "live") {
        if (!measured_) {
            measured_.emplace().problem = "The GPU is measuring.";
            measuring_->request(backends_);
        }
        hardware = *measured_;
    } else {
        hardware = recorded_hardware(outcome_.params.hardware);
    }
}

void AddingLab::take_measurement() {
    auto measured = measuring_->take();
    if (!measured) return;
    measured_ = std::move(*measured);
    if (outcome_.params.hardware == "live") outcome_.dot.hardware = *measured_;
}

std::vector<Figure> AddingLab::figures() const {
    const Params& params = outcome_.params;
    std::vector<Figure> out = params.experiment == "sum"    ? sum_figures(outcome_, params)
                              : params.experiment == "dice" ? dice_figures(outcome_, params)
                              : params.experiment == "dot"  ? dot_figures(outcome_, params)
                                                            : weight_figures(outcome_, params);
    const bool drawn = params.experiment == "dot" || params.rounding != "nearest";
    return drawn ? of_seed(params.seed, std::move(out)) : out;
}

Figure AddingLab::thumbnail() const {
    const Params params;
    Outcome outcome;
    outcome.sums = make_sums(params);
    return sum_figures(outcome, params).front();
}

void AddingLab::reset() { params_ = {}; }

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

LabEntry entry() { return entry_of<AddingLab>(kInfo); }

}  // namespace fp8lab::adding
