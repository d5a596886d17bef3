// Every Transformer Engine code that a recipe can have, against Transformer Engine's own names and values.
#include "tests/te_code.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/scaling/recipe.h"

using namespace fp8lab;

namespace {

test::TeSignatures signatures() {
    std::ifstream in(FP8LAB_SOURCE "/tests/unit/scaling/te_signatures.json");
    return test::TeSignatures(std::string(std::istreambuf_iterator<char>(in), {}));
}

// "key=value" for each option that the parser says a recipe takes: all words of a choice, the ends of a range.
std::vector<std::string> options_of(const Recipe& recipe) {
    std::string why;
    try {
        parse_recipe(std::string(recipe.base) + ":no_such=1");
    } catch (const Error& error) {
        why = error.why();
    }
    std::vector<std::string> out;
    std::istringstream words(why.substr(why.find("valid:") + 6));
    for (std::string word; words >> word;) {
        const std::string key = word.substr(0, word.find('=')), valid = word.substr(word.find('=') + 1);
        if (key == "wide") {
            for (const char* value : {"first", "last", "first+last", "2", "1.down"})
                out.push_back("wide=" + std::string(value));
        } else if (valid.find('|') != valid.npos) {
            std::istringstream values(valid);
            for (std::string value; std::getline(values, value, '|');)
                out.push_back(key + "=" +
                              (value == "RECIPE"    ? "mxfp8"
                               : value == "ema0..1" ? "ema0.9"
                               : value == "p0..100" ? "p99.99"
                                                    : value));
        } else {  // "1-4096", "-8..16", ">=1"
            for (const char* value : {"1", "2", "16", "-8", "4096"}) try {
                    parse_recipe(std::string(recipe.base) + ":" + key + "=" + value);
                    out.push_back(key + "=" + value);
                } catch (const Error&) {
                }
        }
    }
    return out;
}

void check_code(const test::TeSignatures& te, const std::string& text) {
    CAPTURE(text);
    const std::string code = transformer_engine_code(parse_recipe(text));
    CAPTURE(code);
    CHECK_FALSE(code.empty());
    for (const std::string& problem : te.problems(code)) FAIL_CHECK(problem);
}

}  // namespace

TEST_CASE("Transformer Engine takes the code of every recipe with every option and every two of them") {
    const test::TeSignatures te = signatures();
    std::set<std::string> keys;
    int codes = 0;
    for (const Recipe& recipe : recipes()) {
        const std::string base(recipe.base);
        check_code(te, base);
        const std::vector<std::string> options = options_of(recipe);
        for (std::size_t i = 0; i < options.size(); ++i) {
            keys.insert(options[i].substr(0, options[i].find('=')));
            check_code(te, base + ":" + options[i]);
            for (std::size_t j = i + 1; j < options.size(); ++j) {
                if (options[i].substr(0, options[i].find('=')) == options[j].substr(0, options[j].find('=')))
                    continue;
                check_code(te, base + ":" + options[i] + ":" + options[j]);
                ++codes;
            }
        }
    }
    for (const char* key :
         {"history", "algo", "amax", "margin", "fwd", "pow2", "rht", "target", "scope", "wide", "loss_scale"})
        CHECK(keys.contains(key));
    CHECK(codes > 1000);
}

TEST_CASE(
    "a recipe with a format for each GEMM has no code: a comment names CustomRecipe and what it needs") {
    for (const Recipe& row : recipes()) {
        if (row.base == "fp32" || row.base == "bf16") continue;
        const std::string text = std::string(row.base) + ":fprop_in=bf16:wgrad_in=mxfp8",
                          code = transformer_engine_code(parse_recipe(text));
        CAPTURE(code);
        CHECK(code.starts_with("#"));
        if (std::string(row.te).starts_with("#"))
            continue;  // Transformer Engine has nothing like the row itself
        CHECK(code.find("CustomRecipe") != code.npos);
        CHECK(code.find("fprop_in=bf16:wgrad_in=mxfp8") != code.npos);
        CHECK(code.find('\n') == code.npos);
    }
}

TEST_CASE("codes that Transformer Engine would refuse, ignore or warn of are found") {
    const test::TeSignatures te = signatures();
    for (const char* good : {"DelayedScaling(margin=-8, fp8_format=Format.HYBRID, amax_history_len=16, "
                             "amax_compute_algo=\"max\")",
                             "NVFP4BlockScaling(disable_rht=True, nvfp4_4over6=\"all\")",
                             "NVFP4BlockScaling()", "# BF16: no recipe; te.Linear outside te.autocast",
                             "with te.autocast(enabled=True, recipe=recipe):\n    y = block(x, "
                             "self_attn_mask_type=\"causal\")"}) {
        CAPTURE(good);
        CHECK(te.problems(good).empty());
    }
    for (const char* bad : {"Float8CurrentScaling(use_power_2_scales=True, fp8_format=Format.HYBRID)",
                            "DelayedScaling(interval=1)", "DelayedScaling(fp8_format=Format.E5M2)",
                            "DelayedScaling(amax_compute_algo=\"ema\")", "DelayedScaling(margin=1.5)",
                            "NVFP4BlockScaling(nvfp4_4over6=\"all\")",
                            "NVFP4BlockScaling(nvfp4_4over6=\"all\", disable_rht=False)",
                            "NVFP4BlockScaling(nvfp4_4over6_err_mode=\"L2\")", "NVFP4BlockScaling(16)",
                            "Float8BlockScaling(fp8_dpa=True)", "MXFP8Scaling()",
                            "# te.Linear outside fp8_autocast", "MXFP8BlockScaling()  # with NVTE_NO_SUCH=1",
                            "Float8BlockScaling()  # with NVTE_FP8_BLOCK_SCALING_FP32_SCALES=yes",
                            "te.fp8_autocast(enabled=True)", "y = block(x, mask=\"causal\")"}) {
        CAPTURE(bad);
        CHECK_FALSE(te.problems(bad).empty());
    }
}
