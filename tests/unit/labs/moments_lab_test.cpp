// Moments and weights in fewer bits, in the labs that train.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "labs/transformer/model.h"
#include "labs/transformer/model_params.h"
#include "train_lab.h"

using namespace fp8lab;
using namespace fp8lab::train;
using namespace fp8lab::test;

namespace {

double number(const std::vector<Metric>& metrics, std::string_view name) {
    const auto hit = std::ranges::find(metrics, name, &Metric::name);
    return hit == metrics.end() ? std::nan("") : hit->value;
}

std::vector<std::string> shown(transformer::Params& params) {
    std::vector<std::string> out;
    for (const table::Row& row : transformer::rows_of(params))
        for (const char* name : {"m", "v", "moment_block", "round_m", "round_v", "master", "round_update"})
            if (row.field.info.name == name && row.shown) out.emplace_back(name);
    return out;
}

}  // namespace

TEST_CASE("L13 says of moments and weights what its controls say, and nothing of those that have no effect") {
    transformer::Params params;
    CHECK(shown(params) == std::vector<std::string>{"m", "v", "master"});
    params.moments.round_m = params.moments.round_v = params.moments.round_update = "stochastic";
    params.moments.block = "tensor";
    CHECK(transformer::arm_b_text(params) == "delayed");
    params.moments.v = "bf16";
    CHECK(shown(params) == std::vector<std::string>{"m", "v", "round_v", "master"});
    CHECK(transformer::arm_b_text(params) == "delayed:v=bf16:round_v=stochastic");
    params.moments.m = "e5m2", params.moments.master = "bf16";
    CHECK(shown(params).size() == 7);
    CHECK(transformer::arm_b_text(params) ==
          "delayed:round_update=stochastic:master=bf16:m=e5m2:v=bf16:moment_block=tensor:"
          "round_m=stochastic:round_v=stochastic");
    CHECK(transformer::spec_of(params).arms[0].moment_m == nullptr);  // of arm B only
}

TEST_CASE("L8 and L13 count what rounding did to v, and a record of the run keeps it") {
    auto lab = small_lab({"arm_b=bf16", "options=v=fp16", "steps=40"});
    transformer::TransformerLab other(cpu_backend());
    for (const char* field : {"batch=4", "arm_b=bf16", "v=fp16"}) set_field(other.fields(), field);
    lab->advance(40);
    other.advance(3);
    for (const auto& metrics : {lab->metrics(), other.metrics()}) {
        CHECK(number(metrics, "v_zero_b_pct") > 0);
        CHECK(number(metrics, "large_updates_b_ppm") >= 0);
        CHECK(std::isnan(number(metrics, "v_zero_a_pct")));
    }
    auto again = small_lab({"arm_b=bf16", "options=v=fp16", "steps=40"});
    again->replay(lab->record());
    CHECK(number(again->metrics(), "v_zero_b_pct") ==
          doctest::Approx(number(lab->metrics(), "v_zero_b_pct")));
    CHECK(number(again->metrics(), "large_updates_b_ppm") ==
          doctest::Approx(number(lab->metrics(), "large_updates_b_ppm")));
}
