// Exported code for torchtitan: its flags and converters exist at the commits that torchtitan_options.json names.
#include <doctest/doctest.h>

#include <regex>

#include "core/base/error.h"
#include "core/python/recipe_code.h"
#include "exported.h"
#include "tests/json.h"
#include "torch_here.h"

using namespace fp8lab;

namespace {

std::string code(const std::string& recipe) {
    return recipe_code(parse_recipe(recipe), find_code_target("torchtitan"));
}

bool has(const nlohmann::json& list, const std::string& value) {
    return std::ranges::any_of(list, [&](const auto& item) { return item == value; });
}

// Whether an option of that type takes the value; "list" has words, in Python or between commas.
void check_value(const nlohmann::json& option, const std::string& value) {
    CAPTURE(value);
    static const std::regex kWords(R"([\w.]+(,[\w.]+)*)"), kList(R"re(\["[\w.]+"(, "[\w.]+")*\])re");
    const std::string type = option.at("type");
    if (type == "bool") return;  // a name, which the caller gives
    if (type == "list") CHECK((std::regex_match(value, kWords) || std::regex_match(value, kList)));
    const std::string word = value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
    if (option.contains("values")) CHECK(has(option.at("values"), word));
}

}  // namespace

TEST_CASE("torchtitan has every flag, converter and argument of the files that are written for it") {
    const auto facts = parsed(test::text_of(FP8LAB_SOURCE "/tests/unit/python/torchtitan_options.json"));
    static const std::regex kFlag(R"re(\n    "(--[\w.]+)=([^"]+)",)re"),
        kConverter(R"re(return \[(\w+)\.Config\((.*), model_compile_enabled=model_compile_enabled\)\])re"),
        kArgument(R"re((\w+)=("[^"]*"|\[[^\]]*\]))re");
    std::size_t flags = 0, converters = 0;
    for (const std::string& recipe : test::exported_recipes()) {
        CAPTURE(recipe);
        if (!find_code_target("torchtitan").refusal(parse_recipe(recipe)).empty()) continue;
        const std::string text = code(recipe);
        for (std::sregex_iterator it(text.begin(), text.end(), kFlag), end; it != end; ++it, ++flags) {
            CAPTURE((*it)[1].str());
            REQUIRE(facts.at("flags").at("options").contains((*it)[1].str()));
            check_value(facts.at("flags").at("options").at((*it)[1].str()), (*it)[2]);
        }
        CHECK((text.find("FLAGS") != text.npos) == (text.find("\n    \"--") != text.npos));
        std::smatch found;
        CHECK(std::regex_search(text, found, kConverter) == (text.find("def converters(") != text.npos));
        if (found.empty()) continue;
        ++converters;
        REQUIRE(facts.at("converters").at("configs").contains(found[1].str()));
        const auto& config = facts.at("converters").at("configs").at(found[1].str());
        CHECK(config.contains("model_compile_enabled"));
        const std::string arguments = found[2];
        for (std::sregex_iterator it(arguments.begin(), arguments.end(), kArgument), end; it != end; ++it) {
            CAPTURE((*it)[1].str());
            REQUIRE(config.contains((*it)[1].str()));
            check_value(config.at((*it)[1].str()), (*it)[2]);
        }
        CHECK(text.find("from " + facts.at("converters").at("module").get<std::string>() + " import " +
                        found[1].str()) != text.npos);
    }
    CHECK(flags > 12);
    CHECK(converters == 3);
}

TEST_CASE("torchtitan's flags are those of the recipe, and the head is left out") {
    const std::string rowwise = code("rowwise:bwd=e4m3:pow2=1");
    CHECK(rowwise.find("--quantize.linear.float8.recipe_name=rowwise\"") != std::string::npos);
    CHECK(rowwise.find("--quantize.linear.float8.filter_fqns=output\"") != std::string::npos);
    CHECK(rowwise.find("Float8LinearConverter.Config(recipe_name=\"rowwise\", filter_fqns=[\"lm_head\"]") !=
          std::string::npos);
    CHECK(code("current").find("recipe_name=tensorwise\"") != std::string::npos);
    CHECK(code("mxfp8").find("recipe_name=mxfp8_cublas_rceil\"") != std::string::npos);
    CHECK(code("mxfp8:mxrule=floor").find("recipe_name=mxfp8_cublas\"") != std::string::npos);
    const std::string nvfp4 = code("nvfp4-te:rht=bf16");
    CHECK(nvfp4.find("FLAGS") == std::string::npos);
    CHECK(nvfp4.find("NVFP4LinearConverter.Config(fqns=[\"layers\"]") != std::string::npos);
    for (const char* refused : {"delayed", "rowwise", "current:margin=1", "mxfp8:wide=first",
                                "mxfp8:out=fp32", "nvfp4-te", "block128", "mxfp4"}) {
        CAPTURE(refused);
        CHECK_THROWS_WITH_AS(code(refused), doctest::Contains("torchtitan cannot express"), Error);
    }
    CHECK_THROWS_WITH_AS(code("mxfp4"),
                         doctest::Contains("of our recipes it has bf16, fp32, current, rowwise:bwd=e4m3"),
                         Error);
}
