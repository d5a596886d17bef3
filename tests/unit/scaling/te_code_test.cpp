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
            for (std::string value; std::getline(values, value, '|');) {
                // Options that have an effect only beside another one come with it.
                const std::string with = key == "round_m"        ? "m=bf16:"
                                         : key == "round_v"      ? "v=bf16:"
                                         : key == "moment_block" ? "m=e4m3:"
                                                                 : "";
                out.push_back(with + key + "=" +
                              (value == "RECIPE"    ? "mxfp8"
                               : value == "ema0..1" ? "ema0.9"
                               : value == "p0..100" ? "p99.99"
                               : value == "2-22"    ? "3"
                                                    : value));
            }
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

// Whether an option is there twice.
bool gives_twice(const std::string& recipe) {
    std::istringstream parts(recipe);
    std::set<std::string> keys;
    for (std::string part; std::getline(parts, part, ':');)
        if (!keys.insert(part.substr(0, part.find('='))).second) return true;
    return false;
}

// Fake quantization does without some casts, and refuses their options.
bool is_undone_by_fake(const std::string& recipe) {
    try {
        (void)parse_recipe(recipe);
        return false;
    } catch (const Error& error) {
        return std::string(error.what()).find("has no effect with fake=1") != std::string::npos;
    }
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
                const std::string text = base + ":" + options[i] + ":" + options[j];
                if (gives_twice(text) || is_undone_by_fake(text)) continue;
                check_code(te, text);
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

TEST_CASE("a comment names FusedAdam with the types of moments that it takes, and what it does not take") {
    const auto code = [](const std::string& text) { return transformer_engine_code(parse_recipe(text)); };
    const std::string current = "Float8CurrentScaling(fp8_format=Format.HYBRID)",
                      adam = "  # with te.optimizers.FusedAdam(",
                      cannot = "  # Transformer Engine cannot express ";
    CHECK(code("current:m=fp32:v=fp32") == current);
    CHECK(code("current:m=bf16") == current + adam + "exp_avg_dtype=torch.bfloat16)");
    CHECK(code("current:m=e4m3:v=e4m3:moment_block=tensor") ==
          current + adam + "exp_avg_dtype=torch.uint8, exp_avg_sq_dtype=torch.uint8)");
    CHECK(code("current:m=bf16:v=e5m2") ==
          current + adam + "exp_avg_dtype=torch.bfloat16)" + cannot + "v=e5m2");
    CHECK(code("current:v=bf16:round_v=stochastic") == current + cannot + "v=bf16:round_v=stochastic");
    CHECK(code("current:m=fp16:v=e4m3") == current + cannot + "m=fp16:v=e4m3");
    CHECK(code("current:master=bf16") == current + adam + ") on parameters in torch.bfloat16");
    CHECK(code("current:round_update=stochastic:master=bf16") ==
          current + cannot + "round_update=stochastic:master=bf16");
    CHECK(code("bf16:v=bf16").ends_with(adam + "exp_avg_sq_dtype=torch.bfloat16)"));
    CHECK(code("current:fprop_in=bf16:v=bf16")
              .ends_with("fprop_in=bf16" + adam + "exp_avg_sq_dtype=torch.bfloat16)"));
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
