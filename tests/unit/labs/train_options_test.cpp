// L8's switches for the options of a recipe against the recipe that its text gives.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/scaling/recipe.h"
#include "labs/train/model_options.h"

using namespace fp8lab;
using namespace fp8lab::train;

namespace {

Params params_of(const std::string& arm_b, const std::string& options = "") {
    Params params;
    params.arm_b = arm_b;
    params.options = options;
    return params;
}

std::set<std::string> offered(const Params& params) {
    std::set<std::string> out;
    for (const OptionSwitch& option : option_switches(params)) out.insert(option.info.name);
    return out;
}

OptionSwitch option_named(const Params& params, const std::string& name) {
    for (const OptionSwitch& option : option_switches(params))
        if (option.info.name == name) return option;
    FAIL("no switch " << name);
    return {};
}

}  // namespace

TEST_CASE("L8 offers a switch for each option that arm B's recipe takes") {
    const std::set<std::string> inputs = {"loss_scale", "m", "v", "fprop_in", "dgrad_in", "wgrad_in"};
    const auto with_inputs = [&](std::set<std::string> more) {
        more.insert(inputs.begin(), inputs.end());
        return more;
    };
    CHECK(offered(params_of("nvfp4")) == with_inputs({"w2d", "rht", "target", "wide"}));
    CHECK(offered(params_of("nvfp4-te")) == with_inputs({"w2d", "rht", "target", "wide"}));
    for (const char* recipe : {"mxfp4", "mxfp8"}) CHECK(offered(params_of(recipe)) == with_inputs({"wide"}));
    CHECK(offered(params_of("delayed")) == with_inputs({"wide", "algo"}));
    CHECK(offered(params_of("bf16")) == inputs);
    CHECK(offered(params_of("current")) == with_inputs({"wide", "amax"}));
    CHECK(offered(params_of("bf16", "loss_scale=256")) == with_inputs({"growth_interval"}));
    CHECK(offered(params_of("bf16", "m=bf16")) == with_inputs({"round_m"}));
    CHECK(offered(params_of("bf16", "m=fp16:v=e4m3")) == with_inputs({"round_m", "round_v", "moment_block"}));
    CHECK(offered(params_of("nvfp4", "w2d=7")).empty());  // not valid: its error says why
}

TEST_CASE("every combination of L8's switches gives the recipe that they say, and reads back") {
    for (const char* base : {"nvfp4", "nvfp4-te"})
        for (const OptionSwitch& first : option_switches(params_of(base)))
            for (const OptionSwitch& second : option_switches(params_of(base))) {
                if (first.info.name == second.info.name) continue;
                for (const Choice& a : first.choices)
                    for (const Choice& b : second.choices) {
                        Params params = params_of(base);
                        params.options = options_with(params, first, a.id);
                        params.options = options_with(params, second, b.id);
                        CAPTURE(base);
                        CAPTURE(params.options);
                        CHECK(chosen_option(params, first) == a.id);
                        CHECK(chosen_option(params, second) == b.id);
                        const Recipe recipe = arms_of(params)[1];
                        const auto value = [&](const std::string& key) {
                            return first.info.name == key ? a.id
                                   : second.info.name == key
                                       ? b.id
                                       : chosen_option(params_of(base), option_named(params, key));
                        };
                        CHECK(recipe.square_weights == (value("w2d") == "1"));
                        CHECK(recipe.rht == (value("rht") != "0"));
                        CHECK(recipe.rht_bf16 == (value("rht") == "bf16"));
                        CHECK((recipe.target == Nvfp4Target::four_or_six) == (value("target") == "4or6"));
                        CHECK((recipe.target == Nvfp4Target::four) == (value("target") == "4"));
                        CHECK(recipe.wide.first == value("wide").starts_with("first"));
                        CHECK(recipe.wide.last == value("wide").ends_with("last"));
                        for (const Gemm gemm : {Gemm::fprop, Gemm::dgrad, Gemm::wgrad}) {
                            const GemmInput& input = recipe.inputs[static_cast<std::size_t>(gemm)];
                            const std::string said = value(std::string(to_string(gemm)) + "_in");
                            CHECK(input.given() == (said != "none"));
                            if (input.given())
                                CHECK((input.format ? input.format->name : input.recipe) == said);
                        }
                    }
            }
}

TEST_CASE("a switch of L8 leaves the other options as they were, and no word where the recipe has it so") {
    Params params = params_of("nvfp4", "mxrule=up");
    CHECK(option_switches(params).empty());  // of another recipe
    params = params_of("nvfp4", "scope=linears:wide=2+3");
    const OptionSwitch rht = option_named(params, "rht"), wide = option_named(params, "wide");
    CHECK(chosen_option(params, wide).empty());  // none of its choices
    params.options = options_with(params, rht, "1");
    CHECK(params.options == "scope=linears:wide=2+3:rht=1");
    params.options = options_with(params, wide, "none");
    CHECK(params.options == "scope=linears:rht=1");
    params.options = options_with(params, rht, "0");
    CHECK(params.options == "scope=linears");
    // The row nvfp4-te has both on: off needs a word, on none.
    params = params_of("nvfp4-te");
    CHECK(chosen_option(params, option_named(params, "w2d")) == "1");
    params.options = options_with(params, option_named(params, "w2d"), "0");
    CHECK(params.options == "w2d=0");
    params.options = options_with(params, option_named(params, "w2d"), "1");
    CHECK(params.options.empty());
}

TEST_CASE("L8's switches have the names of Transformer Engine where it has the option") {
    for (const OptionSwitch& option : option_switches(params_of("nvfp4"))) {
        CAPTURE(option.info.name);
        // A flag that turns something off is told in a sentence: beside "on" it would be the opposite.
        CHECK(option.info.te_name.find("disable") == std::string::npos);
        const bool flag = option.info.name == "w2d" || option.info.name == "rht";
        CHECK((option.info.help.find("disable_") != std::string::npos) ==
              (flag || option.info.name == "target"));
        CHECK((option.info.te_name == "4over6") == (option.info.name == "target"));
    }
    const std::string code = transformer_engine_code(parse_recipe("nvfp4"));
    CHECK(code.find("disable_rht=True") != std::string::npos);
    CHECK(code.find("disable_2d_quantization=True") != std::string::npos);
}

TEST_CASE(
    "without a loss scale L8 has no text about its growth, and an average is a choice of the algorithm") {
    Params params = params_of("unscaled", "loss_scale=256:growth_interval=20");
    const OptionSwitch scale = option_named(params, "loss_scale");
    CHECK(chosen_option(params, scale) == "256");
    params.options = options_with(params, scale, "none");
    CHECK(params.options.empty());
    CHECK(arms_of(params)[1].loss_scale == 0);
    for (const char* algo : {"max", "ema0.9", "p99.99"}) {
        Params delayed = params_of("delayed");
        delayed.options = options_with(delayed, option_named(delayed, "algo"), algo);
        CHECK(recipe_text(arms_of(delayed)[1]) ==
              (algo == std::string("max") ? "delayed" : "delayed:algo=" + std::string(algo)));
        delayed.algo = "most_recent";
        if (algo == std::string("max"))
            CHECK(recipe_text(arms_of(delayed)[1]) == "delayed:algo=most_recent");
        else
            CHECK_THROWS_AS(arms_of(delayed), Error);
    }
}

TEST_CASE(
    "a moment of L8 that goes back to FP32 takes its rounding and its scales with it, and nothing else") {
    const auto after = [](const std::string& options, const std::string& key, const std::string& value) {
        const Params params = params_of("bf16", options);
        return options_with(params, option_named(params, key), value);
    };
    const std::string both = "m=e4m3:round_m=stochastic:v=e5m2:round_v=stochastic:moment_block=tensor";
    CHECK(recipe_text(parse_recipe("bf16:" + after(both, "m", "fp32"))) ==
          "bf16:v=e5m2:moment_block=tensor:round_v=stochastic");
    CHECK(recipe_text(parse_recipe("bf16:" + after(both, "v", "bf16"))) ==
          "bf16:m=e4m3:v=bf16:moment_block=tensor:round_m=stochastic:round_v=stochastic");
    CHECK(after("v=e4m3:moment_block=tensor:round_v=stochastic", "v", "bf16") == "v=bf16:round_v=stochastic");
    CHECK(after("v=e4m3:moment_block=tensor:round_v=stochastic", "v", "fp32").empty());
    CHECK(after("loss_scale=256:growth_interval=20:m=bf16", "m", "fp32") ==
          "loss_scale=256:growth_interval=20");
    CHECK(chosen_option(params_of("bf16", "v=e5m2"), option_named(params_of("bf16", "v=e5m2"), "v")) ==
          "e5m2");
    CHECK(chosen_option(params_of("bf16"), option_named(params_of("bf16"), "m")) == "fp32");
}

TEST_CASE(
    "the weights of L8 are kept as the control says in every recipe, or as the options say where it does "
    "not") {
    Params params = params_of("bf16", "master=bf16");
    CHECK(recipe_text(arms_of(params)[1]) == "bf16:master=bf16");
    params.options.clear();
    params.master = "bf16", params.round_update = "stochastic";
    CHECK(recipe_text(arms_of(params)[1]) == "bf16:round_update=stochastic:master=bf16");
    params.arm_b = "mxfp8", params.master = "none";
    CHECK(recipe_text(arms_of(params)[1]) == "mxfp8:round_update=stochastic:master=none");
}
