// Exported code without PyTorch: its codes against numpy's, what is refused, and the names of the libraries.
#include "core/python/recipe_code.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/scaling/recipe_keys.h"
#include "exported.h"
#include "tests/json.h"
#include "tests/te_code.h"

using namespace fp8lab;

namespace {

std::string slurp(const std::string& name) {
    std::ifstream in(FP8LAB_SOURCE "/tests/unit/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string code(const std::string& recipe, const std::string& target) {
    return recipe_code(parse_recipe(recipe), find_code_target(target));
}

// The codes that a file compares with, by what follows "quantize" in the name of the cast.
std::map<std::string, std::string> codes_in(const std::string& text) {
    static const std::regex kCompare(R"re(compare\("quantize(\w*)", .*\[0\]\),((?:\s*"[0-9a-f]+")+)\))re"),
        kHex(R"re("([0-9a-f]+)")re");
    std::map<std::string, std::string> out;
    for (std::sregex_iterator it(text.begin(), text.end(), kCompare), end; it != end; ++it) {
        const std::string parts = (*it)[2];
        for (std::sregex_iterator part(parts.begin(), parts.end(), kHex); part != end; ++part)
            out[(*it)[1]] += (*part)[1];
    }
    return out;
}

// Why a target refuses a recipe; empty: it does not.
std::string refused(const std::string& recipe, const std::string& target) {
    try {
        (void)code(recipe, target);
        return {};
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        return error.why();
    }
}

// Of a Transformer Engine file, what is not PyTorch: the lines of its names, and comments.
std::string te_lines(const std::string& text) {
    static const std::regex kTe(R"(^ *(recipe = |layer = te\.|with te\.|# |os\.environ))");
    std::string out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (std::regex_search(line, kTe)) {
            if (line.starts_with("os.environ"))
                line = std::regex_replace(line, std::regex(R"re(.*\["(\w+)"\] = "(\w+)".*)re"), "# $1=$2");
            out += line + "\n";
        }
    return out;
}

}  // namespace

TEST_CASE("the codes in exported code are those that numpy computes for every recipe") {
    const auto facts = parsed(slurp("python/codes_numpy.json"));
    CHECK(facts.size() == recipes().size());
    for (const auto& [recipe, groups] : facts.items()) {
        CAPTURE(recipe);
        const auto found = codes_in(code(recipe, "pytorch"));
        CHECK(found.size() == groups.size());
        for (const auto& [group, codes] : groups.items()) {
            CAPTURE(group);
            REQUIRE(found.contains(group));
            CHECK(found.at(group).size() >= 512);
            CHECK(found.at(group) == codes.get<std::string>());
        }
    }
}

TEST_CASE("every recipe is written for each library, or refused with a reason") {
    const std::map<std::string, std::set<std::string>> refuses = {
        {"pytorch", {}},
        {"te", {"rowwise", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4", "int8", "unscaled"}},
        {"torchao",
         {"fp32", "bf16", "delayed", "block128", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4", "nvfp4", "nvfp4-te",
          "int8", "unscaled"}},
        {"torchtitan",
         {"delayed", "rowwise", "block128", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4", "nvfp4", "nvfp4-te", "int8",
          "unscaled"}}};
    for (const CodeTarget& target : code_targets()) {
        const std::string name(target.name);
        CAPTURE(name);
        REQUIRE(refuses.contains(name));
        for (const Recipe& recipe : recipes()) {
            CAPTURE(recipe.name);
            const std::string why = refused(recipe.name, name);
            CAPTURE(why);
            CHECK(refuses.at(name).contains(recipe.name) == !why.empty());
            if (!why.empty()) {
                CHECK(why.starts_with(std::string(target.label) + " cannot express " + recipe.name + ": "));
                continue;
            }
            const std::string text = code(recipe.name, name);
            CHECK(text.starts_with("\"\"\"" + recipe.name + " in " + std::string(target.label)));
            CHECK_FALSE(codes_in(text).empty());
        }
    }
}

TEST_CASE("an option of a recipe changes the file of plain PyTorch, or is refused") {
    std::set<std::string> seen;
    const auto check = [&](const std::string& recipe, const std::string& option, bool takes) {
        CAPTURE(recipe);
        CAPTURE(option);
        seen.insert(option.substr(0, option.find('=')));
        const std::string why = refused(recipe + ":" + option, "pytorch");
        CAPTURE(why);
        CHECK(takes == why.empty());
        if (!takes) {
            CHECK(why.find(": ") != why.npos);
            return;
        }
        const auto body = [](const std::string& text) { return text.substr(text.find("import torch")); };
        CHECK(body(code(recipe + ":" + option, "pytorch")) != body(code(recipe, "pytorch")));
    };
    for (const char* option :
         {"history=3", "algo=most_recent", "margin=1", "interval=2", "fwd=e5m2", "bwd=e4m3", "pow2=1",
          "zero_amax=inf", "round_bwd=stochastic", "overflow=nonsaturate", "out=fp32", "wgrad=bf16"})
        check("delayed", option, true);
    for (const char* option : {"amax=p99", "fake=1", "fprop_in=bf16", "dgrad_in=bf16", "wgrad_in=mxfp8"})
        check("current", option, true);
    for (const char* option : {"w2d=1", "rht=1", "rht=bf16", "target=4", "target=4or6", "colsrc=rowwise"})
        check("nvfp4", option, true);
    check("mxfp8", "mxrule=floor", true);
    for (const char* option :
         {"round=stochastic", "round_update=stochastic", "scope=attn", "act=smooth", "router=bf16",
          "loss_scale=1024", "loss_scale=8:growth_interval=2", "wide=first", "master=none", "m=bf16",
          "v=e4m3", "m=e4m3:moment_block=tensor", "m=bf16:round_m=stochastic", "v=bf16:round_v=stochastic",
          "acc=3", "fast_accum=all", "wgrad_in=bf16"})
        check("delayed", option, false);
    check("current", "fprop_in=nvfp4:round=stochastic", false);
    // Options that come behind another one of the same text.
    for (const char* name : {"growth_interval", "moment_block", "round_m", "round_v"}) seen.insert(name);
    for (const RecipeKey& key : recipe_keys()) {
        CAPTURE(std::string(key.name));
        CHECK(seen.contains(std::string(key.name)));
    }
}

TEST_CASE("Transformer Engine has every name and value of the files that are written for it") {
    const test::TeSignatures te(slurp("scaling/te_signatures.json"));
    const auto facts = parsed(slurp("scaling/te_signatures.json"));
    std::size_t files = 0;
    for (const std::string& recipe : test::exported_recipes()) {
        CAPTURE(recipe);
        if (!refused(recipe, "te").empty()) continue;
        ++files;
        const std::string text = code(recipe, "te"), lines = te_lines(text);
        CAPTURE(lines);
        CHECK(lines.find("te.Linear(") != lines.npos);
        for (const std::string& problem : te.problems(lines)) FAIL_CHECK(problem);
        const std::regex import(R"(from transformer_engine\.common\.recipe import (\w+)(, Format)?\n)");
        std::smatch name;
        CHECK(std::regex_search(text, name, import) == (lines.find("recipe = ") != lines.npos));
        if (name.ready() && !name.empty()) CHECK(facts.at("calls").contains(name[1].str()));
    }
    CHECK(files > 12);
    CHECK(code("current:pow2=1", "te")
              .find("os.environ[\"NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES\"] = \"1\"") != std::string::npos);
    CHECK(refused("delayed:algo=ema0.9", "te").ends_with("it has no algo=ema0.9"));
    CHECK(refused("current:wgrad_in=bf16", "te").find("CustomRecipe") != std::string::npos);
}

TEST_CASE("an unknown library is refused with those that there are") {
    CHECK_THROWS_WITH_AS((void)find_code_target("jax"),
                         doctest::Contains("unknown library 'jax'; valid: pytorch te torchao torchtitan"),
                         Error);
}
