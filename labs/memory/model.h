// L10, "Where does the memory go?": the bytes of a training or an inference, plan against plan, and the same
// arithmetic compared with the bytes that L8's trainer allocated on a GPU. GB = 10^9 bytes.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "labs/memory/model_own.h"
#include "labs/table/table_lab.h"

namespace fp8lab::memory {

inline constexpr double kFewestTokens = 512, kAxisTokens = 65536;  // of the figure "tokens"

// "plan" in a cell: what the chosen plan says.
struct Params {
    std::string plan = "te", compare = "bf16", model = "seed7b";
    int batch = 1, sequence = 4096;
    std::string checkpointing = "none";
    int gpus = 1, zero = 0;
    std::string offload = "none";
    double pcie = 25;
    std::string gpu = "141", attention = "flash";
    // Formats and places of Row::weights to Row::kv; formats[activations] is that of the kept inputs of linears.
    std::array<std::string, kRows - 1> formats, places;
    std::string act_counted = "plan";
    int contexts = 1;
    // model=own.
    std::string kind = "llama";
    int layers = 32, hidden = 4096, ffn = 14336, heads = 32, kv_heads = 8, vocabulary = 128256;
    bool tied = false;
    std::string config = {};  // not empty: the model of this config.json, as plan::compact_config() gives it
    bool own_hidden = false;
    Params() { formats.fill("plan"), places.fill("plan"); }
    bool operator==(const Params&) const = default;
};

// One side of the comparison.
struct Side {
    Plan plan = {};
    Account account = {};
    double act_layer = 0;      // bytes per token of a layer
    double per_parameter = 0;  // bytes on the GPU, before sharding
    bool changed = false;      // cells differ from the preset
};

struct Outcome {
    ModelShape model = {};
    Load load = {};
    Side own = {}, other = {};
    const OwnModel* own_model = nullptr;  // our trainer: both sides from its lists of allocations
    bool ours() const { return own_model != nullptr; }
    double parameters = 0;
    double gpu_bytes = 0;           // size of the GPU
    std::string gpu_name = {};      // "H200"
    double break_even = 0;          // tokens; NaN: none that the fields can reach
    std::array<OwnArm, 2> trainer;  // BF16, FP8
    Allocated allocated = {};
    double pcie = 0;  // bytes per second
    // Like for like: where the plan of one side trains and counts no activations, the other side's are left out, too.
    double difference() const { return compared(0) - compared(1); }
    double compared(std::size_t side) const;  // bytes on the GPU that count: 0 own, 1 other
    bool leaves_out_activations() const;      // of one side only
};

// What is asked of the card at hand: its size, and the bytes of both arms of our trainer.
struct Question {
    std::string arms = {};  // the model; empty: none
    int times = 0;
    bool operator==(const Question&) const = default;
};
struct Given {
    Params params;
    std::optional<Allocated> live;  // what the card at hand answered
    bool operator==(const Given&) const = default;
};

struct Memory {
    static const LabInfo kInfo;
    using Params = memory::Params;
    explicit Memory(Backends backends = {});
    std::vector<table::Row> rows(Params& params) const;
    static std::span<const table::Experiment<Memory>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() { return {&live, &outcome}; }
    Figure thumbnail() const;
    void settle();
    Provenance provenance() const;
    std::string device() const;
    bool perform(std::string_view action);  // "allocate"

    void choose_plan(std::string_view id);  // the preset, with no cell changed

    Params params;
    table::Computed<Question, std::optional<Allocated>> live;
    table::Computed<Given, Outcome> outcome;

  private:
    std::string why_not(std::string_view field) const;
    std::vector<Figure> figures() const;  // "bars", "tokens" and "plans"
    std::vector<table::MetricRow> metrics() const;

    int times_ = 0;     // "allocate" was done
    std::string arms_;  // their bytes are wanted, not the size of the card alone
};
using MemoryLab = table::TableLab<Memory>;

// A plan with the cells of the fields; model_account.cpp.
Plan plan_of(const Params& params);
Outcome outcome_of(const Params& params, const Allocated& allocated);
// Plan minus compared in bytes, like for like, with that many tokens on a GPU and everything else as set.
double difference_at(const Outcome& outcome, double tokens);

// "142.9 GB", "12.4 TB"; without its unit, with three digits: "15.9".
std::string gb_text(double bytes);
std::string gb_short(double bytes);
// "29 000": two digits.
std::string tokens_text(double tokens);

// model_words.cpp. Both sides: "FP8" and "BF16"; longer names where these would be the same, or where one side trains and
// the other does not.
std::pair<std::string, std::string> names(const Outcome& outcome);
// model_figures.cpp
std::string finding(const Outcome& outcome);  // the sentence over the bars
std::string cause(const Outcome& outcome);    // under the headline of the panel
std::string tokens_title(const Outcome& outcome);
Figure bars_figure(const Outcome& outcome);
Figure tokens_figure(const Outcome& outcome);
Figure plans_figure(const Params& params, const Outcome& outcome);
// The presets of the figure "plans", in its order: what trains where the plan trains, without the two above.
std::vector<Plan> other_plans(const Params& params, const Outcome& outcome);
Color color_of(const Side& side, Row row);  // of a segment

}  // namespace fp8lab::memory
