// What the ranks read of the weights when each owns some rows (Shard::zero1), and how it differs between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/recipe_casts.h"
#include "core/nn/trainer.h"
#include "core/ranks/collective.h"

namespace fp8lab {

class RankWeights {
  public:
    RankWeights(const Ranks& ranks, const ModelPlan& plan);

    // Owners cast their blocks with the scales of their casts and send them; from then on each rank's casts read what it got.
    // Changes nothing that lasts. Nothing happens where weights are not sharded. `parameters`: the master weights.
    void gather(Collective& collective, std::span<const Parameter<float>> parameters,
                std::span<RecipeCasts* const> casts);
    // The largest distance of what a rank reads of a weight from what rank 0 reads of it, in per cent of its norm.
    double spread_pct() const { return spread_pct_; }
    // Of what was gathered.
    std::vector<RankState> states(std::span<const Parameter<float>> parameters) const;

  private:
    struct Weight {
        std::size_t parameter = 0;
        TensorId id;
        std::size_t rows = 0, cols = 0, block = 0;  // block: elements
        const FormatInfo* sent = nullptr;
        std::vector<float> amaxes = {}, scales = {};     // of each rank's block; with which it casts
        std::vector<std::vector<std::byte>> codes = {};  // by receiver: of all blocks, with padding
        std::vector<Matrix<float>> values = {};          // by receiver; one where all read the same
        const Matrix<float>& read_by(std::size_t rank) const { return values[values.size() > 1 ? rank : 0]; }
        std::span<const float> part(std::span<const float> all, std::size_t rank) const;
    };
    void send(Collective& collective, Weight& w, std::span<const float> master,
              std::span<RecipeCasts* const> casts) const;
    void choose_scales(Collective& collective, Weight& w, std::span<const float> master,
                       std::span<RecipeCasts* const> casts) const;
    void read(Weight& w) const;
    CastStats stats_of(const Weight& w, std::span<const float> master, std::size_t rank) const;
    bool own_scales(const Weight& w) const;

    Ranks ranks_;
    ModelPlan plan_;
    std::vector<Weight> weights_;  // empty: not sharded
    double spread_pct_ = 0;
};

}  // namespace fp8lab
