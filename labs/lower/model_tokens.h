// The experiment tokens of L11: a transformer whose tokens, or whose layers, are partly in a wide format.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/inference/token_mix.h"

namespace fp8lab::lower {

inline constexpr int kTokenBatches = 3;  // held-out ones, of 8 sequences of 64 characters
// The linear layers of the shipped transformers, as the bits of a choice of layers count them.
inline constexpr std::array kLinears = {"1.qkv", "1.out", "1.gate_up", "1.down",
                                        "2.qkv", "2.out", "2.gate_up", "2.down"};

struct TokensSpec {
    std::string model = "1", high = "mxfp8", low = "nvfp4";  // the seed of assets/models/transformer-s1
    int seed = 1;                                            // of the tokens at random
    bool subsets = false;                                    // every choice of layers too
    bool operator==(const TokensSpec&) const = default;
};
// What is in the wide format: a share of the tokens, or layers.
struct WideSpec {
    bool layers = false;
    std::string important = "attention";
    double share_pct = 25;
    std::array<bool, kLinears.size()> high = {};
    std::uint32_t mask() const;
    bool operator==(const WideSpec&) const = default;
};
struct TokensRequest {
    TokensSpec spec = {};
    WideSpec wide = {};
    bool operator==(const TokensRequest&) const = default;
};

// By the share of tokens that is in the wide format.
struct ImportanceLine {
    Importance id = Importance::attention;
    std::vector<double> values = {};  // nats, at kShares; of random the mean of the draws
};
inline constexpr std::array kShares = {0.0, 12.5, 25.0, 50.0, 75.0, 100.0};  // %
struct TokensSweep {
    TokensSpec spec = {};
    std::size_t tokens = 0;
    std::vector<ImportanceLine> lines = {};  // importances(), in their order
    std::vector<double> least_random = {}, most_random = {};
    std::vector<double> subsets = {},
                        subset_shares = {};  // nats, %; by the bits of the choice; empty: not asked for
    const ImportanceLine& line(Importance id) const;
};
struct Tokens {
    TokensRequest request = {};
    std::shared_ptr<const TokensSweep> sweep = {};  // null: before the first result
    // What is set: of the multiplications of the linear layers, those in the wide format.
    double share_pct = 0, divergence = 0;
    double random = 0;  // that share of the tokens at random, mean of the draws
    double activation_bits = 0, weight_bits = 0;
    double ratio() const { return divergence / random; }
    double best_layers() const;  // nats, with at most that share; NaN: the choices are not known
};
// Keeps the model and what does not change from one state to the next.
class TokensMaker {
  public:
    Tokens operator()(const TokensRequest& request);

  private:
    std::shared_ptr<TokenMix> mix_;
    std::shared_ptr<const TokensSweep> sweep_;
};

std::string tokens_title(const Tokens& tokens);
std::string token_ratio_title(const Tokens& tokens);
Figure tokens_figure(const Tokens& tokens);
Figure token_ratio_figure(const Tokens& tokens);

}  // namespace fp8lab::lower
