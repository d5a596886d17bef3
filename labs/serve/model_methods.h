// The part "methods" of L17: every scheme to nearest and with methods, and the chosen one layer by layer.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/inference/methods/method.h"
#include "labs/serve/model_network.h"
#include "labs/table/long.h"

namespace fp8lab::serve {

// The schemes that the part offers, in the order of its menu: the ids of low_formats().
inline constexpr std::array kSchemes = {"e4m3",  "e4m3-row", "e4m3-128", "mxfp8",     "int8", "int8-row",
                                        "nvfp4", "mxfp4",    "int4-g32", "int4-g128", "nf4",  "e2m1"};
// Those that the figure "methods" has, besides the chosen one; and what it has of them.
inline constexpr std::array kStems = {"e2m1",  "int4-g128", "mxfp4", "int4-g32",
                                      "nvfp4", "nf4",       "e4m3",  "e4m3-row"};
inline constexpr std::array kStemMethods = {Method::nearest, Method::awq, Method::gptq, Method::rotate_gptq};
inline constexpr int kMostSeen = 1348;  // of the field "rows": all that the digits have

// What all schemes have in common.
struct CommonSpec {
    NetworkSpec network;
    bool both = false;     // weights and inputs; else the inputs stay in BF16
    int rows = kMostSeen;  // that a method sees, and that errors are of; fewer where there are not so many
    double damp = 0.01;    // this and the next: of GPTQ
    ColumnOrder order = ColumnOrder::given;
    bool operator==(const CommonSpec&) const = default;
};
struct ChosenSpec {
    CommonSpec common;
    std::string scheme = "nvfp4", method = "nearest";
    double amax = 1;
    bool operator==(const ChosenSpec&) const = default;
};

struct LayerErrors {
    LayerSize size;
    double w_nearest = 0, w = 0;      // |W - Q| / |W|
    double out_nearest = 0, out = 0;  // |X W^T - X Q^T| / |X W^T|
};
struct Chosen {
    ChosenSpec spec;
    std::string name, data;  // of the network, of its held-out rows
    std::size_t rows = 0;    // held out
    std::size_t seen = 0;    // rows of the training that the method saw, and that errors are of
    bool tokens = false;     // rows are tokens
    bool classifies = true;  // else divergences are Score::divergence of others
    double bits = 0;
    Score nearest, score;
    std::vector<LayerErrors> layers;  // empty: not computed

    const LowFormat& scheme() const;
    bool to_nearest() const { return spec.method == "nearest"; }
    // By the weights of the layers' elements: the means over the layers.
    double mean(double LayerErrors::*error) const;
};

// One scheme. NaN: not computed yet, or a method that the network or the scheme does not take.
struct Stem {
    const LowFormat* scheme = nullptr;
    double bits = 0;
    std::array<double, kStemMethods.size()> divergence = {};
    double of(Method method) const;
};
struct StemsSpec {
    CommonSpec common;
    std::string also = {};  // the chosen scheme, where it is none of kStems
    bool operator==(const StemsSpec&) const = default;
};
struct Stems {
    StemsSpec spec;
    std::vector<Stem> stems;  // by bits; empty: not computed
    bool classifies = true;
};

// The scheme with weights lowered alone, and with the inputs too. NaN as in Stem.
struct GainsSpec {
    CommonSpec common;
    std::string scheme = "nvfp4";
    bool operator==(const GainsSpec&) const = default;
};
struct Gain {
    double nearest = 0, awq = 0, gptq = 0;
    double factor() const { return nearest / gptq; }
};
struct Gains {
    GainsSpec spec;
    std::vector<Gain> rows;  // weights, both; empty: not computed
};

// Divergence over the factor of the amax that NVFP4's tensor scale, and E4M3's, follow from.
struct AmaxSpec {
    CommonSpec common;
    std::string method = "nearest";
    bool operator==(const AmaxSpec&) const = default;
};
struct AmaxSweep {
    AmaxSpec spec;
    bool classifies = true;
    std::vector<double> factors, nvfp4, e4m3;
};

// One scheme on one network: keeps the network of the last call. Throws usage_error: a scheme for weights only with lowered
// inputs; check_effect(), lower_mlp() and LoweredTokens.
struct Evaluation {
    Score score;
    double bits = 0;
    std::vector<LayerErrors> layers;  // w and out
};
class Evaluator {
  public:
    const Served& served(const NetworkSpec& spec);
    // Computed once for equal arguments, as long as the network is the same.
    const Evaluation& operator()(const CommonSpec& common, const LowFormat& scheme, Method method,
                                 double amax = 1);
    // Computes what is not known yet, several at once where the network is a multilayer perceptron; what one of them throws
    // is thrown when it is asked for.
    struct Asked {
        const LowFormat* scheme = nullptr;
        Method method = Method::nearest;
        double amax = 1;
    };
    void prepare(const CommonSpec& common, std::span<const Asked> asked);
    // Its divergence; NaN where the network or the scheme does not take the method.
    double divergence(const CommonSpec& common, const LowFormat& scheme, Method method);

  private:
    struct Plan {
        Mix mix;
        MethodOptions options;
        std::string key;  // of known_
    };
    Plan plan(const CommonSpec& common, const Asked& asked);

    std::shared_ptr<const Served> served_;
    std::map<std::string, Evaluation> known_;
};

Chosen chosen_of(const ChosenSpec& spec, Evaluator& evaluator);
Stems stems_of(const StemsSpec& spec, Evaluator& evaluator, const table::Told<Stems>& told);
Gains gains_of(const GainsSpec& spec, Evaluator& evaluator);
AmaxSweep amax_sweep(const AmaxSpec& spec, Evaluator& evaluator, const table::Told<AmaxSweep>& told);

bool is_stem(std::string_view scheme);
// Whether inputs can be in the scheme.
bool takes_inputs(const std::string& scheme);
// Whether the divergence depends on an amax factor.
bool has_amax(const std::string& scheme, bool both);

}  // namespace fp8lab::serve
