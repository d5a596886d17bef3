// The part "speed" of L17: what it shows is what the shipped recordings have.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/serve/model.h"
#include "labs/set_fields.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::serve;

namespace {

double value_of(const ServeLab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto it = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(it != metrics.end(), name);
    return it->value;
}

}  // namespace

TEST_CASE("both recordings have the next token of 1 to 256 sequences in every format") {
    for (const char* card : {"h100", "h200"})
        for (const ServedCache cache : {ServedCache::bf16, ServedCache::e4m3}) {
            const Speeds speeds = speeds_of({.card = card, .cache = cache});
            REQUIRE(speeds.recording != nullptr);
            for (const ServedWeights weights : kSpeedWeights) {
                double before = 0;
                for (int batch = 1; batch <= kMostSequences; batch *= 2) {
                    CAPTURE(fmt::format("{} {} {} {}", card, to_string(cache), info_of(weights).name, batch));
                    const RecordedInfer* const run = speeds.at(weights, batch);
                    // Inputs in BF16 are for the launch that takes up to 8 sequences.
                    REQUIRE((run != nullptr) == (weights != ServedWeights::weight_only || batch <= 8));
                    if (!run) continue;
                    CHECK(run->median_ms > run->floor_ms());  // nothing is read faster than it is copied
                    CHECK(run->tokens_per_s() > before);
                    CHECK(run->of.d == 4096);
                    CHECK(run->of.context == 2048);
                    before = run->tokens_per_s();
                }
            }
        }
}

TEST_CASE("the metrics of the part speed are those of the recorded run, and NaN where there is none") {
    ServeLab lab;
    const auto set = [&](std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    };
    set({"experiment=speed", "card=h100", "weights=e4m3-weight-only", "batch=8"});
    const Recording& recording = *shipped()->find("h100");
    const auto run = [&](ServedWeights weights, int batch) {
        return *std::ranges::find_if(recording.infer, [&](const RecordedInfer& r) {
            return r.of.formats.weights == weights && r.of.formats.cache == ServedCache::bf16 &&
                   r.of.batch == batch;
        });
    };
    const RecordedInfer own = run(ServedWeights::weight_only, 8), wide = run(ServedWeights::bf16, 8);
    CHECK(value_of(lab, "tokens_per_s") == doctest::Approx(8e3 / own.median_ms));
    CHECK(value_of(lab, "us_per_layer") == doctest::Approx(1e3 * own.median_ms / 4));
    CHECK(value_of(lab, "gain") == doctest::Approx(wide.median_ms / own.median_ms));
    // 218.1 million weights of a byte a layer; 8 sequences of 2048 positions, K and V of 8 heads of 128 in 2 bytes.
    const double weights = 4 * 218103808.0, cache = 4 * 8 * 2048.0 * 2 * 8 * 128 * 2;
    CHECK(value_of(lab, "cache_share_pct") == doctest::Approx(100 * cache / (weights + cache)));
    CHECK(value_of(lab, "over_floor") ==
          doctest::Approx(own.median_ms * own.copy_bytes_per_ms / (weights + cache)));
    CHECK(lab.provenance() == Provenance::recorded);
    CHECK(lab.device() == "NVIDIA H100 80GB HBM3, " + own.date);
    set({"batch=16"});
    CHECK(std::isnan(value_of(lab, "tokens_per_s")));
    CHECK(std::isnan(value_of(lab, "gain")));
    set({"weights=bf16"});
    CHECK(value_of(lab, "gain") == 1);
    CHECK_THROWS_AS(set({"batch=3"}), Error);
    set({"experiment=kv"});
    CHECK(lab.provenance() == Provenance::cpu_emulated);
    CHECK(lab.device().empty());
    CHECK(std::isnan(value_of(lab, "tokens_per_s")));
}

TEST_CASE("the title of the part speed says what the recording has at both ends") {
    const Speeds h200 = speeds_of({});
    CHECK(speed_title(h200).find(fmt::format("{:.1f} times the tokens at batch 1,",
                                             h200.gain(ServedWeights::e4m3_row, 1))) != std::string::npos);
    CHECK(speed_title(h200).find("1.1 times at 256 (91 % of the bytes are cache)") != std::string::npos);
    const Figure figure = speed_figure(speeds_of({.weights = ServedWeights::weight_only, .batch = 4}));
    CHECK(figure.title.find("1.3 times at 8 (24 %") != std::string::npos);
    CHECK(figure.words.size() == 1 + kSpeedWeights.size());
    const Speeds none = speeds_of({.card = "h999"});
    CHECK(speed_title(none) == "No GPU was recorded here");
    CHECK(speed_figure(none).series.empty());
}

TEST_CASE("the numbers of L17's lesson: tokens per second") {
    const std::set<std::string> stated = test::lesson_numbers("serve");
    const auto says = [&](const std::string& text) { CHECK_MESSAGE(stated.contains(text), text); };
    const Speeds wide = speeds_of({}), narrow = speeds_of({.cache = ServedCache::e4m3});
    for (const int batch : {1, 8, 64, 256}) {
        for (const ServedWeights weights : kSpeedWeights)
            if (const RecordedInfer* run = wide.at(weights, batch))
                says(fmt::format("{:.0f}", run->tokens_per_s()));
        says(fmt::format("{:.0f}", narrow.at(ServedWeights::e4m3_row, batch)->tokens_per_s()));
    }
    says(fmt::format("{:.2f}", wide.gain(ServedWeights::e4m3_row, 1)));
    says(fmt::format("{:.2f}", wide.gain(ServedWeights::e4m3_row, 256)));
    says(fmt::format("{:.0f}", cache_share_pct(*wide.at(ServedWeights::e4m3_row, 256))));
    const auto bytes = [](const RecordedInfer& run) { return weight_bytes(run.of) + cache_bytes(run.of); };
    says(fmt::format("{:.2f}",
                     bytes(*wide.at(ServedWeights::bf16, 1)) / bytes(*wide.at(ServedWeights::e4m3_row, 1))));
    const Speeds h100 = speeds_of({.card = "h100"}),
                 h100_narrow = speeds_of({.card = "h100", .cache = ServedCache::e4m3});
    says(fmt::format("{:.2f}", h100.gain(ServedWeights::e4m3_row, 1)));
    says(fmt::format("{:.2f}", h100.at(ServedWeights::bf16, 256)->median_ms /
                                   h100_narrow.at(ServedWeights::e4m3_row, 256)->median_ms));
}
