// The operands of a layer's products on the device, and the casts before them: shared by the grid and by the
// measurement of one layer.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/grid_plan.h"
#include "core/scaling/recipe.h"
#include "kernels/bench/ask.h"
#include "kernels/bench/turns.h"
#include "kernels/gemm/gemm.h"
#include "kernels/scaling/scale_buffers.h"

namespace fp8lab::cuda {

// `product` of a layer in one of gemm_grid.h's kinds (or fp8), as the trainer multiplies it: types, layouts,
// scales and fast accumulation are those of products_of().
GemmSpec layer_product(std::string_view product, const GridLayer& layer, std::string_view kind);
// The same for a recipe with its accumulation.
GemmSpec layer_product(std::string_view product, const GridLayer& layer, std::string_view recipe,
                       FastAccum fast_accum);

// Buffers that grow and are used again, because values do not depend on shapes. Growing one frees it first:
// take all that a round of turns needs before the first pointer is used.
class OperandPool {
  public:
    OperandPool(cudaStream_t stream, bool zeros) : stream_(stream), zeros_(zeros) {}
    void* operand(int slot, Element element, std::size_t elements);  // random, or zeros
    void* output(std::size_t bytes);
    const float* ones(std::size_t count);
    // The operands of one product; `groups` matrices of each.
    LtOperands of(const GemmSpec& spec, int groups = 1);

  private:
    static void grow(Memory& memory, std::size_t bytes);
    cudaStream_t stream_;
    bool zeros_;
    std::map<std::pair<int, Element>, Memory> operands_;
    Memory output_, ones_;
};
std::size_t matrix_elements(int rows, int cols);

// The cast of one tensor (rows, cols) from BF16 in a recipe, into rows alone or rows and columns.
class TensorCast {
  public:
    TensorCast(std::string_view recipe, const GridTensor& tensor, OperandPool& pool);
    void launch(bool both, cudaStream_t stream) const;
    // The bytes that the cast reads and writes for rows alone, without padding.
    double bytes() const;

  private:
    std::string_view recipe_;
    Shape shape_;
    Element element_;
    ScaleMode scaling_;
    const void* in_;
    void* rows_ = nullptr;
    void* columns_ = nullptr;
    ScaleBuffers scales_;
    Buffer<ScaleControls> controls_{1};
    Buffer<ScaleState> state_{1};
};

// Times both variants of every cast, alternately. Returns false if stopped.
bool time_casts_of(const GridTensor& tensor, const std::vector<std::string_view>& recipes, OperandPool& pool,
                   int repeats, cudaStream_t stream, const AfterRound& after, std::vector<GridCast>& out);

// Times the ceilings: a copy of 1 GiB by the faster of cudaMemcpyAsync and a kernel of ours, and 8192^3 in these
// kinds.
class Ceilings {
  public:
    Ceilings(const Lt& lt, cudaStream_t stream, std::vector<std::string_view> kinds);
    // Keeps the GPU busy for at least that long, so that it has the clocks of work.
    void load(double seconds) const;
    bool measure(std::string_view when, int repeats, const AfterRound& after, std::vector<GridCeiling>& out);

  private:
    const Lt& lt_;
    cudaStream_t stream_;
    std::vector<std::string_view> kinds_;
    std::vector<GemmSpec> specs_;
    std::vector<LtOperands> on_;
    std::vector<std::optional<LtProduct>> products_;  // none: refused
    std::vector<Answer> refused_;
    std::vector<double> ms_;
    OperandPool pool_;
    Memory from_, to_;
};

}  // namespace fp8lab::cuda
