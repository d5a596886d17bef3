// Which GEMMs a recipe casts, by scope and wide; which options a model refuses.
#include <doctest/doctest.h>

#include <set>

#include "core/base/error.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/models/transformer/model.h"
#include "core/nn/streams.h"

using namespace fp8lab;

namespace {

const int kSizes[] = {8, 16, 16, 4};

// The names of tensors that the recipe casts to 8 bits or less.
std::set<std::string> narrow(const ModelPlan& plan, const std::string& recipe) {
    std::set<std::string> names;
    for (std::uint16_t i = 0; i < plan.tensors.size(); ++i) {
        const Recipe here = plan.recipe_of(parse_recipe(recipe), {i});
        const FormatInfo& format = *cast_plan(here, plan.tensors[i].tensor).format;
        if (width_bits(format) <= 8) names.insert(plan.tensors[i].name);
    }
    return names;
}

ModelPlan two_blocks() { return transformer_plan({.vocabulary = 55}); }

std::string refusal(const ModelPlan& plan, const std::string& recipe) {
    try {
        plan.check(parse_recipe(recipe));
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("the tensors of the MLP keep their names, order and random streams") {
    const ModelPlan plan = mlp_plan(kSizes);
    const char* const names[] = {"x1", "w1", "dy1", "x2", "w2", "dy2", "x3", "w3", "dy3"};
    REQUIRE(plan.tensors.size() == std::size(names));
    for (std::uint16_t i = 0; i < std::size(names); ++i) {
        const MlpTensor tensor{TensorId{i}};
        CHECK(plan.tensors[i].name == names[i]);
        CHECK(to_string(tensor) == names[i]);
        CHECK(TensorId(tensor) == TensorId{i});
        CHECK(plan.find(names[i]) == TensorId{i});
        CHECK(plan.ordinal({i}) == tensor.layer);
        CHECK(plan.place({i}) == static_cast<unsigned>(tensor.tensor));
    }
    CHECK_FALSE(plan.find("x4"));
}

TEST_CASE("no two casts of a step draw from one stream") {
    const ModelPlan plan = two_blocks();
    std::set<std::uint64_t> streams;
    for (std::uint16_t i = 0; i < plan.tensors.size(); ++i)
        for (const unsigned along : {0U, 1U})
            streams.insert(stream(Draw::cast, plan.ordinal({i}), 7, plan.place({i}) * 2 + along));
    CHECK(streams.size() == 2 * plan.tensors.size());
}

TEST_CASE("scope and wide say which GEMMs are cast, and nothing else is") {
    const ModelPlan plan = two_blocks();
    const auto eight = [](std::set<std::string> names, const std::string& block) {
        for (const char* gemm : {"qkv", "out", "gate_up", "down"})
            for (const char* tensor : {"x", "w", "dy"}) names.insert(block + "." + gemm + "." + tensor);
        return names;
    };
    const auto attention = [](std::set<std::string> names, const std::string& block) {
        for (const char* tensor : {"q", "k", "v", "p", "ds", "do"})
            names.insert(block + ".attention." + tensor);
        return names;
    };
    const auto head = [](std::set<std::string> names) {
        names.insert({"head.x", "head.w", "head.dy"});
        return names;
    };
    const std::set<std::string> linears = eight(eight({}, "1"), "2"),
                                with_attention = attention(attention(linears, "1"), "2");
    for (const std::string base : {"delayed", "current", "rowwise", "mxfp8", "nvfp4-te", "mxfp4"}) {
        CAPTURE(base);
        CHECK(narrow(plan, base) == linears);
        CHECK(narrow(plan, base + ":scope=attn") == with_attention);
        CHECK(narrow(plan, base + ":scope=head") == head(linears));
        CHECK(narrow(plan, base + ":scope=all") == head(with_attention));
        CHECK(narrow(plan, base + ":wide=last") == eight({}, "1"));
        CHECK(narrow(plan, base + ":scope=attn:wide=1") == attention(eight({}, "2"), "2"));
        auto one_less = linears;
        for (const char* tensor : {"x", "w", "dy"}) one_less.erase(std::string("1.down.") + tensor);
        CHECK(narrow(plan, base + ":wide=1.down") == one_less);
    }
    CHECK(narrow(plan, "bf16").empty());
    CHECK(narrow(plan, "fp32").empty());
    const Recipe fp32 = plan.recipe_of(parse_recipe("fp32"), *plan.find("head.x"));
    CHECK(fp32.fwd->name == "fp32");  // out of scope is not BF16 where nothing is cast
}

TEST_CASE("the products inside attention have one scale per tensor, E4M3 forwards and E5M2 backwards") {
    const ModelPlan plan = two_blocks();
    for (const std::string base : {"mxfp8", "nvfp4-te", "mxfp4", "rowwise", "current", "delayed"}) {
        CAPTURE(base);
        const Recipe p = plan.recipe_of(parse_recipe(base + ":scope=attn"), *plan.find("1.attention.p"));
        CHECK(p.granularity == Granularity::tensor);
        CHECK(p.fwd->name == "e4m3");
        CHECK(p.bwd->name == "e5m2");
        CHECK(p.scale == (base == "delayed" ? ScaleSource::delayed : ScaleSource::current));
        CHECK_FALSE(p.rht);
    }
}

TEST_CASE("a router is cast as the option router says, whatever scope, wide and inputs of products say") {
    ModelPlan plan;
    plan.blocks = 1;
    plan.add_linear({"1.router", "1.router.x", "1.router.w", "1.router.dy", "1.router.w"}, GemmRole::router,
                    1, 4, 8);
    plan.add_linear({"1.down", "1.down.x", "1.down.w", "1.down.dy", "1.down.w"}, GemmRole::linear, 1, 4, 8);
    const auto of = [&](const char* recipe, const char* tensor) {
        const TensorId id = *plan.find(tensor);
        const Recipe here = plan.recipe_of(parse_recipe(recipe), id);
        return cast_plan(here, plan.tensor(id).tensor);
    };
    for (const char* recipe : {"mxfp8", "delayed:scope=head", "nvfp4:fprop_in=mxfp8", "fp32"})
        for (const char* tensor : {"1.router.x", "1.router.w", "1.router.dy"})
            CHECK(of(recipe, tensor).format->name == "fp32");
    CHECK(of("fp32:router=mxfp8", "1.router.x") == cast_plan(parse_recipe("mxfp8"), TensorClass::x));
    CHECK(of("mxfp8:router=current:wide=1", "1.router.dy") ==
          cast_plan(parse_recipe("current"), TensorClass::dy));
    CHECK(of("mxfp8:router=nvfp4:wgrad_in=bf16", "1.router.w") ==
          cast_plan(parse_recipe("nvfp4"), TensorClass::w));
    CHECK(of("mxfp8:router=nvfp4", "1.down.x") == cast_plan(parse_recipe("mxfp8"), TensorClass::x));
    CHECK(refusal(plan, "mxfp8:router=nvfp4").empty());
    CHECK(recipe_text(parse_recipe("mxfp8:router=nvfp4:wide=1.e0.down")) ==
          "mxfp8:router=nvfp4:wide=1.e0.down");
    for (const char* text : {"mxfp8:router=mxfp9", "mxfp8:router=", "mxfp8:router=mxfp8:router=bf16"})
        CHECK_THROWS_AS(parse_recipe(text), Error);
}

TEST_CASE("a model refuses what it does not have, and says what there is") {
    CHECK(refusal(mlp_plan(kSizes), "nvfp4-te:wide=1+3").empty());
    CHECK(refusal(mlp_plan(kSizes), "nvfp4-te:wide=4") ==
          "--recipe: recipe nvfp4-te: wide names layer 4; the layers are 1-3");
    CHECK(refusal(mlp_plan(kSizes), "delayed:scope=attn").find("'scope' is unknown") != std::string::npos);
    CHECK(refusal(mlp_plan(kSizes), "delayed:act=smooth").find("'act' is unknown") != std::string::npos);
    for (const ModelPlan& plan : {mlp_plan(kSizes), two_blocks()}) {
        CHECK(refusal(plan, "mxfp8:router=mxfp8") ==
              "--recipe: recipe mxfp8: option 'router' is unknown to this model: it has no experts to choose "
              "from");
        CHECK(refusal(plan, "mxfp8:router=fp32").empty());
    }
    CHECK(refusal(two_blocks(), "delayed:act=smooth:scope=all:wide=2+1.down").empty());
    CHECK(refusal(two_blocks(), "delayed:wide=1.dwon").find("1.down") != std::string::npos);
    CHECK(refusal(two_blocks(), "block128:scope=all").find("not supported") != std::string::npos);
    CHECK(refusal(two_blocks(), "block128:scope=head").empty());
    for (const char* text :
         {"delayed:scope=mlp", "delayed:act=gelu", "delayed:wide=down", "delayed:wide=1.", "bf16:scope=attn"})
        CHECK_THROWS_AS(parse_recipe(text), Error);
    for (const char* text :
         {"delayed:scope=attn:act=smooth:wide=last+1.down", "bf16:act=clamp", "nvfp4-te:scope=all"})
        CHECK(recipe_text(parse_recipe(recipe_text(parse_recipe(text)))) == recipe_text(parse_recipe(text)));
    CHECK(transformer_engine_code(parse_recipe("delayed:scope=attn")).find("fp8_dpa=True)") !=
          std::string::npos);
}

TEST_CASE("sizes that do not fit together are refused by the rule that they break") {
    const auto why = [](std::map<std::string, int, std::less<>> sizes) -> std::string {
        TrainOptions options;
        options.model = "transformer";
        options.sizes = std::move(sizes);
        try {
            make_train_spec(options);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    };
    CHECK(why({}).empty());
    CHECK(why({{"kv-heads", 2}}).empty());
    CHECK(why({{"heads", 5}}) == "--heads: 5 does not divide --d 64");
    CHECK(why({{"kv-heads", 3}}) == "--kv-heads: 3 does not divide --heads 4");
    CHECK(why({{"d", 12}, {"heads", 4}}).find("is odd") != std::string::npos);
    CHECK(why({{"context", 4}}) == "--context: 4 is not in 8..4096");
    CHECK(why({{"layers", 4}}) == "--layers: is no option of --model transformer");
    TrainOptions mlp;
    mlp.sizes = {{"d", 64}};
    CHECK_THROWS_WITH_AS(make_train_spec(mlp), "--d: is no option of --model mlp", Error);
    mlp.sizes = {};
    mlp.task = "text";
    CHECK_THROWS_WITH_AS(make_train_spec(mlp), "--task: text is no task of --model mlp", Error);
    mlp.model = "rnn";
    CHECK_THROWS_WITH_AS(make_train_spec(mlp), "--model: unknown model 'rnn'; known: mlp, transformer, moe",
                         Error);
}
