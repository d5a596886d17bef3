#include "core/tensors/scales/quantization_config.h"

#include <doctest/doctest.h>

#include "core/base/error.h"

using namespace fp8lab;

namespace {

QuantizationConfig read(const char* text) { return parse_quantization_config(text, "m/config.json"); }
using Sizes = std::vector<std::size_t>;

}  // namespace

TEST_CASE("the methods of config.json and hf_quant_config.json") {
    CHECK(read(R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[128,64]}})").words() ==
          "8 bits, one scale per 128 x 64");
    CHECK(read(R"({"quantization_config":{"quant_method":"fp8"}})").words() == "8 bits");
    CHECK(read(R"({"quantization_config":{"quant_method":"mxfp4"}})").words() ==
          "4 bits, one scale per 1 x 32");
    CHECK(read(R"({"quantization":{"quant_algo":"FP8_PB_WO"}})").words() ==
          "8 bits, one scale per 128 x 128");
    CHECK(read(R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"}})").words() ==
          "4 bits, one scale per 1 x 16");
    CHECK(read(R"({"quantization":{"quant_algo":"FP8"}})").words() == "8 bits, one scale");
    const char* const groups =
        R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":{
        "a":{"weights":{"num_bits":8,"strategy":"channel"}},
        "b":{"weights":{"num_bits":4,"strategy":"tensor_group","group_size":16}},
        "c":{"weights":{"num_bits":8,"strategy":"block","block_structure":[128,128]}},"d":{"weights":null}}}})";
    CHECK(read(groups).words() ==
          "8 bits, one scale per row; 4 bits, one scale per 1 x 16; 8 bits, one scale per 128 x 128");
    CHECK(read("{}").words().empty());
    CHECK(read("{}").file == "config.json");
}

TEST_CASE("the parts of a fused matrix by heads, never in thirds") {
    // Llama 3 8B.
    const auto llama = read(
        R"({"num_attention_heads":32,"num_key_value_heads":8,"hidden_size":4096,"intermediate_size":14336})");
    CHECK(llama.parts_of(6144, 3) == Sizes{4096, 1024, 1024});
    CHECK(llama.parts_of(28672, 2) == Sizes{14336, 14336});
    CHECK(llama.parts_of(6143, 3).empty());
    CHECK(llama.parts_of(6144, 4).empty());
    CHECK(read(R"({"text_config":{"num_attention_heads":2,"head_dim":5}})").parts_of(30, 3) ==
          Sizes{10, 10, 10});
    CHECK(read("{}").parts_of(0, 3).empty());
}

TEST_CASE("members of a wrong type and huge sizes say nothing, and what is no object is refused") {
    for (const char* text : {R"({"quantization_config":7})",
                             R"({"quantization_config":{"quant_method":[],"config_groups":[1]}})",
                             R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[0,-1]}})",
                             R"({"num_attention_heads":18446744073709551615,"head_dim":2})"})
        CHECK(read(text).parts_of(6, 3).empty());
    for (const char* text : {"", "[]", "7", "{"}) CHECK_THROWS_AS(read(text), Error);
}
