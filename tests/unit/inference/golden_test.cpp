// The lowered networks against a computation of the same in numpy (golden.json): bit-exact casts of its own, sums of its
// own. Seeds 1 to 3.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/files/files.h"
#include "core/inference/calibration.h"
#include "core/inference/cascade.h"
#include "core/inference/data.h"
#include "core/inference/mixes.h"
#include "core/inference/rescale.h"
#include "tests/json.h"

using namespace fp8lab;

namespace {

constexpr double kDivergence = 0.02;  // relative; sums of another order move single codes
constexpr double kAnswer = 100.0 / 449;

struct Case {
    nlohmann::json golden;
    TrainedMlp network;
    InferenceData data;
    Reference reference;
};
std::vector<Case> cases() {
    const auto all = parsed(read_text(FP8LAB_SOURCE "/tests/unit/inference/golden.json"));
    std::vector<Case> out;
    for (const auto& golden : all.at("seeds")) {
        const std::string seed = std::to_string(golden.at("seed").get<int>());
        TrainedMlp network = read_mlp(FP8LAB_SOURCE "/assets/models/digits-s" + seed + ".safetensors");
        InferenceData data = data_of_task(network);
        Reference reference = reference_of(forward(network, data.test.x), true, data.test.y);
        out.push_back({golden, std::move(network), std::move(data), std::move(reference)});
    }
    return out;
}

Score score(const Case& c, const TrainedMlp& network, const Mix& mix, const StaticScales& scales = {}) {
    return score_of(c.reference, run_lowered(network, c.data.test.x, mix, scales).y);
}
const LowFormat& format(const std::string& id) { return find_low_format(id, "test"); }

}  // namespace

TEST_CASE("every format everywhere has numpy's divergence, accuracy and changed answers") {
    for (const Case& c : cases()) {
        CAPTURE(c.golden.at("seed").get<int>());
        CHECK(accuracy_pct_of(c.reference.answers, c.reference.right) ==
              doctest::Approx(c.golden.at("accuracy_fp32").get<double>()).epsilon(1e-5));
        for (const auto& [id, golden] : c.golden.at("both").items()) {
            CAPTURE(id);
            const Score both = score(c, c.network, uniform_mix(4, format(id)));
            CHECK(both.divergence ==
                  doctest::Approx(golden.at("divergence").get<double>()).epsilon(kDivergence));
            CHECK(std::fabs(both.accuracy_pct - golden.at("accuracy").get<double>()) < 1.5 * kAnswer);
            CHECK(std::abs(both.changed - golden.at("changed").get<int>()) <= 1);
            const Score weights = score(c, c.network, uniform_mix(4, format(id), false));
            CHECK(weights.divergence ==
                  doctest::Approx(c.golden.at("weights").at(id).get<double>()).epsilon(kDivergence));
        }
    }
}

TEST_CASE("sensitivities are numpy's") {
    for (const Case& c : cases())
        for (const auto& [id, golden] : c.golden.at("sensitivity").items()) {
            CAPTURE(id);
            const auto found = sensitivities(c.network, c.data.test.x, c.reference, format(id), true);
            REQUIRE(found.size() == 4);
            for (std::size_t l = 0; l < 4; ++l)
                CHECK(found[l] == doctest::Approx(golden.at(l).get<double>()).epsilon(kDivergence));
        }
}

TEST_CASE("outlier channels and smoothing cost the accuracy that they cost in numpy") {
    for (const Case& c : cases()) {
        const TrainedMlp outliers = with_outliers(c.network, c.data.train_x, 4, 64);
        const TrainedMlp smooth = smoothed(outliers, c.data.train_x, 0.5);
        for (const auto& [id, golden] : c.golden.at("outliers64").items()) {
            CAPTURE(id);
            CHECK(std::fabs(score(c, outliers, uniform_mix(4, format(id))).accuracy_pct -
                            golden.get<double>()) < 1);
            CHECK(std::fabs(score(c, smooth, uniform_mix(4, format(id))).accuracy_pct -
                            c.golden.at("smoothed64").at(id).get<double>()) < 1);
        }
    }
}

TEST_CASE("calibrated scales and a margin give numpy's accuracy on brighter inputs") {
    for (const Case& c : cases()) {
        Matrix<float> bright = c.data.test.x;
        for (float& v : bright.values) v *= 4;
        const Reference reference = reference_of(forward(c.network, bright), true, c.data.test.y);
        const std::vector<float> amaxes = calibrated_amaxes(c.network, c.data.train_x, {4});
        for (const auto& [name, golden] : c.golden.at("calibrated4").items()) {
            CAPTURE(name);
            const std::size_t colon = name.find(':');
            const StaticScales scales{amaxes, std::stoi(name.substr(colon + 1))};
            const Mix mix = uniform_mix(4, format(name.substr(0, colon)));
            const Score found = score_of(reference, run_lowered(c.network, bright, mix, scales).y);
            CHECK(std::fabs(found.accuracy_pct - golden.get<double>()) < 1);
        }
    }
}

TEST_CASE("the cascade repeats the rows that numpy repeats") {
    for (const Case& c : cases()) {
        const auto outputs = [&](const char* id) {
            return run_lowered(c.network, c.data.test.x, uniform_mix(4, format(id))).y;
        };
        const CascadeRun run = cascade_run(outputs("mxfp4"), outputs("mxfp8"));
        for (const auto& golden : c.golden.at("cascade")) {
            const Cascade found = cascade_of(c.reference, run, golden.at("tau").get<double>());
            CHECK(std::fabs(found.repeated_pct - golden.at("repeated").get<double>()) < 1.5 * kAnswer);
            CHECK(std::fabs(found.accuracy_pct - golden.at("accuracy").get<double>()) < 1.5 * kAnswer);
            CHECK(found.cost == doctest::Approx(kLowCost + found.repeated_pct / 100));
        }
    }
}

TEST_CASE("the frontier of all mixes of three formats is numpy's") {
    for (const Case& c : cases()) {
        const std::vector<const LowFormat*> formats = {&format("mxfp6-e2m3"), &format("nvfp4"),
                                                       &format("mxfp4")};
        const AllMixes all = all_mixes(c.network, c.data.test.x, c.reference, formats, true);
        REQUIRE(all.points.size() == 81);
        const auto frontier = frontier_of(all.points);
        const auto& golden = c.golden.at("frontier");
        REQUIRE(frontier.size() == golden.size());
        for (std::size_t i = 0; i < frontier.size(); ++i) {
            const MixPoint& point = all.points[frontier[i]];
            CHECK(point.bits == doctest::Approx(golden[i].at("bits").get<double>()).epsilon(1e-5));
            CHECK(point.divergence ==
                  doctest::Approx(golden[i].at("divergence").get<double>()).epsilon(kDivergence));
            const Mix mix = all.mix(frontier[i]);
            for (std::size_t l = 0; l < 4; ++l)
                CHECK(mix.weights[l]->id == golden[i].at("mix")[l].get<std::string>());
        }
    }
}
