// Precision by token: of the input of every linear layer some rows are in a wide format HIGH, each multiplied with the
// weights in HIGH, and the others in a narrow format LOW with the weights in LOW,
//   y = [x_high | x_low] [W_high | W_low]^T,
// where x_high is 0 in the rows that are LOW, and x_low in those that are HIGH. Each operand is cast as a whole, so that
// a scale per tensor (of NVFP4 the tensor scale) is that of all rows. The head, the products inside attention and what is
// kept between layers are in BF16, and the reference is the model with everything in BF16.
//
// Against it: whole layers in HIGH, every row of them, with the same products.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/inference/mixes.h"
#include "core/inference/score.h"
#include "core/inference/token_model.h"

namespace fp8lab {

// Which tokens are in HIGH: the first ones by this order; of equal ones the earlier.
enum class Importance {
    attention,   // received: the probabilities of all heads and blocks, summed over the tokens that read it
    confidence,  // the smallest p1 - p2 with every token in LOW
    first,       // by the place in the sequence
    last,
    rare,    // the fewest times among kCountedBatches batches of training
    random,  // N(0, 1), by the seed
    oracle,  // the largest divergence with every token in LOW: it has to know the answer
};
struct ImportanceInfo {
    Importance id;
    std::string_view name, label;  // "attention", "attention received"
};
std::span<const ImportanceInfo> importances();
// Throws usage_error with the names that there are.
Importance find_importance(std::string_view name, std::string_view where);

class TokenMix {
  public:
    static constexpr int kRandomDraws = 3, kCountedBatches = 50;
    static constexpr std::size_t kMostLinears = 8;  // of layer_subsets(): 256 of them

    // `model` is used until the end. Runs the reference and every token in LOW. Throws usage_error: the model has no
    // linear layers besides its head.
    TokenMix(std::shared_ptr<TokenModel> model, const LowFormat& high, const LowFormat& low);
    ~TokenMix();
    TokenMix(TokenMix&&) noexcept;
    TokenMix& operator=(TokenMix&&) noexcept;

    std::size_t tokens() const;
    const std::vector<LayerSize>& linears() const;  // those that are mixed, in the order of the forward pass
    // Nats, mean over the tokens that count.
    double all_low() const;
    double all_high();
    // One byte per token, 1: in HIGH. `share` of the tokens, 0 to 1, rounded down. `draw`: of random, from 0.
    std::vector<std::uint8_t> chosen(Importance importance, double share, std::uint64_t seed,
                                     int draw = 0) const;
    double divergence(std::span<const std::uint8_t> high);
    std::vector<double> divergences(
        std::span<const std::uint8_t> high);  // of each token, also those that do not count
    double divergence(Importance importance, double share, std::uint64_t seed, int draw = 0) {
        return divergence(chosen(importance, share, seed, draw));
    }
    // With whole layers: bit l stands for linears()[l].
    double divergence_of_layers(std::uint32_t high);
    // Of the multiplications of the linears those in HIGH, 0 to 1.
    double share_of_layers(std::uint32_t high) const;
    // Every subset, by its bits. Throws usage_error above kMostLinears. `told` as of all_mixes().
    std::vector<double> layer_subsets(const MixesTold& told = {});

    // Per element of the linears' inputs, scales included, at that share of tokens in HIGH.
    double activation_bits(double share) const;
    double activation_bits_of_layers(std::uint32_t high) const;
    // Both copies of the weights, and one with whole layers in either format.
    double weight_bits() const;
    double weight_bits_of_layers(std::uint32_t high) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// The subset of layers with the least divergence of those whose share is at most `share`; 0 stands for none.
std::uint32_t best_layers(const TokenMix& mix, std::span<const double> subsets, double share);

}  // namespace fp8lab
