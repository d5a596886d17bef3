// Checkpoints in published layouts, as scripts/layout_samples.py makes them with the values that they hold.
#include "core/tensors/scales/layouts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"
#include "core/tensors/tensor_store.h"
#include "safetensors_file.h"
#include "tests/json.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

const std::string kFolder = FP8LAB_SOURCE "/tests/unit/tensors/layouts/";

std::vector<float> values_of(const TensorStore& store, const StoredTensor& tensor) {
    std::vector<float> values(tensor.values());
    store.read_rows(tensor, 0, values);
    return values;
}

bool same_bits(float a, float b) {
    return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

std::string_view word(TensorRole role) {
    switch (role) {
        case TensorRole::values:
            return "values";
        case TensorRole::unscaled:
            return "unscaled";
        case TensorRole::scale:
            return "scale";
        case TensorRole::aside:
            return "aside";
        case TensorRole::refused:
            return "refused";
        case TensorRole::other:
            return "other";
    }
    return "";
}

}  // namespace

TEST_CASE("each layout has the values of its definition, bit for bit, or says why it is not read") {
    const nlohmann::json samples = parsed(read_text(kFolder + "expected.json"));
    const TensorStore right(kFolder + "right.safetensors");
    std::size_t compared = 0;
    for (const auto& [name, sample] : samples.items()) {
        CAPTURE(name);
        const TensorStore store(kFolder + sample["file"].get<std::string>());
        CHECK(store.tensors().size() == sample["tensors"].size());
        for (const auto& [tensor_name, expected] : sample["tensors"].items()) {
            CAPTURE(tensor_name);
            const StoredTensor* const tensor = store.find(tensor_name);
            REQUIRE(tensor != nullptr);
            CHECK(word(tensor->role) == expected["role"].get<std::string>());
            const auto says = expected["says"].get<std::string>();
            if (tensor->role == TensorRole::values) CHECK(tensor->scale_words() == says);
            if (tensor->role == TensorRole::refused || tensor->role == TensorRole::aside ||
                tensor->role == TensorRole::unscaled)
                CHECK(tensor->why == says);
            const StoredTensor* const truth = right.find(name + ":" + tensor_name);
            CHECK((truth != nullptr || tensor->role != TensorRole::values));
            if (!truth) continue;
            const std::vector<float> got = values_of(store, *tensor), want = values_of(right, *truth);
            REQUIRE(got.size() == want.size());
            CHECK(std::ranges::equal(got, want, same_bits));
            ++compared;
        }
        CHECK(store.notes() == sample["notes"].get<std::vector<std::string>>());
    }
    CHECK(compared > 45);
}

TEST_CASE("rows of a layout are those of the whole, wherever a reading begins and ends") {
    const nlohmann::json samples = parsed(read_text(kFolder + "expected.json"));
    for (const auto& [name, sample] : samples.items()) {
        const TensorStore store(kFolder + sample["file"].get<std::string>());
        for (const StoredTensor& tensor : store.tensors()) {
            if (!tensor.scales) continue;
            CAPTURE(name);
            const std::vector<float> whole = values_of(store, tensor);
            const MatrixShape shape = tensor.matrix();
            for (std::size_t first = 0; first < shape.rows; ++first) {
                std::vector<float> part(std::min<std::size_t>(3, shape.rows - first) * shape.cols);
                store.read_rows(tensor, first, part);
                CHECK(std::equal(part.begin(), part.end(),
                                 whole.begin() + static_cast<std::ptrdiff_t>(first * shape.cols), same_bits));
            }
        }
    }
}

TEST_CASE("codes without a scale are values only where that is asked for") {
    const TensorStore store(kFolder + "plain.safetensors");
    CHECK(store.unscaled() ==
          "2 tensors hold codes without a scale, none found: layers.0.down.bias, layers.0.down.weight");
    const StoredTensor& codes = *store.find("layers.0.down.weight");
    CHECK(codes.scale_words() == "none found");
    CHECK_FALSE(codes.is_judged(false));
    CHECK(codes.is_judged(true));
    CHECK_NOTHROW(require_values(store, codes, true));
    CHECK_THROWS_WITH_AS(require_values(store, codes),
                         doctest::Contains("holds F8_E4M3 codes without a scale: none found"), Error);
    CHECK(TensorStore(kFolder + "hf-fp8.safetensors").unscaled().empty());
}

TEST_CASE("a list of files keeps the scales of each, global ones and those of other shards included") {
    const std::vector<std::filesystem::path> paths = {kFolder + "mo-nvfp4.safetensors",
                                                      kFolder + "shards/model-00001-of-00002.safetensors",
                                                      kFolder + "ct-fp8-tensor.safetensors"};
    const TensorStore list = TensorStore::of_files(paths), right(kFolder + "right.safetensors");
    for (const auto& [in_list, in_right] :
         {std::pair{"mo-nvfp4/layers.0.down.weight", "mo-nvfp4:layers.0.down.weight"},
          {"model-00001-of-00002/layers.0.down.weight", "shard-alone:layers.0.down.weight"},
          {"ct-fp8-tensor/layers.0.down.weight", "ct-fp8-tensor:layers.0.down.weight"}}) {
        CAPTURE(std::string(in_list));
        REQUIRE(list.find(in_list) != nullptr);
        CHECK(values_of(list, *list.find(in_list)) == values_of(right, *right.find(in_right)));
    }
}

TEST_CASE("a scale whose codes are in another shard is no weight") {
    const Scratch scratch;
    const auto save = [&](const char* name, const std::string& header, std::size_t bytes) {
        const auto file = safetensors_file(header, std::vector<std::uint8_t>(bytes, 0x38));
        write_file(scratch / name, std::span(file));
    };
    save("model-1.safetensors",
         R"({"a.weight":{"dtype":"F8_E4M3","shape":[4,4],"data_offsets":[0,16]},)"
         R"("n.weight":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})",
         32);
    save("model-2.safetensors",
         R"({"a.scale":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
         R"("n.scale":{"dtype":"F32","shape":[4],"data_offsets":[4,20]},)"
         R"("o.scale":{"dtype":"F32","shape":[4],"data_offsets":[20,36]}})",
         36);
    const auto roles = [&] {
        std::map<std::string, TensorRole> out;
        const TensorStore store(scratch / "model-2.safetensors");
        for (const StoredTensor& tensor : store.tensors()) out[tensor.name] = tensor.role;
        return out;
    };
    const TensorRole values = TensorRole::values;
    CHECK(roles() ==
          std::map<std::string, TensorRole>{{"a.scale", values}, {"n.scale", values}, {"o.scale", values}});
    write_file(
        scratch / "model.safetensors.index.json",
        R"({"weight_map":{"a.weight":"model-1.safetensors","n.weight":"model-1.safetensors",)"
        R"("a.scale":"model-2.safetensors","n.scale":"model-2.safetensors","o.scale":"model-2.safetensors"}})");
    // n and o are parameters: the one beside a weight that is no codes, the other beside none.
    CHECK(roles() == std::map<std::string, TensorRole>{
                         {"a.scale", TensorRole::scale}, {"n.scale", values}, {"o.scale", values}});
}

TEST_CASE("an index beside a shard that names files elsewhere is not followed, and that is said") {
    const Scratch scratch;
    const std::string shard = "model-00001-of-00002.safetensors";
    std::filesystem::copy_file(kFolder + "shards/" + shard, scratch.path / shard);
    write_file(scratch.path / "model.safetensors.index.json",
               std::as_bytes(std::span(
                   std::string_view(R"({"weight_map":{"layers.0.down.weight_scale":"../x.safetensors"}})"))));
    const TensorStore store(scratch.path / shard);
    CHECK(store.find("layers.0.down.weight")->role == TensorRole::unscaled);
    REQUIRE(store.notes().size() == 1);
    CHECK(store.notes()[0].find("is no .safetensors in the folder of the index") != std::string::npos);
}

TEST_CASE("names: an aside is a whole part of a name, and every layout has its own scale") {
    CHECK(aside_of("model.layers.0.self_attn.k_scale") == "a scale of the KV cache");
    CHECK(aside_of("experts.gate_up_proj_input_scale") == "a scale of activations");
    CHECK(aside_of("self_attn.kv_scale") == "a scale of the KV cache");
    CHECK(aside_of("block_scale").empty());
    CHECK(aside_of("weight").empty());
    CHECK(is_scale_name("a.weight_scale_inv"));
    CHECK_FALSE(is_scale_name("a.scale"));
    for (const Layout& layout : layouts())
        CHECK(layout.scale_of("a" + std::string(layout.codes)) == "a" + std::string(layout.scale));
    CHECK(layouts()[1].global_of("a.weight_packed") == "a.weight_global_scale");
    CHECK(layouts()[1].scale_of("a.weight").empty());
}
