// L10's honesty: the bytes that our own trainer really allocates on a GPU, beside the calculated ones.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/backends.h"
#include "core/nn/memory_plan.h"
#include "labs/memory/model_bytes.h"

namespace fp8lab::memory {

// What L10 shows of our trainer, in BF16 and in FP8 (recipe `delayed`): L8's network 4096-16384-4096, batch 8192; L13's
// transformer with 124 million parameters: 12 layers of 768, vocabulary 50 257, tied head, 8 sequences of 1024.
struct OwnModel {
    std::string_view id, label, bf16, fp8;  // the last two: names over the bars
    std::string_view sizes, batch;
};
inline constexpr std::array kOwnModels = {
    OwnModel{"mlp", "L8’s network", "L8’s trainer in BF16", "L8’s trainer in FP8", "4096-16384-4096", "8192"},
    OwnModel{"transformer", "L13’s transformer, 124 M", "L13’s trainer in BF16", "L13’s trainer in FP8",
             "12 layers of 768", "8 × 1024"}};
const OwnModel* find_own_model(std::string_view id);
TrainSpec own_network();
TrainSpec own_transformer();
TrainSpec own_model(std::string_view id);

struct OwnArm {
    std::string recipe = {};  // "bf16", "delayed"
    Account account = {};     // of its list of allocations: what is no row of the table is in the workspace
    double per_weight = 0;    // bytes of states per weight: 18 and 17.5 of the network
    double calculated = 0;    // bytes of device memory
    double saved = 0;         // bytes that sharing saves; of the network nothing is shared
    std::optional<double> allocated = {};  // recorded, or taken on the card at hand; none: not known
    double off_pct() const;                // NaN where it is not known
};
double own_weights(const TrainSpec& spec);
OwnArm own_arm(std::string_view model, const std::string& recipe);

// Where the allocated bytes come from.
struct Allocated {
    std::array<std::optional<double>, 2> bytes = {};  // BF16, FP8
    std::string gpu = {};                             // "NVIDIA H200"
    double memory = 0;                                // of the card, bytes; 0: not known
    double host_copy = 0;      // bytes per second between CPU and GPU, the slower way; 0: not recorded
    bool live = false;         // of the card at hand; else recorded
    std::string problem = {};  // why there is no recording; empty otherwise
    bool operator==(const Allocated&) const = default;
};
// The cards of the field `gpu`, in its order.
struct Card {
    std::string_view id, label, name;
    double bytes;
    std::string_view recording;  // of it; "": there is none
};
// Makers' numbers, but for the H200, whose driver says 150.1 GB.
inline constexpr std::array kCards = {
    Card{"24", "24 GB", "24 GB card", 24e9, ""}, Card{"80", "80 GB (H100)", "H100", 80e9, "h100"},
    Card{"141", "141 GB (H200)", "H200", 150.1e9, "h200"}, Card{"192", "192 GB (B200)", "B200", 192e9, ""}};
const Card& find_card(std::string_view id);  // the H200 for another id

// The bytes of the recording of that card, or of the first recording where there is none.
Allocated recorded_bytes(std::string_view model, std::string_view card);
// Builds both arms on the GPU, reads their bytes and frees them; with no model in `arms` only asks for the card. Throws
// Error{backend}: no GPU, or not enough memory.
Allocated measured_bytes(const Backends& backends, const std::string& arms);

}  // namespace fp8lab::memory
