// Models converted in process, and read again by the program's own reader.
#include "core/convert/convert.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/files.h"
#include "core/formats/codec.h"
#include "core/tensors/safetensors.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

namespace fs = std::filesystem;
using Values = std::vector<float>;
using Model = std::map<std::string, SafeTensor>;
using Json = nlohmann::json;

const fs::path kGolden = FP8LAB_SOURCE "/tests/unit/convert/golden";
const std::string kLayer = "model.layers.0.";

// Student's t with 5 degrees of freedom and rows of different size, as weights are.
SafeTensor weight(std::uint64_t seed, std::size_t rows, std::size_t cols, float size = 0.02F) {
    Rng rng(seed);
    SafeTensor out{{rows, cols}, Values(rows * cols)};
    Values v(5 * rows * cols), spread(rows);
    rng.fill_normal(out.values, size);
    rng.fill_normal(v, 1);
    rng.fill_normal(spread, 0.5F);
    for (std::size_t i = 0; i < out.values.size(); ++i) {
        float chi = 0;
        for (std::size_t k = 0; k < 5; ++k) chi += v[5 * i + k] * v[5 * i + k];
        out.values[i] *= std::exp2(spread[i / cols]) / std::sqrt(chi / 5);
    }
    return out;
}

Model small_model(std::uint64_t seed) {
    return {{kLayer + "self_attn.q_proj.weight", weight(seed, 256, 256)},
            {kLayer + "self_attn.k_proj.weight", weight(seed + 10, 128, 256, 0.06F)},
            {kLayer + "self_attn.v_proj.weight", weight(seed + 20, 128, 256)},
            {kLayer + "mlp.down_proj.weight", weight(seed + 30, 200, 160)},
            {kLayer + "mlp.gate.weight", weight(seed + 40, 8, 256)},
            {kLayer + "input_layernorm.weight", {{256}, Values(256, 1.F)}},
            {"model.embed_tokens.weight", weight(seed + 50, 16, 256)},
            {"lm_head.weight", weight(seed + 60, 16, 256)}};
}

fs::path save(const fs::path& path, const Model& model) {
    fs::create_directories(path.parent_path());
    write_file(path, to_safetensors({.tensors = model, .metadata = {}}));
    return path;
}

Conversion convert(const fs::path& from, const std::string& to, const fs::path& out,
                   std::vector<std::string> keep = {}) {
    Conversion conversion(std::make_shared<const TensorStore>(from), {.to = to, .keep = std::move(keep)});
    conversion.write("-o", out);
    return conversion;
}

Values values_of(const TensorStore& store, const std::string& name) {
    const StoredTensor* tensor = store.find(name);
    if (!tensor) tensor = store.find(name + "_packed");
    REQUIRE(tensor);
    Values out(tensor->values());
    store.read_rows(*tensor, 0, out);
    return out;
}

Values in_bf16(Values values) {
    quantize(find_format("bf16"), values, values, {.overflow = Overflow::nonsaturate});
    return values;
}

std::size_t differences(const Values& a, const Values& b) {
    REQUIRE(a.size() == b.size());
    std::size_t out = 0;
    for (std::size_t i = 0; i < a.size(); ++i) out += a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]));
    return out;
}

double relative(const Values& w, const Values& x) {
    double error = 0, all = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        error += std::pow(static_cast<double>(w[i]) - static_cast<double>(x[i]), 2);
        all += std::pow(static_cast<double>(w[i]), 2);
    }
    return std::sqrt(error / all);
}

std::string slurp(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(folder))
        out[entry.path().filename().string()] = entry.is_directory() ? "" : slurp(entry.path());
    return out;
}

std::vector<std::string> quantised_layouts() {
    std::vector<std::string> out;
    for (const ConvertTarget& target : convert_targets())
        if (target.has_codes()) out.emplace_back(target.name);
    return out;
}

// The values that another library reads, against ours: none differs. NVFP4 is decoded in BF16 there.
void check_same_values(const fs::path& ours, const fs::path& theirs, const std::string& layout) {
    const TensorStore own(ours), other(theirs);
    std::size_t compared = 0;
    for (const StoredTensor& tensor : other.tensors()) {
        CAPTURE(tensor.name);
        const Values expected = values_of(other, tensor.name), got = values_of(own, tensor.name);
        CHECK(differences(layout == "nvfp4" ? in_bf16(got) : got, expected) == 0);
        compared += expected.size();
    }
    CHECK(compared == 3 * 128 * 64 + 72 * 160);
}

// What the constructor or write() says; empty: nothing was refused. Nothing may be left of a refused one.
std::string refusal(const fs::path& from, const std::string& to, std::vector<std::string> keep = {},
                    ErrorKind kind = ErrorKind::input) {
    const Scratch scratch;
    try {
        convert(from, to, scratch / "out", std::move(keep));
    } catch (const Error& error) {
        CHECK(error.kind() == kind);
        CHECK(files_in(scratch.path).empty());
        return error.why();
    }
    return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("convert: transformers and compressed-tensors read the same values, as committed") {
    const Scratch scratch;
    CHECK(Json::parse(slurp(kGolden / "versions.json")).contains("compressed-tensors"));
    for (const std::string& layout : quantised_layouts()) {
        CAPTURE(layout);
        convert(kGolden / "model.safetensors", layout, scratch / layout);
        check_same_values(scratch / layout + "/model.safetensors", kGolden / (layout + ".safetensors"),
                          layout);
    }
}

TEST_CASE("convert: transformers and compressed-tensors that are installed here read the same values") {
    const Scratch scratch;
    fs::create_directories(scratch / "in");
    for (const std::string& layout : quantised_layouts())
        convert(kGolden / "model.safetensors", layout, scratch / ("in/" + layout));
    const std::string command = "python3 " FP8LAB_SOURCE "/scripts/convert_parity.py decode " +
                                (scratch / "in") + " " + (scratch / "out") + " >" + (scratch / "log") +
                                " 2>&1";
    const int status = std::system(command.c_str());
    if (!fs::exists(scratch / "out/versions.json")) {
        const std::string log = slurp(scratch / "log");
        CAPTURE(log);
        CAPTURE(status);
        REQUIRE((WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 127));  // else the script itself failed
        std::printf("skipped: 0 of 5 layouts compared: %s", log.c_str());
        return;
    }
    for (const std::string& layout : quantised_layouts()) {
        CAPTURE(layout);
        check_same_values(scratch / ("in/" + layout + "/model.safetensors"),
                          scratch / ("out/" + layout + ".safetensors"), layout);
    }
}

TEST_CASE("convert: a second conversion changes no value, and the errors are those of the formats") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Scratch scratch;
        const Model model = small_model(seed);
        const fs::path in = save(scratch / "in/model.safetensors", model);
        for (const std::string& layout : quantised_layouts()) {
            CAPTURE(layout);
            CAPTURE(seed);
            convert(in, layout, scratch / layout);
            convert(scratch / layout + "/model.safetensors", layout, scratch / (layout + "-again"));
            const TensorStore once(scratch / layout + "/model.safetensors"),
                twice(scratch / (layout + "-again/model.safetensors"));
            CHECK(once.tensors().size() == twice.tensors().size());
            for (const auto& [name, tensor] : model) {
                CAPTURE(name);
                const Values values = values_of(once, name);
                CHECK(differences(values, values_of(twice, name)) == 0);
                if (name.find("_proj") == name.npos) {
                    CHECK(differences(values, in_bf16(tensor.values)) == 0);
                } else {
                    const bool fp4 = layout == "nvfp4" || layout == "mxfp4";
                    const double error = relative(tensor.values, values);
                    CHECK(error < (!fp4 ? 0.030 : layout == "nvfp4" ? 0.100 : 0.150));
                    CHECK(error > (!fp4 ? 0.020 : layout == "nvfp4" ? 0.085 : 0.110));
                }
            }
        }
    }
}

TEST_CASE("convert: q, k and v share one global scale, also across files, and o does not") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Scratch scratch;
        const std::string q = kLayer + "self_attn.q_proj.weight", k = kLayer + "self_attn.k_proj.weight",
                          v = kLayer + "self_attn.v_proj.weight", o = kLayer + "self_attn.o_proj.weight";
        const Model first = {{q, weight(seed, 256, 256)}, {o, weight(seed + 5, 256, 256)}},
                    second = {{k, weight(seed + 10, 128, 256, 0.06F)}, {v, weight(seed + 20, 128, 256)}};
        save(scratch / "in/model-1.safetensors", first);
        save(scratch / "in/model-2.safetensors", second);
        Json index;
        for (const auto& [name, tensor] : first) index["weight_map"][name] = "model-1.safetensors";
        for (const auto& [name, tensor] : second) index["weight_map"][name] = "model-2.safetensors";
        write_file(scratch / "in/model.safetensors.index.json", index.dump());
        convert(scratch / "in/model.safetensors.index.json", "nvfp4", scratch / "out");
        const TensorStore out(scratch / "out/model.safetensors.index.json");
        std::map<std::string, float> global;
        for (const StoredTensor& tensor : out.tensors())
            if (tensor.scales) global[tensor.name] = tensor.scales->global->value;
        CHECK(global.size() == 4);
        CHECK(global[q + "_packed"] == global[k + "_packed"]);
        CHECK(global[q + "_packed"] == global[v + "_packed"]);
        CHECK(global[q + "_packed"] != global[o + "_packed"]);
        for (const auto* part : {&first, &second})
            for (const auto& [name, tensor] : *part) {
                CAPTURE(name);
                const double error = relative(tensor.values, values_of(out, name));
                CHECK(error > 0.090);
                CHECK(error < 0.096);
            }
        // The index lists every tensor of both files.
        const Json made = Json::parse(slurp(scratch / "out/model.safetensors.index.json"));
        CHECK(made["weight_map"].size() == 12);
        CHECK(made["weight_map"][k + "_global_scale"] == "model-2.safetensors");
        // One file of the two is refused: the other has parts of its group.
        CHECK(has(refusal(scratch / "in/model-1.safetensors", "nvfp4"), "one file of a model in several"));
    }
}

TEST_CASE("convert: what stays, what is copied, and the configuration") {
    const Scratch scratch;
    const fs::path in = save(scratch / "in/model.safetensors", small_model(1));
    write_file(scratch / "in/config.json",
               R"({"model_type":"llama","rope_theta":500000.0,"quantization_config":{"quant_method":"fp8"},
                   "text_config":{"x":1,"quantization_config":{}}})");
    for (const char* const name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json",
                                   "LICENSE", "README.md", "hf_quant_config.json", "pytorch_model.bin"})
        write_file(scratch / ("in/" + std::string(name)), "{}");
    const Conversion conversion = convert(in, "e4m3-block128", scratch / "out", {"down_proj"});
    CHECK(conversion.cast() == 3);
    std::map<std::string, std::string_view> stays;
    for (const ConvertedTensor& each : conversion.tensors()) stays[each.name] = each.stays;
    CHECK(stays == std::map<std::string, std::string_view>{{kLayer + "self_attn.q_proj.weight", ""},
                                                           {kLayer + "self_attn.k_proj.weight", ""},
                                                           {kLayer + "self_attn.v_proj.weight", ""},
                                                           {kLayer + "mlp.down_proj.weight", "--keep"},
                                                           {kLayer + "mlp.gate.weight", "router"},
                                                           {kLayer + "input_layernorm.weight", "vector"},
                                                           {"model.embed_tokens.weight", "embedding"},
                                                           {"lm_head.weight", "head"}});
    const auto files = files_in(scratch / "out");
    std::vector<std::string> names;
    for (const auto& [name, text] : files) names.push_back(name);
    CHECK(names == std::vector<std::string>{"LICENSE", "config.json", "generation_config.json",
                                            "model.safetensors", "tokenizer.json", "tokenizer_config.json"});
    CHECK(conversion.not_copied() ==
          std::vector<std::string>{"README.md", "hf_quant_config.json", "pytorch_model.bin"});
    const Json ignored = {"lm_head", kLayer + "mlp.down_proj", kLayer + "mlp.gate"};
    CHECK(Json::parse(files.at("config.json")) == Json{{"model_type", "llama"},
                                                       {"rope_theta", 500000.0},
                                                       {"text_config", {{"x", 1}}},
                                                       {"quantization_config",
                                                        {{"quant_method", "fp8"},
                                                         {"fmt", "e4m3"},
                                                         {"activation_scheme", "dynamic"},
                                                         {"weight_block_size", {128, 128}},
                                                         {"modules_to_not_convert", ignored},
                                                         {"ignored_layers", ignored}}}});
    // Back in BF16 there is no such block.
    convert(scratch / "out/model.safetensors", "bf16", scratch / "back");
    CHECK(Json::parse(slurp(scratch / "back/config.json")) ==
          Json{{"model_type", "llama"}, {"rope_theta", 500000.0}, {"text_config", {{"x", 1}}}});
    const TensorStore coded(scratch / "out/model.safetensors"), back(scratch / "back/model.safetensors");
    for (const StoredTensor& tensor : back.tensors()) {
        CHECK(tensor.dtype == "BF16");
        CHECK(differences(values_of(back, tensor.name), in_bf16(values_of(coded, tensor.name))) == 0);
    }
}

TEST_CASE("convert: every published layout that is read becomes BF16 with its values") {
    std::size_t converted = 0;
    for (const auto& entry : fs::directory_iterator(FP8LAB_SOURCE "/tests/unit/tensors/layouts")) {
        const fs::path path = entry.path();
        if (path.extension() != ".safetensors" || path.stem() == "right") continue;
        CAPTURE(path);
        const auto store = std::make_shared<const TensorStore>(path);
        const bool whole = std::ranges::none_of(store->tensors(), [](const StoredTensor& tensor) {
            return tensor.role == TensorRole::refused || tensor.role == TensorRole::unscaled;
        });
        const bool swapped = path.stem() == "gpt-oss-hf";
        if (!whole || swapped) {
            CHECK_FALSE(refusal(path, "bf16").empty());
            continue;
        }
        const Scratch scratch;
        const Conversion conversion = convert(path, "bf16", scratch / "out");
        const TensorStore out(scratch / "out/" + path.filename().string());
        for (const ConvertedTensor& each : conversion.tensors()) {
            if (each.copied) continue;
            CAPTURE(each.name);
            Values expected(each.from->values());
            store->read_rows(*each.from, 0, expected);
            const StoredTensor* const made = out.find(each.name);
            REQUIRE(made);
            CHECK(made->shape == each.from->shape);
            CHECK(differences(values_of(out, each.name), in_bf16(expected)) == 0);
            for (const char* const ending : {"_packed", "_qdata", ".blocks", "_scale"})
                CHECK_FALSE(each.name.ends_with(ending));
        }
        ++converted;
    }
    CHECK(converted >= 30);
}

TEST_CASE("convert: refused by name before anything is written") {
    const Scratch scratch;
    Model model = small_model(1);
    const fs::path in = save(scratch / "in/model.safetensors", model);
    CHECK(refusal(in, "nvfp4").empty());
    CHECK(has(refusal(in, "fp8", {}, ErrorKind::usage), "valid: bf16 e4m3-block128"));
    CHECK(has(refusal(in, "nvfp4", {"expert"}, ErrorKind::usage), "'expert'"));
    CHECK(has(refusal(in, "nvfp4", {"k_proj"}, ErrorKind::usage), "k_proj.weight"));
    CHECK(refusal(in, "nvfp4", {"self_attn"}).empty());

    const std::string k = kLayer + "self_attn.k_proj.weight", down = kLayer + "mlp.down_proj.weight";
    model[k] = weight(3, 96, 256);
    save(in, model);
    CHECK(has(refusal(in, "e4m3-block128"), k));
    CHECK_FALSE(has(refusal(in, "e4m3-block128"), down));  // ragged, and of no group
    CHECK(refusal(in, "e4m3-row").empty());
    CHECK(refusal(in, "e4m3-block128", {"self_attn"}).empty());

    model[down] = weight(3, 64, 48);
    save(in, model);
    CHECK(has(refusal(in, "mxfp4"), down));
    CHECK(has(refusal(in, "mxfp8"), "32 divides"));
    CHECK(refusal(in, "nvfp4").empty());
    model[down] = weight(3, 64, 40);
    save(in, model);
    CHECK(has(refusal(in, "nvfp4"), "16 divides"));
    CHECK(refusal(in, "nvfp4", {"down_proj"}).empty());

    model[down].values[7] = std::nanf("");
    save(in, model);
    CHECK(has(refusal(in, "e4m3-row"), down + "' has NaN or Inf"));
    CHECK(refusal(in, "e4m3-row", {"down_proj"}).empty());
    CHECK(refusal(in, "bf16").empty());

    CHECK(has(refusal(FP8LAB_SOURCE "/tests/unit/tensors/layouts/plain.safetensors", "bf16"),
              "codes without a scale"));
    // The tensor, why, and what to do instead.
    const std::string experts =
        refusal(FP8LAB_SOURCE "/tests/unit/tensors/layouts/gpt-oss-hf.safetensors", "bf16");
    CHECK(has(experts, "_blocks"));
    CHECK(has(experts, "stored transposed"));
    CHECK(has(experts, "Mxfp4Config(dequantize=True)"));
    CHECK(has(
        refusal(save(scratch / "norm/model.safetensors", {{"norm.weight", {{4}, Values(4, 1.F)}}}), "mxfp8"),
        "no tensor would be cast"));
    write_file(scratch / "in/config.json", R"({"model_type":"gpt2"})");
    CHECK(has(refusal(in, "e4m3-row", {"down_proj"}), "(K, N)"));
    CHECK(refusal(in, "bf16").empty());
}

TEST_CASE("convert: the same bytes on any number of threads, and parts of a matrix are the whole") {
    const Scratch scratch;
    // More than one part: 2^19 values.
    const fs::path in =
        save(scratch / "in/model.safetensors",
             {{"a.up_proj.weight", weight(1, 700, 1024)}, {"a.gate_proj.weight", weight(2, 384, 1024)}});
    for (const ConvertTarget& target : convert_targets()) {
        const std::string to(target.name);
        CAPTURE(to);
        if (to == "e4m3-block128") continue;  // 700 rows
        set_threads(1);
        convert(in, to, scratch / (to + "-1"));
        set_threads(3);
        convert(in, to, scratch / (to + "-3"));
        set_threads(0);
        CHECK(files_in(scratch / (to + "-1")) == files_in(scratch / (to + "-3")));
        if (!target.has_codes()) continue;
        const TensorStore out(scratch / (to + "-1/model.safetensors"));
        const Values w = weight(1, 700, 1024).values;
        const float whole = std::max(amax(w), amax(weight(2, 384, 1024).values));
        Values expected(w.size());
        decode_layout(target.layout(), cast_to_layout(target.layout(), w, 700, 1024, whole), 1024, expected);
        CHECK(differences(values_of(out, "a.up_proj.weight"), expected) == 0);
    }
}

TEST_CASE("convert: nothing is left after a cancel, a full disk, or beside a folder that is there") {
    const Scratch scratch;
    const fs::path in = save(scratch / "in/model.safetensors", small_model(1));
    const auto store = std::make_shared<const TensorStore>(in);
    fs::create_directories(scratch / "outs");
    for (int parts = 0; parts < 40; parts += 3) {
        Conversion conversion(store, {.to = "nvfp4", .keep = {}});
        int asked = 0;
        const AskBetween ask([&] {
            if (asked++ >= parts) throw Cancelled();
        });
        try {
            conversion.write("-o", scratch / "outs/out");
            fs::remove_all(scratch / "outs/out");
            CHECK(parts > 5);
        } catch (const Cancelled&) {
        }
        CHECK(files_in(scratch / "outs").empty());
    }

    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = 4096;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_THROWS_AS(convert(in, "mxfp8", scratch / "outs/out"), Error);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK(files_in(scratch / "outs").empty());

    CHECK_THROWS_WITH_AS(convert(in, "mxfp8", scratch / "not/there"), doctest::Contains("cannot be made"),
                         Error);
    convert(in, "mxfp8", scratch / "outs/out");
    const auto made = files_in(scratch / "outs/out");
    CHECK_THROWS_WITH_AS(convert(in, "nvfp4", scratch / "outs/out"), doctest::Contains("there already"),
                         Error);
    CHECK(files_in(scratch / "outs/out") == made);
    CHECK(files_in(scratch / "outs").size() == 1);
}
