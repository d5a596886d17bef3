// What L11 shows of one state: the losses of each layer, the outputs against FP32, the uniform formats, all mixes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/inference/mixes.h"
#include "labs/lower/model_network.h"

namespace fp8lab::lower {

inline constexpr std::size_t kLayerFields = 5;  // w1 to w5: a field each; deeper layers are in a list
inline constexpr double kMostBits = 16;

// The settings that the numbers of the experiments mix and ranges follow from.
struct MixSpec {
    SetupSpec setup = {};
    bool both = true;             // weights and activations; else the activations stay in BF16
    std::string uniform = "mix";  // or a format for every layer
    std::array<std::string, kLayerFields> w = {}, a = {};  // formats; of a also "w", the weights' own
    std::string w_more = "mxfp8",
                a_more = "w";  // of the layers after them, "F[,F...]": the last holds for the rest
    std::string probe = "nvfp4";
    ScalesSpec scales = {};
    double budget = kMostBits;  // bits; below kMostBits the best mix under it
    bool operator==(const MixSpec&) const = default;
};

// All mixes of one setup, with the scales of the own mix.
struct CloudSpec {
    SetupSpec setup = {};
    bool both = true;
    ScalesSpec scales = {};
    bool operator==(const CloudSpec&) const = default;
};
struct Cloud {
    CloudSpec spec;
    AllMixes all;  // without points where the network has too many layers: then `greedy`
    std::vector<std::size_t> frontier;
    std::vector<GreedyStep> greedy;

    bool is_greedy() const { return !greedy.empty(); }
    // The number of all mixes, or of the steps.
    std::size_t size() const { return is_greedy() ? greedy.size() : all.points.size(); }
    MixPoint point(std::size_t i) const { return is_greedy() ? greedy[i].point : all.points[i]; }
    Mix mix(std::size_t i) const { return is_greedy() ? greedy[i].mix : all.mix(i); }
};
std::shared_ptr<const Cloud> make_cloud(const CloudSpec& spec, std::shared_ptr<const Setup>& setup);
// The best mix under a budget; none: there is none.
std::optional<Mix> best_under(const Cloud& cloud, double bits);

// The formats of "every layer in" and "one layer alone in": those of both operands but FP32. The chips offer mix_formats().
std::vector<const LowFormat*> uniform_formats();

struct LayerRow {
    std::size_t outputs = 0, inputs = 0;
    double share_pct = 0;  // of the weights
    double sensitivity = 0;
    double underflow_pct_w = 0, underflow_pct_a = 0, sqnr_db_w = 0, sqnr_db_a = 0;  // dB: +Inf where exact
    double saturated_pct_a = 0, rel_l2_w = 0;
};
struct OutputRow {
    const LowFormat* format = nullptr;  // null: the own mix
    double bits = 0, kb = 0;
    Score score = {};
};
struct Outcome {
    MixSpec spec = {};
    std::shared_ptr<const Setup> setup = {};
    Mix mix = {};
    OutputRow own = {};
    std::vector<OutputRow> uniforms = {};  // uniform_formats(), with the same scales
    std::vector<LayerRow> layers = {};
    double accuracy_fp32_pct = 0;
    std::size_t rows() const { return setup->x.rows; }
};

struct MixRequest {
    MixSpec spec = {};
    std::shared_ptr<const Cloud> cloud = {};  // for a budget; null where it is not known
    bool operator==(const MixRequest&) const = default;
};
// Keeps what does not change from one state to the next.
class MixMaker {
  public:
    Outcome operator()(const MixRequest& request);

  private:
    std::shared_ptr<const Setup> setup_;
    MixSpec of_uniforms_;  // what the lists below were computed for
    std::vector<OutputRow> uniforms_;
    std::vector<double> sensitivity_;
    StaticScales scales_;
};

// The format of a layer (from 0) as the fields have it: of the array, or of the list after it.
std::string format_of_layer(const std::array<std::string, kLayerFields>& fields, const std::string& more,
                            std::size_t layer);
// Sets it; the list then names `layers` - kLayerFields formats.
void set_format_of_layer(std::array<std::string, kLayerFields>& fields, std::string& more, std::size_t layer,
                         std::size_t layers, std::string_view format);

// The mix that the fields say, without a budget. Throws usage_error: a list names a format that is not known.
Mix mix_of(const MixSpec& spec, std::size_t layers);

// "MXFP6 E2M3, NVFP4, ..."; the label alone of a uniform one.
std::string mix_words(const Mix& mix);
// The format of every layer; null: they differ.
const LowFormat* uniform_of(const Mix& mix);

}  // namespace fp8lab::lower
