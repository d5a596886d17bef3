// fp8lab infer --kv, draft and mismatch on the shipped transformers.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

namespace {

const std::string kModel = quoted(FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors") + " ",
                  kDigits = quoted(FP8LAB_SOURCE "/assets/models/digits-s1.safetensors") + " ";

nlohmann::json json_of(const std::string& call) {
    const auto result = fp8lab(call + " --json");
    CAPTURE(call);
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    return parsed(result.out);
}

void refused(const std::string& call, int code, const std::string& why) {
    CAPTURE(call);
    const auto result = fp8lab(call);
    CAPTURE(result.err);
    CHECK(result.code == code);
    CHECK(result.err.find(why) != std::string::npos);
    CHECK(result.out.empty());
}

}  // namespace

TEST_CASE("infer --kv: a cache in each scheme, its bytes, and what a factor of K does") {
    const auto one = json_of("infer " + kModel + "--kv one"),
               token = json_of("infer " + kModel + "--kv token");
    CHECK(one.at("kv") == "one");
    CHECK(one.at("rows") == 4096);
    CHECK(one.at("kv_divergence") > token.at("kv_divergence"));
    CHECK(one.at("bytes_per_token_layer").at("model") == 128);  // K and V of 64 values
    CHECK(one.at("bytes_per_token_layer").at("mla") == 576);
    CHECK(token.at("bytes_per_token_layer").at("gqa_8") == 2056);
    const auto large = json_of("infer " + kModel + "--kv one --k-factor 256");
    CHECK(large.at("saturated_pct_k") > 10);
    CHECK(large.at("kv_divergence") > 0.1);
    const auto table = fp8lab("infer " + kModel + "--kv int4-g32");
    CHECK(table.code == 0);
    CHECK(table.out.find("K and V in INT4, groups of 32, K times 1\n") != std::string::npos);
}

TEST_CASE("draft: acceptance and speed-up of a draft in four bits, and its cost in bytes") {
    const auto out = json_of("draft " + kModel + "--draft nvfp4 --temperature 1");
    CHECK(out.at("alpha") > 0.8);
    CHECK(out.at("alpha_k").size() == 16);
    CHECK(out.at("cost").get<double>() == doctest::Approx(out.at("bits").get<double>() / 16));
    CHECK(out.at("speedup") == out.at("speedups")[3]);
    CHECK(out.at("best_speedup") > 1.5);
    CHECK(out.at("best_speedup").get<double>() >= out.at("speedup").get<double>());
    const auto seventh = json_of("draft " + kModel + "--draft nvfp4 --cost 1/7 --length 8");
    CHECK(seventh.at("cost").get<double>() == doctest::Approx(1.0 / 7));
    CHECK(seventh.at("alpha") == out.at("alpha"));
    CHECK(seventh.at("expected_g") == out.at("expected")[7]);
    const auto eight = json_of("draft " + kModel + "--draft nvfp4 --target e4m3");
    CHECK(eight.at("best_speedup") < out.at("best_speedup"));
    const auto weights = json_of("draft " + kModel + "--draft int4-g32 --lower weights");
    CHECK(weights.at("alpha") > out.at("alpha"));
    const auto table = fp8lab("draft " + kModel + "--draft nvfp4");
    CHECK(table.out.find("  best\n") != std::string::npos);
}

TEST_CASE("mismatch: equal engines give 0, fewer bits fewer answers that count") {
    const auto same = json_of("mismatch " + kModel + "--rollout bf16");
    CHECK(same.at("mean_abs_d") == 0);
    CHECK(same.at("kl") == 0);
    CHECK(same.at("ess_pct") == 100);
    const auto cache = json_of("mismatch " + kModel + "--rollout bf16:kv=fp8"),
               four = json_of("mismatch " + kModel + "--rollout nvfp4 --truncate 2");
    CHECK(cache.at("mean_abs_d") > 0.005);
    CHECK(cache.at("ess_by_length").size() == 56);
    CHECK(four.at("ess_pct") < cache.at("ess_pct"));
    CHECK(four.at("ess_truncated_pct") > four.at("ess_pct"));
    CHECK(json_of("mismatch " + kModel + "--rollout bf16:kv=head").at("mean_abs_d") > 0);
    const auto table = fp8lab("mismatch " + kModel + "--rollout e4m3-row --tokens 8 --answers 16");
    CHECK(table.code == 0);
    CHECK(table.out.find("16 answers of 8 tokens by e4m3-row") != std::string::npos);
}

TEST_CASE("infer --kv, draft and mismatch refuse what they cannot use, with one sentence") {
    refused("infer " + kModel + "--kv fp8", 2, "unknown cache 'fp8'");
    refused("infer " + kModel + "--kv one --k-factor 0", 2, "--k-factor");
    refused("infer " + kModel + "--kv one --weights nvfp4", 2, "--weights");
    refused("infer " + kModel + "--kv one --mixed-tokens mxfp8,nvfp4", 2, "--mixed-tokens");
    refused("infer " + kDigits + "--kv one", 2, "is for models of tokens");
    refused("draft " + kDigits + "--draft nvfp4", 2, "is for models of tokens");
    refused("draft " + kModel + "--draft int4-g32", 2, "unknown format 'int4-g32'");  // no format of inputs
    refused("draft " + kModel + "--draft nvfp4 --lower x", 2, "--lower");
    refused("draft " + kModel + "--draft nvfp4 --length 17", 2, "--length");
    refused("draft " + kModel + "--draft nvfp4 --cost 0", 2, "--cost");
    refused("draft " + kModel + "--draft nvfp4 --cost 1/0", 2, "--cost");
    refused("draft " + kModel, 2, "--draft");
    refused("mismatch " + kModel + "--rollout nf4", 2, "unknown format 'nf4'");
    refused("mismatch " + kModel + "--rollout e4m3:cache=fp8", 2, "F:kv=C");
    refused("mismatch " + kModel + "--rollout e4m3:kv=x", 2, "unknown cache 'x'");
    refused("mismatch " + kModel + "--rollout e4m3 --truncate 0.5", 2, "--truncate");
    refused("mismatch " + kModel + "--rollout e4m3 --temperature 0", 2, "--temperature");
    refused("mismatch " + kModel + "--rollout e4m3 --tokens 57", 2, "1 to 56");
    refused("mismatch /no/such/file --rollout e4m3", 4, "/no/such/file");
}
