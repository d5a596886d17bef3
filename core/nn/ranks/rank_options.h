// Data parallelism as options: how many ranks a training has, what they send each other, and in which format.
//
// Each rank has its part of every batch, and casts and scales of its own for x and dy. The gradients of all ranks are added
// and divided by their number; of matrices that only GEMMs read as `sum` says, of biases, norms and embeddings in FP32.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/format.h"
#include "core/scaling/recipe.h"

namespace fp8lab {

struct TrainSpec;
struct TrainOptions;

// zero1: every matrix is cut along its rows into blocks of ceil(rows / ranks), as PyTorch's FSDP2 does (Shard(0)); so of few
// rows the last ranks may own none. The owner of a block updates its master weights, with moments that it alone has, and
// sends it to the others (ZeRO stage 1, arXiv 1910.02054). none: every rank updates everything.
enum class Shard { none, zero1 };
// What weights are sent in with zero1. e4m3: where the recipe casts them to E4M3 with one scale per tensor from the amax, the
// owner does this cast and sends its codes. All other weights, and all with bf16, are sent in BF16 and cast by the rank that
// reads them; those that GEMMs read in FP32 are sent in FP32.
enum class Gather { bf16, e4m3 };
// The scale of codes that are sent. reduced: of the amax of all blocks. shard: each block has its own, sent with it. own: the
// owner casts with the scale of its block and the receiver divides by that of its own block, which is a fault; a rank that
// owns no row takes the scale of all blocks.
enum class WeightScale { reduced, shard, own };
// Which amaxes of x and dy go into the histories of delayed scaling: the largest of all ranks, as Transformer Engine does
// with reduce_amax=True, or each rank's own.
enum class RankAmax { reduced, local };

// One rank gets a bad batch in one step: x times `factor`, of a transformer what the embedding gives. NaN: the first
// element of x is NaN, of a transformer, and on a GPU, all elements.
struct BadRank {
    int rank = 0;
    double factor = 1;
    int step = 0;  // 0-based
};

// A process that is one rank of several on GPUs, as torchrun starts them; rank 0 listens at the address.
struct ProcessRank {
    int rank = 0, device = 0;  // its GPU
    std::string address = "127.0.0.1";
    int port = 29500;
};

struct Ranks {
    int count = 1;
    Shard shard = Shard::none;
    Gather gather = Gather::bf16;
    std::string sum = "bf16";  // find_rank_sum()
    WeightScale weight_scale = WeightScale::reduced;
    RankAmax amax = RankAmax::reduced;
    std::optional<BadRank> bad = {};
    std::chrono::milliseconds timeout = std::chrono::minutes(1);  // of GPUs: how long one waits for another
    std::optional<ProcessRank> process = {};                      // none: this process has all ranks
    // Reports and files are of rank 0.
    bool reports() const { return !process || process->rank == 0; }
    bool sharded() const { return count > 1 && shard == Shard::zero1; }
};
inline constexpr int kMostRanks = 1024;

// The rows of a block of Shard::zero1.
inline std::size_t block_rows(std::size_t rows, int ranks) {
    const auto count = static_cast<std::size_t>(ranks);
    return (rows + count - 1) / count;
}

// The format in which a weight is sent; `here` is the recipe of the GEMM that reads it.
const FormatInfo& sent_format(const Ranks& ranks, const Recipe& here);

// Sets spec.ranks and spec.devices from the options. Throws usage_error: a name or number that is not known.
void set_ranks(TrainSpec& spec, const TrainOptions& options);
// Throws usage_error: ranks that do not divide the batch, options that have no effect in this training. The rest of the
// spec is set.
void check_ranks(const TrainSpec& spec, const TrainOptions& options);
// " --ranks 8 --shard zero1", or " --devices 0,1": what is not the default. Empty with one rank.
std::string ranks_text(const Ranks& ranks, const std::vector<int>& devices = {});

std::string_view to_string(Shard);
std::string_view to_string(Gather);
std::string_view to_string(WeightScale);
std::string_view to_string(RankAmax);

}  // namespace fp8lab
