// The step of a model of 7 and of 70 billion parameters on 8 to 16,384 GPUs, on paper: from the recorded parts and the fitted links
// of model_time.h. Nothing here was run. Assumptions:
//
//   compute    6 P FLOP per token (forward 2, backward 4) at the rate that the recorded GEMMs and casts of 4096-16384-4096 have;
//              attention's own products, norms, embedding and head cost nothing;
//   optimiser  the recorded time per weight, on 1/N of them;
//   network    layer after layer: one reduce-scatter of the gradients in BF16, one all-gather of the weights in the format of the
//              GEMMs, with ZeRO-3 a second one in the backward pass. Each is hidden by the compute of one layer, but for the last
//              reduce-scatter and the first all-gather; there is no jitter, no congestion and no failure;
//   memory     per weight 2 B that GEMMs read (BF16, or FP8 codes and their transpose, which Hopper needs), 2 B of gradient
//              and 12 B of master weight and moments; the inputs of the layers in BF16, all else is computed again.
//              ZeRO-1 divides the 12 B by N, ZeRO-3 all 16; ZeRO-3 is taken where ZeRO-1 does not fit 141 GB;
//   batch      more than 16 million tokens per step are too many: what Llama 3 405B was trained with in the end
//              (arXiv 2407.21783, section 3.4.1).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "labs/gpus/model_time.h"

namespace fp8lab::gpus {

struct PaperModel {
    std::string_view id, label;
    double parameters;
    int layers, hidden;
};
inline constexpr std::array<PaperModel, 2> kPaperModels = {
    {{"7b", "7B", 6.74e9, 32, 4096}, {"70b", "70B", 68.98e9, 80, 8192}}};
inline constexpr std::array<int, 12> kPaperGpus = {8,   16,   32,   64,   128,  256,
                                                   512, 1024, 2048, 4096, 8192, 16384};
inline constexpr double kPaperMemory = 141e9, kMostTokens = 16.0 * 1024 * 1024;

struct PaperPoint {
    int gpus = 0, zero = 1;  // 1 or 3
    double step_ms = 0, network_ms = 0, memory = 0, tokens = 0;
    double share_pct() const { return 100 * network_ms / step_ms; }
    bool fits() const { return memory <= kPaperMemory; }
};
struct PaperCurve {
    std::size_t model = 0;  // of kPaperModels
    bool fp8 = false;
    std::array<PaperPoint, kPaperGpus.size()> points = {};
    int half_at =
        0;  // GPUs from which the network takes more than half of a step of kMostTokens tokens in all; 0: none
    // What breaks first on the way to 16,384 GPUs: "memory at 8, batch at 4 096", "nothing".
    std::string breaks() const;
};
struct Paper {
    std::vector<PaperCurve> curves;  // empty: no times are known
};

struct PaperSpec {
    Parts bf16, fp8;
    Links links;
    Network network;
    int tokens = 8192;  // of one GPU
};
PaperPoint paper_point(const PaperSpec& spec, const PaperModel& model, bool fp8, int gpus, double tokens);
Paper paper_of(const PaperSpec& spec);

}  // namespace fp8lab::gpus
