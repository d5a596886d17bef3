// The ranges that L16's lesson tells are those that its window shows. Oracle: the trainings themselves, of the ten seeds.
#include <doctest/doctest.h>

#include "core/files/files.h"
#include "labs/clinic/model.h"
#include "tests/all.h"

using namespace fp8lab;
using namespace fp8lab::clinic;

namespace {

constexpr std::size_t kFrom = 100;  // steps: the instruments of the first ones are of the random weights

const std::string& lesson() {
    static const std::string text = read_text(asset("text/" + std::string(Clinic::kInfo.id) + ".md"));
    return text;
}

struct Extent {
    double low = INFINITY, high = -INFINITY;
    void add(double value) {
        if (!std::isnan(value)) low = std::min(low, value), high = std::max(high, value);
    }
};

Extent sqnr_of(const Run& run, std::string_view tensors) {
    Extent out;
    for (std::size_t t = 0; t < run.plan.tensors.size(); ++t)
        if (run.plan.tensors[t].name.starts_with(tensors))
            for (std::size_t s = kFrom; s < run.sqnr_db[t].size(); ++s) out.add(double{run.sqnr_db[t][s]});
    return out;
}

Extent of_layers(const std::vector<std::vector<float>>& series) {
    Extent out;
    for (const auto& layer : series)
        for (std::size_t i = kFrom / kInstrumentSteps; i < layer.size(); ++i) out.add(double{layer[i]});
    return out;
}

// Holds the words of the lesson, and what each seed gives, against the range.
template <class Measure>
void check(Disease disease, std::string_view words, double low, double high, Measure measure) {
    CHECK_MESSAGE(lesson().find(words) != std::string::npos, words);
    for (const std::uint64_t seed : tested_seeds(10)) {
        const Extent shown = measure(patient_of(disease, seed));
        CHECK_MESSAGE((shown.low >= low && shown.high <= high),
                      words << ": " << shown.low << " to " << shown.high << ", seed " << seed);
    }
}

}  // namespace

TEST_CASE("L16: the lesson’s ranges of SQNR, weights that moved and products hold in every step") {
    const auto sqnr = [](std::string_view tensors) {
        return [tensors](const RunSpec& spec) { return sqnr_of(*run_of(spec), tensors); };
    };
    const auto products = [](const RunSpec& spec) { return of_layers(run_of(spec)->product_error_pct); };
    const auto moved = [](const RunSpec& spec) { return of_layers(run_of(spec)->moved_pct); };
    check(Disease::small_gradients, "[SQNR](sqnr) of dy2 0.1 to 3.6 [dB](decibel)", .1, 3.6, sqnr("dy2"));
    check(Disease::no_master, "at most 10 % of the weights move", 0, 10, moved);
    check(Disease::high_rate, "SQNR of x2 and x3 45 to 53 dB", 44.5, 53.5, sqnr("x2"));
    check(Disease::high_rate, "SQNR of x2 and x3 45 to 53 dB", 44.5, 53.5, sqnr("x3"));
    check(Disease::few_bits, "SQNR of x 25 to 27 dB, of w 23 to 29", 24.5, 27.5, sqnr("x"));
    check(Disease::few_bits, "SQNR of x 25 to 27 dB, of w 23 to 29", 22.5, 29.5, sqnr("w"));
    check(Disease::narrow_sum, "products off by 9.8 to 17.5 %", 9.8, 17.5, products);
    check(Disease::healthy, "SQNR of x 30 to 33 dB, of w 28 to 36", 29.5, 33.5, sqnr("x"));
    check(Disease::healthy, "SQNR of x 30 to 33 dB, of w 28 to 36", 27.5, 36.5, sqnr("w"));
    check(Disease::healthy, "products off by 0.1 to 0.2 %", .1, .2, products);
}

TEST_CASE("L16: the lesson’s ranges of losses hold") {
    const auto gap = [](const RunSpec& spec) {
        Extent out;
        out.add(gap_pct(*run_of(spec), *run_of(twin_of(spec))));
        return out;
    };
    const auto twin = [](const RunSpec& spec) {
        Extent out;
        out.add(run_of(twin_of(spec))->tail() / run_of(reference_of(spec))->tail());
        return out;
    };
    const auto plateau = [](const RunSpec& spec) {
        Extent out;
        out.add(plateau_of(*run_of(spec), *run_of(twin_of(spec))).steps);
        return out;
    };
    check(Disease::small_gradients, "73 to 115 % above the twin", 72.5, 115.5, gap);
    check(Disease::no_master, "10 to 14 times the twin’s", 900, 1300, gap);
    check(Disease::long_history, "for 1024 to 1032 steps", 1024, 1032, plateau);
    check(Disease::high_rate, "twin 3.0 to 4.1 times the BF16 reference", 2.95, 4.15, twin);
    check(Disease::few_bits, "9 to 13 % above", 8.5, 13.5, gap);
    check(Disease::narrow_sum, "34 to 47 % above", 33.5, 47.5, gap);
    check(Disease::healthy, "2 to 4 % above", 1.5, 4.5, gap);
}

TEST_CASE("L16: the lesson’s row of a margin that is too large holds, which no case has") {
    CHECK(lesson().find("| [margin](margin) too large (12 [binades](binade)) | 2 to 5 % above |") !=
          std::string::npos);
    for (const std::uint64_t seed : tested_seeds(10)) {
        RunSpec spec = patient_of(Disease::healthy, seed);
        spec.options = {{"margin", "12"}};
        const RunPtr run = run_of(spec);
        const double gap = gap_pct(*run, *run_of(twin_of(spec)));
        CHECK((gap > 1.5 && gap < 5.5));
        CHECK(run->arm().overflow_steps() == 0);
        const live::TensorTrack* x1 = run->arm().find(*run->plan.find("x1"));
        REQUIRE(x1);
        CHECK(x1->underflow_mean_pct() == doctest::Approx(3).epsilon(.17));
        for (std::size_t s = kFrom; s < x1->amax.size(); s += 100)
            CHECK(x1->amax.values()[s] * x1->scale.values()[s] == doctest::Approx(.1).epsilon(.5));
    }
}
