#include "core/plan/model_size.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/json/read_json.h"
#include "core/plan/architecture.h"

namespace fp8lab::plan {
namespace {

using Json = nlohmann::json;

constexpr int kMost = 1 << 24, kMostLayers = 4096;  // of any size

// A size and its names: GPT-2 has names of its own.
struct Name {
    std::string_view usual, gpt2 = {};
};

class Config {
  public:
    Config(const Json& json, const std::string& where) : json_(json), where_(where) {
        if (!json.is_object()) refuse("is not an object with a model's sizes");
    }
    // What the config has not is as in transformers' configuration of that model_type; a null is no size.
    void set_defaults(std::string_view json) {
        if (!json.empty()) defaults_ = Json::parse(json);
    }
    const Json* find(std::string_view name) const {
        for (const Json* json : {&json_, &defaults_})
            if (const auto found = json->find(name); found != json->end())
                return found->is_null() ? nullptr : &*found;
        return nullptr;
    }
    bool truth(std::string_view name, bool otherwise) const {
        const Json* value = find(name);
        return value && value->is_boolean() ? value->get<bool>() : otherwise;
    }
    bool has(const Bias& bias) const {
        return bias.where != Bias::none && (bias.key.empty() || truth(bias.key, bias.otherwise));
    }
    // 0 is a size where `least` says so: a model without dense layers at its start.
    std::optional<int> maybe(Name name, int least = 1, int most = kMost) const {
        for (const std::string_view one : {name.usual, name.gpt2}) {
            const Json* value = one.empty() ? nullptr : find(one);
            if (!value) continue;
            try {
                return integer_from(*value, least, most);
            } catch (const Error& error) {
                refuse(fmt::format("'{}' {}", one, error.why()));
            }
        }
        return std::nullopt;
    }
    int number(Name name, int least = 1, int most = kMost) const {
        const auto value = maybe(name, least, most);
        if (!value) refuse(fmt::format("'{}' is missing", name.usual));
        return *value;
    }
    [[noreturn]] void refuse(const std::string& why) const { throw input_error(where_, why); }

  private:
    const Json& json_;
    const std::string& where_;
    Json defaults_ = Json::object();
};

std::string known_types() {
    std::vector<std::string_view> out;
    for (const Architecture& row : architectures()) out.push_back(row.type);
    return fmt::format("{}", fmt::join(out, ", "));
}

// The language part of a config.json with its model_type.
Json language_part(const Json& json) {
    if (!json.is_object() || !json.contains("text_config") || !json["text_config"].is_object()) return json;
    Json inner = json["text_config"];
    // Gemma 3's inner config does not always name its type; Qwen3-VL's language part is a Qwen3.
    const auto type = [](const Json& of) {
        const auto found = of.find("model_type");
        return found != of.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    if (type(inner).empty() && type(json) == "gemma3") inner["model_type"] = "gemma3_text";
    if (type(inner) == "qwen3_vl_text") inner["model_type"] = "qwen3";
    if (!why_refused(type(json)).empty()) inner["model_type"] = type(json);
    if (!inner.contains("tie_word_embeddings") && json.contains("tie_word_embeddings"))
        inner["tie_word_embeddings"] = json["tie_word_embeddings"];
    return inner;
}

const Architecture& architecture_of(const Config& config) {
    const Json* type = config.find("model_type");
    if (!type || !type->is_string())
        config.refuse("'model_type' is missing: parameters are not guessed; known: " + known_types());
    const auto name = type->get<std::string>();
    if (const std::string_view why = why_refused(name); !why.empty())
        config.refuse(fmt::format("model_type '{}' is not counted: {}", name, why));
    const Architecture* row = find_architecture(name);
    if (!row)
        config.refuse(fmt::format("model_type '{}' is not known: parameters are not guessed; known: {}",
                                  quote_from(name), known_types()));
    return *row;
}

class Counting {
  public:
    Counting(const Config& config, const Architecture& row) : config_(config), row_(row) {
        out_.model_type = row.type;
        out_.layers = config.number({"num_hidden_layers", "n_layer"}, 1, kMostLayers);
        out_.hidden = config.number({"hidden_size", "n_embd"});
        out_.heads = config.number({"num_attention_heads", "n_head"});
        out_.kv_heads = config.maybe({"num_key_value_heads"}).value_or(out_.heads);
        out_.vocabulary = config.number({"vocab_size"});
        out_.tied = config.truth("tie_word_embeddings", row.tied);
        out_.like_llama = row.gated && row.norms == 2 && row.qk_norm == QkNorm::none && !row.sinks &&
                          !row.latent && row.experts.count.empty();
        constexpr int kGptRatio = 4;  // of n_inner where it is null
        const auto ffn = config.maybe({"intermediate_size", "n_inner"});
        if (!ffn && row.type != "gpt2") config.refuse("'intermediate_size' is missing");
        out_.ffn = ffn ? *ffn : kGptRatio * out_.hidden;
        out_.head_dim = head_dim();
        if (out_.heads % out_.kv_heads != 0)
            config.refuse(fmt::format("{} KV heads do not divide {} heads", out_.kv_heads, out_.heads));
    }

    ModelSize count() {
        const double d = out_.hidden, layers = out_.layers;
        out_.embedding = out_.vocabulary * d;
        const double ends = out_.embedding * (out_.tied ? 1 : 2) + row_.final_norm * d +
                            (row_.head_bias ? out_.vocabulary : 0) +
                            (row_.positions.empty() ? 0 : config_.number({row_.positions}) * d);
        const double common = ends + layers * (attention() + row_.norms * d);
        const Mlp mlp = mlps();
        out_.parameters = common + mlp.all;
        out_.active = common + mlp.active;
        for (int i = 0; i < out_.layers; ++i) out_.kv.push_back({kv_numbers(), window(i)});
        if (config_.maybe({"num_nextn_predict_layers"}, 0).value_or(0) > 0)
            out_.note = "The layers for multi-token prediction are not counted.";
        if (config_.truth("use_sliding_window", false) && row_.window == Window::none)
            out_.note = "The KV cache is that of full attention: the sliding window is not counted.";
        return out_;
    }

  private:
    struct Mlp {
        double all = 0, active = 0;  // of all layers
    };

    int head_dim() const {
        if (row_.latent) return out_.hidden / out_.heads;
        if (const auto size = config_.maybe({"head_dim"})) return *size;
        if (out_.hidden % out_.heads != 0)
            config_.refuse(
                fmt::format("{} heads do not divide a hidden size of {}", out_.heads, out_.hidden));
        return out_.hidden / out_.heads;
    }

    double attention() const { return row_.latent ? latent_attention() : grouped_attention(); }
    double grouped_attention() const {
        const double d = out_.hidden, q = 1.0 * out_.heads * out_.head_dim,
                     kv = 1.0 * out_.kv_heads * out_.head_dim;
        double out = 2 * d * q + 2 * d * kv;
        if (config_.has(row_.attention_bias))
            out += q + 2 * kv + (row_.attention_bias.where == Bias::all ? d : 0);
        if (row_.qk_norm == QkNorm::per_head) out += 2 * out_.head_dim;
        if (row_.qk_norm == QkNorm::whole) out += q + kv;
        return out + (row_.sinks ? out_.heads : 0);
    }
    double latent_attention() const {
        const double d = out_.hidden, heads = out_.heads, k = config_.number({"kv_lora_rank"}),
                     nope = config_.number({"qk_nope_head_dim"}), rope = config_.number({"qk_rope_head_dim"});
        // MiniCPM3's config may leave out v_head_dim, which is hidden / heads there.
        const double v = row_.type == "minicpm3" ? config_.maybe({"v_head_dim"}).value_or(out_.head_dim)
                                                 : config_.number({"v_head_dim"});
        const auto q = config_.maybe({"q_lora_rank"});
        const double queries = q ? d * *q + *q + *q * heads * (nope + rope) : d * heads * (nope + rope);
        return queries + d * (k + rope) + k + k * heads * (nope + v) + heads * v * d;
    }

    double mlp(double width, bool biased) const {
        const double d = out_.hidden, ups = row_.gated ? 2 : 1;
        return (ups + 1) * d * width + (biased ? ups * width + d : 0);
    }
    Mlp mlps() {
        const Experts& of = row_.experts;
        const double dense = mlp(out_.ffn, config_.has(row_.mlp_bias));
        if (of.count.empty()) return {out_.layers * dense, out_.layers * dense};
        const double d = out_.hidden, count = config_.number({of.count}), width = config_.number({of.width}),
                     chosen = config_.number({"num_experts_per_tok"});
        if (chosen > count)
            config_.refuse(fmt::format("'num_experts_per_tok' is {}, there are {} experts", chosen, count));
        const double each = mlp(width, of.biased),
                     shared = of.shared.empty() ? 0 : config_.maybe({of.shared}, 0).value_or(0) * each,
                     router = d * count + (of.biased ? count : 0);
        const int dense_first = of.dense_first.empty() ? 0 : config_.number({of.dense_first}, 0);
        Mlp out;
        for (int i = 0; i < out_.layers; ++i) {
            const bool is_dense = i < dense_first || !has_experts(i);
            out.all += is_dense ? dense : count * each + shared + router;
            out.active += is_dense ? dense : chosen * each + shared + router;
        }
        return out;
    }
    // Qwen3's config may say that only every so many-th layer has experts, and which have none.
    bool has_experts(int layer) const {
        const int step = config_.maybe({"decoder_sparse_step"}).value_or(1);
        const Json* dense = config_.find("mlp_only_layers");
        if (dense && dense->is_array() && std::ranges::find(*dense, Json(layer)) != dense->end())
            return false;
        return (layer + 1) % step == 0;
    }

    double kv_numbers() const {
        if (row_.latent) return config_.number({"kv_lora_rank"}) + config_.number({"qk_rope_head_dim"});
        return 2.0 * out_.kv_heads * out_.head_dim;
    }
    int window(int layer) const {
        if (row_.window == Window::none) return 0;
        const int tokens = config_.maybe({"sliding_window"}).value_or(0);
        if (row_.window == Window::every_layer) return tokens;
        if (tokens == 0) config_.refuse("'sliding_window' is missing");
        const Json* types = config_.find("layer_types");
        if (types && types->is_array() && types->size() == static_cast<std::size_t>(out_.layers)) {
            const Json& type = (*types)[static_cast<std::size_t>(layer)];
            return type == "full_attention" ? 0 : tokens;
        }
        const int every = config_.maybe({"sliding_window_pattern"}).value_or(row_.full_every);
        return (layer + 1) % every == 0 ? 0 : tokens;
    }

    const Config& config_;
    const Architecture& row_;
    ModelSize out_;
};

// What is read besides the keys of the rows.
constexpr std::array<std::string_view, 32> kKeys = {"model_type",
                                                    "num_hidden_layers",
                                                    "n_layer",
                                                    "hidden_size",
                                                    "n_embd",
                                                    "num_attention_heads",
                                                    "n_head",
                                                    "num_key_value_heads",
                                                    "head_dim",
                                                    "intermediate_size",
                                                    "n_inner",
                                                    "vocab_size",
                                                    "tie_word_embeddings",
                                                    "n_positions",
                                                    "sliding_window",
                                                    "sliding_window_pattern",
                                                    "layer_types",
                                                    "use_sliding_window",
                                                    "attention_bias",
                                                    "mlp_bias",
                                                    "use_bias",
                                                    "num_experts_per_tok",
                                                    "decoder_sparse_step",
                                                    "mlp_only_layers",
                                                    "num_nextn_predict_layers",
                                                    "q_lora_rank",
                                                    "kv_lora_rank",
                                                    "qk_nope_head_dim",
                                                    "qk_rope_head_dim",
                                                    "v_head_dim",
                                                    "first_k_dense_replace",
                                                    "n_shared_experts"};

}  // namespace

double ModelSize::kv_numbers(double tokens) const {
    double out = 0;
    for (const KvLayer& layer : kv)
        out += layer.numbers * (layer.window > 0 ? std::min<double>(tokens, layer.window) : tokens);
    return out;
}

ModelSize read_model_size(std::string_view text, const std::string& where) {
    const Json whole = parse_json(text, where), json = language_part(whole);
    Config config(json, where);
    const Architecture& row = architecture_of(config);
    config.set_defaults(row.defaults);
    ModelSize out = Counting(config, row).count();
    if (whole.contains("text_config") || Config(whole, where).truth("language_part", false))
        out.note = "The language part alone: nothing of the vision part is counted." +
                   (out.note.empty() ? "" : " " + out.note);
    return out;
}

std::string compact_config(std::string_view text, const std::string& where) {
    read_model_size(text, where);
    const Json whole = parse_json(text, where), json = language_part(whole);
    Json out = Json::object();
    const auto keep = [&](std::string_view key) {
        if (!key.empty() && json.contains(key)) out[std::string(key)] = json.at(std::string(key));
    };
    for (const std::string_view key : kKeys) keep(key);
    for (const Architecture& row : architectures()) keep(row.experts.count), keep(row.experts.width);
    if (whole.contains("text_config")) out["language_part"] = true;
    return out.dump();
}

}  // namespace fp8lab::plan
