#include "core/plan/model_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/json/read_json.h"
#include "core/plan/architecture.h"
#include "core/plan/model_config.h"

namespace fp8lab::plan {
namespace {

using Json = nlohmann::json;

constexpr SizeName kHidden{"hidden_size", "n_embd"}, kInner{"intermediate_size", "n_inner"};

class Counting {
  public:
    Counting(const ModelConfig& config, const Architecture& row) : config_(config), row_(row) {
        out_.model_type = row.type;
        out_.layers = config.number({"num_hidden_layers", "n_layer"}, 1, kMostLayers);
        out_.hidden = config.number(kHidden);
        out_.heads = config.number({"num_attention_heads", "n_head"});
        out_.kv_heads = config.maybe({"num_key_value_heads"}).value_or(out_.heads);
        out_.vocabulary = config.number({"vocab_size"});
        out_.tied = config.truth("tie_word_embeddings", row.tied);
        out_.like_llama = row.gated && row.norms == 2 && row.qk_norm == QkNorm::none && !row.sinks &&
                          !row.latent && row.experts.count.empty();
        constexpr int kGptRatio = 4;  // of n_inner where it is null
        const auto ffn = config.maybe(kInner);
        if (!ffn && row.type != "gpt2") config.refuse("'intermediate_size' is missing");
        out_.ffn = ffn ? *ffn : kGptRatio * out_.hidden;
        out_.head_dim = head_dim();
        if (out_.heads % out_.kv_heads != 0)
            config.refuse(fmt::format("{} KV heads do not divide {} heads", out_.kv_heads, out_.heads));
    }

    ModelSize count() {
        const double d = out_.hidden;
        out_.embedding = out_.vocabulary * d;
        out_.matrices = out_.embedding;  // the head
        out_.parameters = out_.embedding * (out_.tied ? 1 : 2) + row_.final_norm * d +
                          (row_.head_bias ? out_.vocabulary : 0) +
                          (row_.positions.empty() ? 0 : config_.number({row_.positions}) * d) +
                          out_.layers * row_.norms * d;
        out_.active = out_.parameters;
        row_.latent ? add_latent_attention() : add_grouped_attention();
        add_mlps();
        for (int i = 0; i < out_.layers; ++i) out_.kv.push_back({kv_numbers(), window(i)});
        if (config_.maybe({"num_nextn_predict_layers"}, 0).value_or(0) > 0)
            out_.note = "The layers for multi-token prediction are not counted.";
        if (config_.truth("use_sliding_window", false) && row_.window == Window::none)
            out_.note = "The KV cache is that of full attention: the sliding window is not counted.";
        return out_;
    }

  private:
    int head_dim() const {
        if (row_.latent) return out_.hidden / out_.heads;
        if (const auto size = config_.maybe({"head_dim"})) return *size;
        if (out_.hidden % out_.heads != 0)
            config_.refuse(
                fmt::format("{} heads do not divide a hidden size of {}", out_.heads, out_.hidden));
        return out_.hidden / out_.heads;
    }

    void add(double all, double used) {
        out_.parameters += all;
        out_.active += used;
    }
    void add(double every) { add(every, every); }
    void add(const Linear& linear) {
        if (linear.layers == 0) return;
        const double each = linear.out * linear.in * linear.layers;
        add(each * linear.experts, each * linear.chosen);
        out_.matrices += each * linear.chosen;
        out_.linears.push_back(linear);
    }

    void add_grouped_attention() {
        const double d = out_.hidden, q = 1.0 * out_.heads * out_.head_dim,
                     kv = 1.0 * out_.kv_heads * out_.head_dim;
        out_.attention_width = q;
        const std::string hidden = config_.name_of(kHidden),
                          heads = config_.find("head_dim") ? "head_dim" : hidden;
        add({.name = "qkv",
             .out = q + 2 * kv,
             .in = d,
             .out_from = heads,
             .in_from = hidden,
             .layers = out_.layers});
        add({.name = "out", .out = d, .in = q, .out_from = hidden, .in_from = heads, .layers = out_.layers});
        double vectors = row_.sinks ? out_.heads : 0;
        if (config_.has(row_.attention_bias))
            vectors += q + 2 * kv + (row_.attention_bias.where == Bias::all ? d : 0);
        if (row_.qk_norm == QkNorm::per_head) vectors += 2.0 * out_.head_dim;
        if (row_.qk_norm == QkNorm::whole) vectors += q + kv;
        add(vectors * out_.layers);
    }
    void add_latent_attention() {
        const double d = out_.hidden, heads = out_.heads, k = config_.number({"kv_lora_rank"}),
                     nope = config_.number({"qk_nope_head_dim"}), rope = config_.number({"qk_rope_head_dim"});
        // MiniCPM3's config may leave out v_head_dim, which is hidden / heads there.
        const double v = row_.type == "minicpm3" ? config_.maybe({"v_head_dim"}).value_or(out_.head_dim)
                                                 : config_.number({"v_head_dim"});
        const auto rank = config_.maybe({"q_lora_rank"});
        const double queries = heads * (nope + rope);
        out_.attention_width = heads * (nope + rope + v) / 2;
        const std::string hidden = config_.name_of(kHidden);
        const auto latent = [&](const char* name, double out, const std::string& out_from, double in,
                                const std::string& in_from) {
            add({.name = name,
                 .out = out,
                 .in = in,
                 .out_from = out_from,
                 .in_from = in_from,
                 .layers = out_.layers});
        };
        if (rank) {
            latent("q_a, kv_a", *rank + k + rope, "q_lora_rank", d, hidden);
            latent("q_b", queries, "qk_nope_head_dim", *rank, "q_lora_rank");
        } else {
            latent("q, kv_a", queries + k + rope, "kv_lora_rank", d, hidden);
        }
        latent("kv_b", heads * (nope + v), "v_head_dim", k, "kv_lora_rank");
        latent("out", d, hidden, heads * v, "v_head_dim");
        add((k + rank.value_or(0)) * out_.layers);  // norms of the latent numbers
    }

    // `linear`: all but its name and sizes. `field`: of the width.
    void add_mlp(const std::string& prefix, double width, const std::string& field, Linear linear) {
        const double d = out_.hidden;
        const std::string hidden = config_.name_of(kHidden);
        linear.name = prefix + (row_.gated ? "gate_up" : "up");
        linear.out = row_.gated ? 2 * width : width;
        linear.in = d;
        linear.out_from = field, linear.in_from = hidden;
        add(linear);
        linear.name = prefix + "down";
        linear.out = d;
        linear.in = width;
        linear.out_from = hidden, linear.in_from = field;
        add(linear);
    }
    void add_mlps() {
        const Experts& of = row_.experts;
        const double d = out_.hidden;
        const int ups = row_.gated ? 2 : 1;
        const std::string dense = config_.name_of(kInner);
        if (of.count.empty()) {
            add_mlp("", out_.ffn, dense, {.layers = out_.layers});
            if (config_.has(row_.mlp_bias)) add(out_.layers * (1.0 * ups * out_.ffn + d));
            return;
        }
        const int count = config_.number({of.count}), width = config_.number({of.width}),
                  chosen = config_.number({"num_experts_per_tok"}),
                  shared = of.shared.empty() ? 0 : config_.maybe({of.shared}, 0).value_or(0);
        if (chosen > count)
            config_.refuse(fmt::format("'num_experts_per_tok' is {}, there are {} experts", chosen, count));
        const int dense_first = of.dense_first.empty() ? 0 : config_.number({of.dense_first}, 0, out_.layers);
        int sparse = 0;
        for (int i = 0; i < out_.layers; ++i)
            if (i >= dense_first && has_experts(i)) ++sparse;
        const std::string expert(of.width);
        add_mlp("", out_.ffn, dense, {.layers = out_.layers - sparse});
        if (shared > 0) add_mlp("shared ", 1.0 * shared * width, expert, {.layers = sparse});
        add_mlp("expert ", width, expert, {.layers = sparse, .experts = count, .chosen = chosen});
        add(sparse * d * count);  // the router
        out_.matrices += sparse * d * count;
        if (!of.biased) return;
        add(1.0 * sparse * count);
        const double biases = sparse * (1.0 * ups * width + d);
        add(biases * count, biases * chosen);
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

    const ModelConfig& config_;
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

bool ModelSize::has_experts() const {
    return std::ranges::any_of(linears, [](const Linear& linear) { return linear.experts > 1; });
}

double ModelSize::kv_numbers(double tokens) const {
    double out = 0;
    for (const KvLayer& layer : kv)
        out += layer.numbers * (layer.window > 0 ? std::min<double>(tokens, layer.window) : tokens);
    return out;
}

ModelSize read_model_size(std::string_view text, const std::string& where) {
    const Json whole = parse_json(text, where), json = language_part(whole);
    ModelConfig config(json, where);
    const Architecture& row = architecture_of(config);
    config.set_defaults(row.defaults);
    ModelSize out = Counting(config, row).count();
    if (whole.contains("text_config") || ModelConfig(whole, where).truth("language_part", false))
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
