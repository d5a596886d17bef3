// The parts methods and kv of L17. Oracles: the methods of core/inference applied one by one, without the lab; numbers that
// `fp8lab infer` gave on these networks.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/inference/methods/lowered_mlp.h"
#include "core/inference/methods/lowered_tokens.h"
#include "labs/serve/model.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::serve;

namespace {

struct Made {
    ServeLab lab;
    Made(std::initializer_list<std::string> assignments) { set(assignments); }
    void set(std::initializer_list<std::string> assignments) {
        for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
        lab.update();
    }
    double operator()(std::string_view name) const {
        const auto metrics = lab.metrics();
        const auto it = std::ranges::find(metrics, name, &Metric::name);
        REQUIRE_MESSAGE(it != metrics.end(), name);
        return it->value;
    }
};

ErrorKind refused(std::initializer_list<std::string> assignments, const std::string& word) {
    try {
        Made made(assignments);
    } catch (const Error& error) {
        CHECK_MESSAGE(std::string(error.what()).find(word) != std::string::npos, error.what());
        return error.kind();
    }
    FAIL("not refused");
    return {};
}

const std::string kModels = FP8LAB_SOURCE "/assets/models/";

}  // namespace

TEST_CASE("L17: the digits' networks as infer has them, to nearest and with methods") {
    Made made = {"method=gptq"};
    CHECK(made("divergence") == doctest::Approx(.001436).epsilon(1e-3));
    CHECK(made("nearest_divergence") == doctest::Approx(.01725).epsilon(1e-3));
    CHECK(made("bits") == doctest::Approx(4.507).epsilon(1e-3));
    CHECK((made("changed") == 2 && made("nearest_changed") == 4));
    const std::array errors = {.1263, .1232, .1198, .1232};
    for (std::size_t l = 0; l < errors.size(); ++l) {
        const std::string layer = std::to_string(l + 1);
        CHECK(made("rel_l2_w_" + layer) == doctest::Approx(errors.at(l)).epsilon(1e-3));
        CHECK(made("rel_l2_w_" + layer) > made("nearest_rel_l2_w_" + layer));
        CHECK(made("rel_out_" + layer) < made("nearest_rel_out_" + layer));
    }
    made.set({"network=digits-s2"});
    CHECK(made("divergence") == doctest::Approx(.001904).epsilon(1e-3));
    made.set({"network=digits-s3"});
    CHECK(made("divergence") == doctest::Approx(.002862).epsilon(1e-3));
    made.set({"network=own", "path=" + kModels + "digits-s1.safetensors"});
    CHECK(made("divergence") == doctest::Approx(.001436).epsilon(1e-3));
}

TEST_CASE("L17: rows, damping and the amax reach the method") {
    const TrainedMlp network = read_mlp(kModels + "digits-s1.safetensors");
    const InferenceData data = data_of_task(network);
    const Reference reference = reference_of(forward(network, data.test.x), true, data.test.y);
    const auto divergence = [&](const char* format, bool both, const MethodOptions& options) {
        const Mix mix = uniform_mix(network.layers.size(), find_low_format(format, "test"), both);
        const LoweredMlp lowered = lower_mlp(network, data.train_x, mix, options);
        return divergence_of(reference, run_lowered(network, lowered, data.test.x));
    };
    Made made = {"method=gptq", "rows=64", "damp=0.05", "scheme=mxfp4"};
    CHECK(made("divergence") ==
          divergence("mxfp4", false, {.method = Method::gptq, .damp = .05, .rows = 64}));
    CHECK(made("mxfp4.awq") == divergence("mxfp4", false, {.method = Method::awq, .rows = 64}));
    CHECK(made("e2m1.rotate+gptq") ==
          divergence("e2m1", false, {.method = Method::rotate_gptq, .damp = .05, .rows = 64}));
    made.set({"scheme=nvfp4", "lower=both", "amax=64", "rows=1348", "damp=0.01"});
    CHECK(made("divergence") == divergence("nvfp4", true, {.method = Method::gptq, .amax_factor = 64}));
    // A scheme without a scale per tensor does not see it.
    made.set({"scheme=mxfp4"});
    CHECK(made("divergence") == divergence("mxfp4", true, {.method = Method::gptq}));
    CHECK(made.lab->amax->factors.empty());
}

TEST_CASE("L17: the order of columns reaches GPTQ alone") {
    const TrainedMlp network = read_mlp(kModels + "digits-s1.safetensors");
    const InferenceData data = data_of_task(network);
    const Reference reference = reference_of(forward(network, data.test.x), true, data.test.y);
    const auto divergence = [&](const char* format, Method method) {
        const Mix mix = uniform_mix(network.layers.size(), find_low_format(format, "test"), false);
        const MethodOptions options{.method = method, .order = ColumnOrder::act};
        const LoweredMlp lowered = lower_mlp(network, data.train_x, mix, options);
        return divergence_of(reference, run_lowered(network, lowered, data.test.x));
    };
    const auto why_not = [](ServeLab& lab) {
        const std::vector<table::Row> rows = lab->rows(lab->params);
        return std::ranges::find(rows, "order", [](const table::Row& r) { return r.field.info.name; })
            ->why_not;
    };
    Made made = {"method=gptq"};
    const double given = made("divergence"), awq = made("nvfp4.awq");
    CHECK(why_not(made.lab).empty());
    made.set({"order=act"});
    CHECK(made("divergence") == divergence("nvfp4", Method::gptq));
    CHECK(made("divergence") != given);
    CHECK(made("mxfp4.gptq") == divergence("mxfp4", Method::gptq));
    CHECK(made("int4-g32.rotate+gptq") == divergence("int4-g32", Method::rotate_gptq));
    CHECK(made("nvfp4.awq") == awq);
    CHECK(made.lab->gains->rows[0].gptq == made("divergence"));
    made.set({"method=awq"});
    CHECK(made("divergence") == awq);
    CHECK(why_not(made.lab) == "This method has no order.");
    made.set({"method=gptq", "order=given"});
    CHECK(made("divergence") == given);
    CHECK_THROWS_AS(set_field(ServeLab().fields(), "order=desc"), Error);
}

TEST_CASE("L17: over the tensor amax NVFP4 has a wide floor and a steep side") {
    Made made = {"lower=both", "amax=2"};
    const AmaxSweep& sweep = *made.lab->amax;
    REQUIRE(sweep.factors.size() == 23);
    const auto at = [&](double factor) {
        return sweep.nvfp4.at(
            static_cast<std::size_t>(std::ranges::find(sweep.factors, factor) - sweep.factors.begin()));
    };
    CHECK(at(2) == made("divergence"));
    CHECK(at(.5) > 2 * at(1));
    for (double factor = 1; factor <= 1024; factor *= 2)
        CHECK(at(factor) == doctest::Approx(at(1)).epsilon(.1));
    made.set({"amax=1"});
    CHECK(made.lab->amax->factors.empty());
}

TEST_CASE("L17: SmoothQuant helps on two of three networks") {
    int helps = 0;
    for (const char* seed : {"1", "2", "3"}) {
        Made made = {"lower=both", "method=smooth", std::string("network=digits-s") + seed};
        helps += made("divergence") < made("nearest_divergence");
    }
    CHECK(helps == 2);
}

TEST_CASE("L17: what lowered inputs leave of GPTQ's gain, and schemes without them") {
    Made made = {"method=gptq"};
    const Gains& gains = *made.lab->gains;
    REQUIRE(gains.rows.size() == 2);
    CHECK(gains.rows[0].nearest == made("nearest_divergence"));
    CHECK(gains.rows[0].gptq == made("divergence"));
    CHECK(gains.rows[0].factor() > 4 * gains.rows[1].factor());
    CHECK(gains_title(gains).find("repairs weights, not inputs") != std::string::npos);
    made.set({"lower=both"});
    CHECK(made.lab->gains->rows[1].gptq == made("divergence"));
    made.set({"lower=weights", "scheme=int4-g32"});
    CHECK(made.lab->gains->rows.empty());
}

TEST_CASE("L17: the figure has every scheme by its bits, the chosen one also where it is none of them") {
    Made made = {"method=gptq"};
    CHECK(made.lab->stems->stems.size() == kStems.size());
    CHECK(std::ranges::is_sorted(made.lab->stems->stems, {}, &Stem::bits));
    CHECK(methods_title(*made.lab->stems) ==
          "Six 4-bit schemes differ by a factor of 2.6; GPTQ moves each of them by 5.2 to 15");
    made.set({"scheme=int8-row"});
    CHECK(made.lab->stems->stems.size() == kStems.size() + 1);
    made.set({"lower=both"});
    for (const Stem& stem : made.lab->stems->stems) CHECK(takes_inputs(std::string(stem.scheme->id)));
    CHECK(std::isnan(made("int4-g32.gptq")));
}

TEST_CASE("L17: the home card has the numbers that the program gives") {
    Made made = {};
    const Stems usual = usual_stems();
    REQUIRE(usual.stems.size() == made.lab->stems->stems.size());
    for (const Stem& one : usual.stems)
        for (const Method method : kStemMethods)
            CHECK(
                one.of(method) ==
                doctest::Approx(made(fmt::format("{}.{}", one.scheme->id, to_string(method)))).epsilon(5e-3));
    CHECK_FALSE(ServeLab().thumbnail().series.empty());
}

TEST_CASE("L17: a transformer with a method is LoweredTokens, and its layers have names") {
    Made made = {"network=own", "path=" + kModels + "transformer-s1.safetensors", "method=gptq"};
    const auto model = make_tokens({"own", kModels + "transformer-s1.safetensors"});
    const Reference reference = reference_of(model->forward(), true, {});
    LoweredTokens lowered(model, uniform_mix(model->layers().size(), find_low_format("nvfp4", "test"), false),
                          {.method = Method::gptq, .rows = 1348});
    CHECK(made("divergence") == divergence_of(reference, lowered.run()));
    CHECK(made.lab->chosen->layers.front().size.name == "1.qkv");
    CHECK(made("rel_out_9") < made("nearest_rel_out_9"));
    CHECK(made.lab->chosen->seen == 1348);
    made.set({"rows=100"});
    LoweredTokens fewer(model, uniform_mix(model->layers().size(), find_low_format("nvfp4", "test"), false),
                        {.method = Method::gptq, .rows = 100});
    CHECK(made("divergence") == divergence_of(reference, fewer.run()));
    CHECK(made.lab->chosen->seen == 100);
}

TEST_CASE("L17: the cache of the shipped transformer, over the size of K") {
    Made made = {"experiment=kv"};
    CHECK(made("kv_divergence") == doctest::Approx(.002131).epsilon(2e-3));
    CHECK(made("calibrated_divergence") == doctest::Approx(.001997).epsilon(2e-3));
    CHECK(made("bytes_per_token_layer") == 2048);
    CHECK(made("bytes_per_token_layer.mla") == 576);
    CHECK(made("saturated_pct_k") == 0);
    CHECK(made("first_saturated") == 64);
    CHECK(std::isnan(made("divergence")));  // of another part
    made.set({"k_factor=256"});
    CHECK(made("kv_divergence") == doctest::Approx(.5707).epsilon(2e-3));
    CHECK(made("saturated_pct_k") == doctest::Approx(30.6).epsilon(2e-2));
    const Kv& kv = *made.lab->kv;
    CHECK(kv.rows.size() == cache_schemes().size() - 1);
    CHECK(kv.one.back() == made("kv_divergence"));
    CHECK(kv.calibrated.back() == made("calibrated_divergence"));
    CHECK(kv_title(kv).find("31 % of it saturates") != std::string::npos);
    CHECK(made("largest_k") == doctest::Approx(256 * 9.166).epsilon(1e-3));
    // What follows the size of K is measured at one power of two: the others have the same bits.
    CacheMeter meter(make_tokens({"transformer", {}}));
    for (const char* id : {"tensor", "token-head", "nvfp4", "int8", "int4-g32"})
        CHECK(kv.row(id)->cost.divergence == meter.divergence(find_cache_scheme(id, "test"), 256));
    made.set({"k_factor=3", "cache=mxfp4"});
    CHECK(made("kv_divergence") == meter.divergence(find_cache_scheme("mxfp4", "test"), 3));
    made.set({"cache=int8"});
    CHECK(made("kv_divergence") < 1e-4);
}

TEST_CASE("L17: what cannot be served is refused with a reason") {
    CHECK(refused({"scheme=int4-g32", "lower=both"}, "weights only") == ErrorKind::usage);
    CHECK(refused({"scheme=mxfp4", "method=4or6"}, "nvfp4") == ErrorKind::usage);
    CHECK(refused({"network=own"}, "no file is chosen") == ErrorKind::input);
    CHECK(refused({"network=own", "path=/no/such.safetensors"}, "/no/such") == ErrorKind::input);
    CHECK(refused({"experiment=kv", "model=own", "path=" + kModels + "digits-s1.safetensors"},
                  "neither tokens nor a cache") == ErrorKind::usage);
    const Scratch scratch;
    std::ofstream(scratch / "x.safetensors") << "no tensors";
    CHECK(refused({"network=own", "path=" + (scratch / "x.safetensors")}, "x.safetensors") ==
          ErrorKind::input);
    CHECK_THROWS_AS(set_field(ServeLab().fields(), "truncate=0.5"), Error);
    CHECK_THROWS_AS(set_field(ServeLab().fields(), "rows=8"), Error);
}

TEST_CASE("L17: a method that a network does not take leaves no mark, and says why where it is chosen") {
    const std::string teacher =
        "path=" + kModels + "teacher-s1.safetensors";  // tanh: no divisor can be folded
    Made made = {"network=own", teacher};
    CHECK(std::isnan(made("nvfp4.awq")));
    CHECK(made("nvfp4.gptq") > 0);
    CHECK(refused({"network=own", teacher, "method=awq"}, "relu") == ErrorKind::usage);
}
