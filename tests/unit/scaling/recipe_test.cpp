#include "core/scaling/recipe.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/base/error.h"

using namespace fp8lab;

namespace {

// Not a colour of the interface.
bool is_data(Role role) {
    return role == Role::truth || role == Role::bf16 || role == Role::e4m3 || role == Role::e5m2 ||
           role == Role::block;
}

std::string why_refused(std::string_view text) {
    try {
        parse_recipe(text);
    } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::usage);
        CHECK(e.where() == "--recipe");
        return e.why();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("a row has what menus, figures and the command line need, and no name twice") {
    std::set<std::string_view> names, labels;
    for (const Recipe& r : recipes()) {
        CAPTURE(r.name);
        CHECK(r.base == r.name);
        CHECK(r.name.find_first_of(" :=,") == std::string::npos);  // the grammar of --recipe
        CHECK(names.insert(r.base).second);
        CHECK(labels.insert(r.label).second);
        CHECK_FALSE(r.label.empty());
        CHECK_FALSE(r.short_name.empty());
        CHECK_FALSE(r.summary.empty());
        REQUIRE(r.fwd);
        REQUIRE(r.bwd);
        CHECK(is_data(r.role));
        CHECK(transformer_engine_code(r).find_first_of("{}") == std::string::npos);
    }
}

TEST_CASE("the recipes of the first version are there, with their defaults") {
    for (const char* name : {"fp32", "bf16", "delayed", "current", "rowwise", "block128", "mxfp8",
                             "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4", "nvfp4", "int8", "unscaled"}) {
        const Recipe r = parse_recipe(name);
        CAPTURE(r.name);
        CHECK(r.history == 16);
        CHECK(r.algo == AmaxAlgo::max);
        CHECK(r.margin == 0);
        CHECK(r.interval == 1);
        CHECK(r.pow2 == (r.name == "block128"));
        CHECK(r.mx_rule == MxRule::up);
        CHECK(r.round == Rounding::nearest);
        CHECK(r.round_bwd == (r.name == "nvfp4" ? Rounding::stochastic : Rounding::nearest));
        CHECK(r.round_update == Rounding::nearest);
        CHECK(r.overflow == Overflow::saturate);
        CHECK(r.master == MasterWeights::fp32);
        CHECK(r.out == (r.name == "fp32" ? OutType::fp32 : OutType::bf16));
        CHECK(r.wgrad == OutType::fp32);
        CHECK(r.fast_accum == FastAccum::fprop);
    }
}

TEST_CASE("default formats of forward and backward tensors") {
    const auto formats_of = [](std::string_view name) {
        const Recipe r = parse_recipe(name);
        return std::string(r.fwd->name) + "/" + std::string(r.bwd->name);
    };
    for (const char* hybrid : {"delayed", "current", "rowwise", "unscaled"})
        CHECK(formats_of(hybrid) == "e4m3/e5m2");
    for (const char* e4m3 : {"block128", "mxfp8"}) CHECK(formats_of(e4m3) == "e4m3/e4m3");
    for (const char* own : {"fp32", "bf16", "int8"}) CHECK(formats_of(own) == std::string(own) + "/" + own);
    CHECK(formats_of("mxfp6-e2m3") == "e2m3/e2m3");
    CHECK(formats_of("mxfp6-e3m2") == "e3m2/e3m2");
    CHECK(formats_of("mxfp4") == "e2m1/e2m1");
    CHECK(formats_of("nvfp4") == "e2m1/e2m1");
}

TEST_CASE("recipes and formats have the same colour everywhere") {
    const auto role = [](std::string_view recipe) { return parse_recipe(recipe).role; };
    CHECK(role("bf16") == Role::bf16);
    CHECK(role("fp32") == Role::truth);
    for (const char* one_scale : {"delayed", "current", "rowwise", "unscaled"})
        CHECK(role(one_scale) == find_format("e4m3").role);  // drawn as their forward format
    for (const char* blocks : {"block128", "mxfp8", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4", "nvfp4", "nvfp4-te"})
        CHECK(role(blocks) == Role::block);
    CHECK(find_format("e4m3").role == Role::e4m3);
    CHECK(find_format("e4m3fnuz").role == Role::e4m3);
    CHECK(find_format("e5m2").role == Role::e5m2);
    CHECK(find_format("bf16").role == Role::bf16);
    for (const char* narrow : {"e3m2", "e2m3", "e2m1", "e8m0"})
        CHECK(find_format(narrow).role == Role::block);
}

TEST_CASE("an option of formats stays one after the first was given") {
    CHECK(recipe_text(parse_recipe("current:fwd=bf16:bwd=e4m3")) == "current:fwd=bf16:bwd=e4m3");
    CHECK(why_refused("int8:fwd=e4m3").starts_with("unknown int8 option 'fwd'; valid: margin="));
    CHECK(why_refused("mxfp4:fwd=e4m3").starts_with("unknown mxfp4 option 'fwd'; valid: mxrule="));
}

TEST_CASE("options change what they name and nothing else") {
    const Recipe r = parse_recipe(
        "delayed:history=32:algo=most_recent:margin=-8:interval=5:fwd=e5m2:bwd=bf16:pow2=1:round=stochastic:"
        "round_bwd=stochastic:round_update=stochastic:overflow=nonsaturate:master=none:out=fp32:wgrad=bf16:"
        "fast_accum=all");
    CHECK(r.history == 32);
    CHECK(r.algo == AmaxAlgo::most_recent);
    CHECK(r.margin == -8);
    CHECK(r.interval == 5);
    CHECK(r.fwd->name == "e5m2");
    CHECK(r.bwd->name == "bf16");
    CHECK(r.pow2);
    CHECK(r.round == Rounding::stochastic);
    CHECK(r.round_bwd == Rounding::stochastic);
    CHECK(r.round_update == Rounding::stochastic);
    CHECK(r.overflow == Overflow::nonsaturate);
    CHECK(r.master == MasterWeights::none);
    CHECK(r.out == OutType::fp32);
    CHECK(r.wgrad == OutType::bf16);
    CHECK(r.fast_accum == FastAccum::all);
    CHECK(parse_recipe("mxfp4:mxrule=even").mx_rule == MxRule::even);
    CHECK_FALSE(parse_recipe("block128:pow2=0").pow2);
    for (const char* scaled : {"current", "rowwise", "int8", "block128"})
        CHECK(parse_recipe(std::string(scaled) + ":margin=3").margin == 3);
}

TEST_CASE("a recipe keeps the text it was given as its name") {
    CHECK(parse_recipe("delayed:margin=0").name == "delayed:margin=0");
    const auto arms = parse_recipes("bf16,delayed:history=4");
    REQUIRE(arms.size() == 2);
    CHECK(arms[0].name == "bf16");
    CHECK(arms[1].name == "delayed:history=4");
}

TEST_CASE("defaults hold for arms that name none") {
    const RecipeDefaults defaults{64, 3, AmaxAlgo::most_recent};
    const auto arms = parse_recipes("delayed,delayed:history=4:algo=max:margin=1", defaults);
    CHECK(arms[0].history == 64);
    CHECK(arms[0].margin == 3);
    CHECK(arms[0].algo == AmaxAlgo::most_recent);
    CHECK(arms[1].history == 4);
    CHECK(arms[1].margin == 1);
    CHECK(arms[1].algo == AmaxAlgo::max);
    CHECK_THROWS_WITH_AS(parse_recipe("delayed", {.history = 0}),
                         "--history: '0' is not valid; valid: 1-4096", Error);
    CHECK_THROWS_WITH_AS(parse_recipe("bf16", {.margin = 17}), "--margin: '17' is not valid; valid: -8..16",
                         Error);
}

TEST_CASE("an unknown recipe lists the valid ones") {
    std::string list;
    for (const Recipe& r : recipes()) list.append(list.empty() ? "" : " ").append(r.name);
    CHECK(list.starts_with("fp32 bf16 delayed current "));
    CHECK(why_refused("dleayed") == "unknown recipe 'dleayed'; valid: " + list);
    CHECK(why_refused("") == "unknown recipe ''; valid: " + list);
    CHECK_THROWS_AS(parse_recipes("bf16,,delayed"), Error);
}

TEST_CASE("an unknown option lists the valid ones with their values, without those that would do nothing") {
    CHECK(why_refused("mxfp4:hist=3") ==
          "unknown mxfp4 option 'hist'; valid: mxrule=up|floor|even round=nearest|stochastic "
          "round_bwd=nearest|stochastic round_update=nearest|stochastic scope=linears|attn|head|all "
          "loss_scale=>0 growth_interval=>=0 act=swiglu|smooth|clamp router=fp32|bf16|RECIPE "
          "wide=first|last|NUMBER|GEMM[+...] "
          "overflow=saturate|nonsaturate "
          "master=fp32|bf16|none m=fp32|bf16|fp16|e4m3|e5m2 v=fp32|bf16|fp16|e4m3|e5m2 "
          "moment_block=128|tensor round_m=nearest|stochastic round_v=nearest|stochastic out=bf16|fp32 "
          "wgrad=fp32|bf16 colsrc=original|rowwise fake=0|1 acc=fp32|2-22 fast_accum=fprop|all|none "
          "fprop_in=fp32|bf16|RECIPE dgrad_in=fp32|bf16|RECIPE wgrad_in=fp32|bf16|RECIPE");
    CHECK(why_refused("bf16:history=4").starts_with("unknown bf16 option 'history'; valid: round="));
    for (const char* unscaled : {"fp32", "bf16", "unscaled", "mxfp8", "nvfp4"})
        CHECK(why_refused(std::string(unscaled) + ":margin=1").find("option 'margin'; valid: ") !=
              std::string::npos);
    CHECK(why_refused("delayed:").starts_with("unknown delayed option ''; valid: history=1-4096 algo="));
}

TEST_CASE("a bad value lists the valid ones") {
    CHECK(why_refused("delayed:history=0") == "recipe delayed: '0' is not a value of history; valid: 1-4096");
    for (const char* bad : {"4097", "-1", "1.5", "x", "", " 4", "99999999999"})
        CHECK(why_refused("delayed:history=" + std::string(bad))
                  .ends_with("is not a value of history; valid: 1-4096"));
    CHECK(why_refused("delayed:history") == "recipe delayed: '' is not a value of history; valid: 1-4096");
    CHECK(why_refused("delayed:margin=17").ends_with("is not a value of margin; valid: -8..16"));
    CHECK(why_refused("delayed:margin=-9").ends_with("is not a value of margin; valid: -8..16"));
    CHECK(why_refused("delayed:interval=0").ends_with("is not a value of interval; valid: >=1"));
    CHECK(why_refused("delayed:algo=min")
              .ends_with("is not a value of algo; valid: max|most_recent|ema0..1|p0..100"));
    for (const char* bad :
         {"ema", "ema0", "ema1", "ema0.9x", "emanan", "ema-1", "p", "p0", "p100", "pnan", "p-1", "p1e3"})
        CHECK(why_refused("delayed:algo=" + std::string(bad))
                  .ends_with("is not a value of algo; valid: max|most_recent|ema0..1|p0..100"));
    CHECK(why_refused("current:amax=ema0.9").ends_with("is not a value of amax; valid: max|p0..100"));
    for (const char* bad : {"0", "-1", "inf", "nan", "1e39", ""})
        CHECK(why_refused("bf16:loss_scale=" + std::string(bad))
                  .ends_with("is not a value of loss_scale; valid: >0"));
    CHECK(why_refused("bf16:growth_interval=20") ==
          "recipe bf16: growth_interval has no effect without loss_scale");
    for (const char* bad : {"e2m1", "e8m0", "fp8", "none", ""})
        for (const std::string moment : {"m", "v"})
            CHECK(why_refused("bf16:" + moment + "=" + bad)
                      .ends_with("is not a value of " + moment + "; valid: fp32|bf16|fp16|e4m3|e5m2"));
    CHECK(why_refused("bf16:m=e4m3:moment_block=64")
              .ends_with("'64' is not a value of moment_block; valid: 128|tensor"));
    for (const char* wide : {"bf16:moment_block=tensor", "bf16:m=bf16:v=fp16:moment_block=tensor"})
        CHECK(why_refused(wide) == "recipe bf16: moment_block has no effect without m or v in 8 bits");
    CHECK(why_refused("bf16:v=e4m3:round_m=stochastic") == "recipe bf16: round_m has no effect without m");
    CHECK(why_refused("bf16:m=e4m3:round_v=stochastic") == "recipe bf16: round_v has no effect without v");
    CHECK(why_refused("bf16:master=fp16").ends_with("is not a value of master; valid: fp32|bf16|none"));
    CHECK(why_refused("mxfp8:mxrule=ceil").ends_with("is not a value of mxrule; valid: up|floor|even"));
    CHECK(why_refused("current:round=up").ends_with("is not a value of round; valid: nearest|stochastic"));
    CHECK(why_refused("current:fwd=e8m0").find("e8m0;") == std::string::npos);  // a scale, not an element
    CHECK(why_refused("delayed:history=4:history=8") == "recipe delayed: history is given twice");
}

TEST_CASE("recipe_text is the shortest text that reads back to the same recipe") {
    for (const Recipe& r : recipes()) CHECK(recipe_text(r) == r.name);
    for (const char* text : {"delayed:history=1024:margin=-2",
                             "mxfp8:mxrule=floor:round=stochastic",
                             "block128:pow2=0",
                             "nvfp4:round_bwd=nearest:out=fp32",
                             "int8:margin=-8",
                             "current:fwd=e3m4:bwd=bf16:pow2=1:master=none",
                             "fp32:out=bf16",
                             "bf16:wgrad=bf16",
                             "nvfp4:w2d=1:rht=1:target=4or6:wide=first+last+2+11",
                             "nvfp4-te:rht=0:target=4",
                             "nvfp4-te:rht=bf16",
                             "nvfp4:rht=bf16",
                             "delayed:wide=last",
                             "delayed:history=64:algo=ema0.9",
                             "delayed:algo=p99.99",
                             "current:amax=p99.5",
                             "unscaled:loss_scale=65536:growth_interval=2000",
                             "fp32:loss_scale=0.1",
                             "bf16:master=bf16:m=e4m3:v=e5m2:moment_block=tensor:round_m=stochastic",
                             "bf16:v=bf16:round_v=stochastic",
                             "int8:overflow=nonsaturate:fast_accum=none"})
        CHECK(recipe_text(parse_recipe(text)) == text);
    CHECK(recipe_text(parse_recipe("delayed:history=16:algo=max")) == "delayed");
    CHECK(recipe_text(parse_recipe("bf16:v=fp32:moment_block=128:m=e4m3:round_m=nearest")) == "bf16:m=e4m3");
    CHECK(recipe_text(parse_recipe("nvfp4:wide=11+last+2+first:target=6")) == "nvfp4:wide=first+last+2+11");
    CHECK(recipe_text(parse_recipe("delayed", {.history = 8})) == "delayed:history=8");
    CHECK(recipe_text(parse_recipe("bf16", {.history = 8})) == "bf16");  // has no history
}

TEST_CASE("recipe_text names formats that are those of another library, as a backend's are") {
    for (const std::string_view text :
         {"delayed", "current:fwd=e5m2", "delayed:bwd=e4m3", "mxfp8", "bf16:m=e4m3:v=e5m2"}) {
        Recipe recipe = parse_recipe(text);
        FormatInfo fwd = *recipe.fwd, bwd = *recipe.bwd, m, v;
        recipe.fwd = &fwd, recipe.bwd = &bwd;
        if (recipe.moment_m) recipe.moment_m = &(m = *recipe.moment_m);
        if (recipe.moment_v) recipe.moment_v = &(v = *recipe.moment_v);
        CHECK(recipe_text(recipe) == text);
    }
}

TEST_CASE("Transformer Engine's call for a recipe") {
    const auto code = [](std::string_view text) { return transformer_engine_code(parse_recipe(text)); };
    CHECK(code("delayed:history=1024:margin=1") ==
          "DelayedScaling(margin=1, fp8_format=Format.HYBRID, amax_history_len=1024, "
          "amax_compute_algo=\"max\")");
    CHECK(code("delayed:bwd=e4m3:algo=most_recent") ==
          "DelayedScaling(margin=0, fp8_format=Format.E4M3, amax_history_len=16, "
          "amax_compute_algo=\"most_recent\")");
    CHECK(code("current") == "Float8CurrentScaling(fp8_format=Format.HYBRID)");
    CHECK(code("current:pow2=1") ==
          "Float8CurrentScaling(fp8_format=Format.HYBRID)  # with "
          "NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES=1 set before the import");
    CHECK(code("current:margin=1") ==
          "Float8CurrentScaling(fp8_format=Format.HYBRID)  # Transformer Engine cannot express margin=1");
    CHECK(code("block128") == "Float8BlockScaling(fp8_format=Format.E4M3)");
    CHECK(code("block128:pow2=0") ==
          "Float8BlockScaling(fp8_format=Format.E4M3)  # with NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1 "
          "set before the import");
    CHECK(code("block128:pow2=0:margin=1") ==
          "Float8BlockScaling(fp8_format=Format.E4M3)  # with NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1 "
          "set before the import  # Transformer Engine cannot express margin=1");
    CHECK(code("nvfp4:round_bwd=nearest") ==
          "NVFP4BlockScaling(disable_rht=True, disable_2d_quantization=True, "
          "disable_stochastic_rounding=True)");
    CHECK(code("mxfp8") == "MXFP8BlockScaling(fp8_format=Format.E4M3)");
    CHECK(code("nvfp4") == "NVFP4BlockScaling(disable_rht=True, disable_2d_quantization=True)");
    CHECK(code("nvfp4-te") == "NVFP4BlockScaling()");
    CHECK(code("nvfp4:w2d=1:rht=1") == "NVFP4BlockScaling()");
    CHECK(code("nvfp4-te:rht=0") == "NVFP4BlockScaling(disable_rht=True)");
    CHECK(code("nvfp4-te:w2d=0:round_bwd=nearest") ==
          "NVFP4BlockScaling(disable_2d_quantization=True, disable_stochastic_rounding=True)");
    CHECK(code("nvfp4-te:wide=last+first") ==
          "NVFP4BlockScaling()  # run layers first+last outside te.autocast");
    CHECK(code("delayed:wide=2:margin=1").ends_with(")  # run layers 2 outside te.autocast"));
    CHECK(code("nvfp4-te:rht=bf16") == "NVFP4BlockScaling()");
    CHECK(
        code("nvfp4-te:target=4or6") ==
        "NVFP4BlockScaling(disable_rht=True, nvfp4_4over6=\"all\", nvfp4_4over6_err_mode=\"MSE\")  # 4over6 "
        "does not go with the rotation, and is never used for dy");
    CHECK(
        code("nvfp4:w2d=1:target=4or6") ==
        "NVFP4BlockScaling(disable_rht=True, nvfp4_4over6=\"all\", nvfp4_4over6_err_mode=\"MSE\")  # 4over6 "
        "is never used for dy");
    CHECK(code("block128:scope=attn") ==
          "Float8BlockScaling(fp8_format=Format.E4M3)  # Transformer Engine cannot express scope=attn");
    CHECK(code("nvfp4-te:target=4:wide=1") ==
          "NVFP4BlockScaling()  # run layers 1 outside te.autocast  # Transformer Engine cannot express "
          "target=4");
    CHECK(code("mxfp4:wide=1") == "# Transformer Engine has no recipe like mxfp4:wide=1");
    CHECK(code("mxfp8:mxrule=floor") ==
          "MXFP8BlockScaling(fp8_format=Format.E4M3)  # Transformer Engine cannot express mxrule=floor");
    for (const char* none :
         {"rowwise", "mxfp4", "mxfp6-e2m3", "int8", "unscaled", "delayed:fwd=e5m2", "fp32", "bf16"})
        CHECK(code(none).starts_with("# "));
}

TEST_CASE("options of four bits: their values, and the recipes that take them") {
    const Recipe plain = parse_recipe("nvfp4"), te = parse_recipe("nvfp4-te");
    CHECK_FALSE(plain.square_weights);
    CHECK_FALSE(plain.rht);
    CHECK(plain.target == Nvfp4Target::six);
    CHECK(plain.wide.empty());
    CHECK(te.square_weights);
    CHECK(te.rht);
    CHECK(te.round_bwd == Rounding::stochastic);
    CHECK(te.round == Rounding::nearest);
    const Recipe all = parse_recipe("nvfp4:w2d=1:rht=1:target=4or6:wide=first+3");
    CHECK(all.square_weights);
    CHECK(all.rht);
    CHECK(all.target == Nvfp4Target::four_or_six);
    CHECK(all.wide == WideLayers{true, false, {3}});
    for (const Recipe& r : recipes()) {
        CAPTURE(r.name);
        const bool nv = r.base == "nvfp4" || r.base == "nvfp4-te";
        for (const char* option : {":w2d=0", ":rht=1", ":target=4"}) {
            const std::string why = why_refused(std::string(r.base) + option);
            if (nv)
                CHECK(why == "accepted");
            else
                CHECK(why.starts_with("unknown " + std::string(r.base) + " option '"));
        }
        CHECK((why_refused(std::string(r.base) + ":wide=first") == "accepted") == (width_bits(*r.fwd) <= 8));
    }
    CHECK(why_refused("mxfp4:rht=1").find("valid: mxrule=up|floor|even ") != std::string::npos);
    CHECK(why_refused("nvfp4:target=5") == "recipe nvfp4: '5' is not a value of target; valid: 6|4|4or6");
    CHECK(why_refused("nvfp4:rht=on") == "recipe nvfp4: 'on' is not a value of rht; valid: 0|1|bf16");
    for (const char* bad :
         {"", "0", "-1", "1.5", "middle", "first+first", "2+2", "first+", "+1", "1,2", "99999999999"})
        CHECK(why_refused("nvfp4:wide=" + std::string(bad)) ==
              "recipe nvfp4: '" + std::string(bad) +
                  "' is not a value of wide; valid: first|last|NUMBER|GEMM[+...]");
}

TEST_CASE("a wide layer has the casts of bf16, the others keep theirs") {
    const Recipe r = parse_recipe("nvfp4-te:wide=first+last+3:out=fp32:round=stochastic");
    for (int layer = 1; layer <= 5; ++layer) {
        CAPTURE(layer);
        const bool wide = layer != 2 && layer != 4;
        CHECK(r.wide.contains(layer, 5) == wide);
        const Recipe here = recipe_of_layer(r, layer, 5);
        CHECK(here.out == OutType::fp32);
        CHECK(here.fwd->name == (wide ? "bf16" : "e2m1"));
        CHECK(here.bwd->name == (wide ? "bf16" : "e2m1"));
        CHECK(here.rht == !wide);
        CHECK(here.square_weights == !wide);
        CHECK(here.round == (wide ? Rounding::nearest : Rounding::stochastic));
        CHECK((here.scale == ScaleSource::none) == wide);
    }
    CHECK(parse_recipe("delayed:wide=last").wide.contains(1, 1));
}
