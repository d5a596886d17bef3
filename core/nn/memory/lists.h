// The lists of allocations of each model, and their places in a pool: parts of core/nn/memory_plan.h.
#pragma once

#include <span>
#include <vector>

#include "core/nn/memory_plan.h"

namespace fp8lab::cuda {

std::vector<Allocation> mlp_list(const TrainSpec& spec, const Recipe& recipe, Engine engine, int batch);
std::vector<Allocation> transformer_list(const TrainSpec& spec, const Recipe& recipe, Engine engine,
                                         int batch, const AttentionBytes& attention);

// Sets the offset of every allocation that is not used always, and returns the size of their pool. The largest first,
// each at the lowest place that is free in all phases of its life; equal ones in the order of the list. Offsets are
// multiples of 512.
std::uint64_t place_in_pool(std::span<Allocation> list);
// The most bytes that are in use at once: no pool is smaller.
std::uint64_t most_at_once(std::span<const Allocation> list);

inline std::uint64_t size(int n) { return static_cast<std::uint64_t>(n); }
// Bytes of an element of the gradients of the weights.
std::uint64_t gradient_bytes(const TrainSpec& spec, const Recipe& recipe, Engine engine);
// Bytes of a moment of such a matrix, kept in `format` (Recipe::moment_m, moment_v).
std::uint64_t moment_bytes(const TrainSpec& spec, const FormatInfo* format, int rows, int cols);
// Padded.
std::uint64_t elements(int rows, int cols);
std::uint64_t stats_blocks(int rows, int cols);

// The functions that both lists are built with.
class ListMaker {
  public:
    std::vector<Allocation> list;

  protected:
    void add(ArmPart part, std::uint64_t bytes, int layer = 0, TensorClass tensor = TensorClass::x,
             Life life = {}) {
        if (bytes > 0) list.push_back({part, layer, tensor, bytes, life});
    }
    // An FP8 operand with many scales, of padded rows and columns. `along`: of which cast of a split tensor.
    void add_scales(ScaleMode mode, int rows, int cols, int layer, TensorClass tensor,
                    Along along = Along::cols);
    // The cast of a split tensor for one of its GEMMs.
    struct Side {
        Engine engine = Engine::bf16;
        CastPlan plan;
        Along along = Along::cols;
        bool in_place = false;          // in BF16 it is what another kernel left
        Life operand = {}, value = {};  // `value`: where it is cast to MX
    };
    void add_side(const Side& side, int rows, int cols, int layer, TensorClass tensor);
    // Adds states, records and the step, which every model has, and what ranks compare.
    void add_shared(const TrainSpec& spec, const ModelPlan& plan, const Recipe& recipe);
    // What ranks exchange of a weight (rows, cols) whose gradient they add as RankSum says; `recipe`: of its GEMM, `arm`: of the
    // gradients; `gradient`: the phases that use these.
    struct RankedWeight {
        const Recipe& arm;
        const Recipe& recipe;
        Engine engine;  // of the arm
        int rows, cols;
        Life gradient = {};
    };
    void add_ranked(const TrainSpec& spec, const RankedWeight& weight, int layer);
    // FP32 gradients of `count` padded elements that ranks add in one bucket.
    void add_bucket(const TrainSpec& spec, std::uint64_t count, Life life = {});
};

}  // namespace fp8lab::cuda
