#include "labs/memory/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"

namespace fp8lab::memory {
namespace {

std::vector<Choice> model_choices() {
    std::vector<Choice> out;
    for (const ModelShape& model : models()) out.push_back({model.id, model.label});
    out.push_back({"own", "a model of your own"});
    for (const OwnModel& model : kOwnModels) out.push_back({std::string(model.id), std::string(model.label)});
    return out;
}

std::vector<Choice> with_plan(std::vector<Choice> choices) {
    choices.insert(choices.begin(), {"plan", "as the plan"});
    return choices;
}

std::vector<Choice> card_choices() {
    std::vector<Choice> out;
    for (const Card& card : kCards) out.push_back({std::string(card.id), std::string(card.label)});
    out.push_back({"live", "the card at hand"});
    return out;
}

std::string pcie_help(const std::string& card) {
    std::string out = "Bytes per second between CPU and GPU, each way. 25 GB/s is typical of PCIe 4.0 x16.";
    if (const Allocated recorded = recorded_bytes("mlp", card); recorded.host_copy > 0)
        out += fmt::format(" The recording’s {} copies {:.0f} GB/s.", recorded.gpu, recorded.host_copy / kGB);
    return out;
}

int largest_divisor(int of, int most) {
    int divisor = std::min(most, of);
    while (of % divisor != 0) --divisor;
    return divisor;
}

}  // namespace

const LabInfo Memory::kInfo = {"memory",
                               10,
                               "Memory",
                               "Where does the memory go?",
                               "FP8 weights are half as large. Does training take half the memory?",
                               20,
                               "L8",
                               "GPU too",
                               "it counts bytes, and no layer is cast"};

Memory::Memory(Backends backends)
    : live(
          "",
          [this] {
              return params.gpu == "live" ? std::optional(Question{arms_, times_}) : std::nullopt;
          },
          [backends = std::move(backends)](const Question& question) {
              return measured_bytes(backends, question.arms);
          }),
      outcome(
          "",
          [this] {
              return Given{params, *live};
          },
          [](const Given& of) {
              const Params& p = of.params;
              return outcome_of(p, of.live ? *of.live : recorded_bytes(p.model, p.gpu));
          },
          table::When::in_frame) {}

std::span<const table::Experiment<Memory>> Memory::experiments() {
    static constexpr std::array<table::Experiment<Memory>, 1> kOne = {
        {{.figures = &Memory::figures, .metrics = &Memory::metrics}}};
    return kOne;
}

namespace {

std::vector<Field> first_tier(Params& p) {
    return {
        choice({.name = "plan",
                .label = "Plan",
                .help = "What the training keeps for each parameter, in which format and where."},
               &p.plan, plan_choices()),
        choice({.name = "compare", .label = "Compare with", .help = "The plan of the second bar."},
               &p.compare, plan_choices()),
        choice({.name = "model", .label = "Model", .help = "Whose parameters and activations are counted."},
               &p.model, model_choices()),
        integer({.name = "batch",
                 .label = "Micro-batch",
                 .te_name = "micro_batch_size",
                 .help = "Sequences that one GPU computes at once."},
                &p.batch, 1, 64, true),
        integer(
            {.name = "seq", .label = "Sequence", .te_name = "seq_length", .help = "Tokens of one sequence."},
            &p.sequence, 512, 131072, true),
        choice({.name = "checkpointing",
                .label = "Checkpointing",
                .te_name = "recompute_granularity",
                .help = "What is computed again in the backward pass instead of being kept. selective: the "
                        "attention scores. full: every layer."},
               &p.checkpointing, {{"none", "none"}, {"selective", "selective"}, {"full", "full"}}),
    };
}

std::vector<Field> second_tier(Params& p) {
    std::vector<Field> out = {
        integer({.name = "gpus",
                 .label = "GPUs",
                 .te_name = "world_size",
                 .help = "GPUs of a data-parallel training. ZeRO divides among them."},
                &p.gpus, 1, 64, true),
        integer(
            {.name = "zero",
             .label = "ZeRO stage",
             .help =
                 "1: master weights and moments are divided among the GPUs. 2: gradients too. 3: weights and "
                 "their copies too."},
            &p.zero, 0, 3),
        choice({.name = "offload",
                .label = "Offload",
                .te_name = "offload_optimizer",
                .help = "What is kept in the memory of the CPU, where the update then runs."},
               &p.offload, {{"none", "none"}, {"optimiser", "m and v"}, {"master", "m, v and master"}}),
        number({.name = "pcie", .label = "PCIe", .unit = "GB/s", .help = pcie_help(p.gpu)}, &p.pcie, 8, 64),
        choice(
            {.name = "gpu",
             .label = "GPU",
             .help = "The card whose memory the plan must fit into. The driver of an H200 says 150.1 GB. The "
                     "allocated bytes are those of its recording, where there is one."},
            &p.gpu, card_choices()),
        choice({.name = "attention",
                .label = "Attention",
                .help = "flash: the scores are computed again in the backward pass. scores kept: softmax "
                        "output, its "
                        "mask and the dropout output stay."},
               &p.attention, {{"flash", "flash"}, {"scores", "scores kept"}}),
        integer(
            {.name = "contexts", .label = "Contexts", .help = "Inference: sequences whose KV cache is kept."},
            &p.contexts, 1, 256, true),
        choice({.name = "kind",
                .label = "Kind",
                .help = "Llama: gate and up, no biases, no dropout. GPT: GELU, biases, dropout."},
               &p.kind, {{"llama", "Llama"}, {"gpt", "GPT"}}),
    };
    const auto size = [&](const char* name, const char* label, const char* config, const char* help,
                          int* value, int most) {
        out.push_back(
            integer({.name = name, .label = label, .te_name = config, .help = help}, value, 1, most, true));
    };
    size("layers", "Layers", "num_hidden_layers", "Transformer layers of your own model.", &p.layers, 1024);
    size("hidden", "Hidden", "hidden_size", "Width of the residual stream.", &p.hidden, 1 << 17);
    size("ffn", "FFN", "intermediate_size", "Width inside the feed-forward part.", &p.ffn, 1 << 20);
    size("heads", "Heads", "num_attention_heads", "Attention heads. They divide the hidden width.", &p.heads,
         1024);
    size("kv_heads", "KV heads", "num_key_value_heads", "Heads of keys and values. They divide the heads.",
         &p.kv_heads, 1024);
    size("vocab", "Vocabulary", "vocab_size", "Tokens of the vocabulary.", &p.vocabulary, 1 << 21);
    out.push_back(toggle({.name = "tied",
                          .label = "Tied head",
                          .te_name = "tie_word_embeddings",
                          .help = "The head is the embedding, so it is counted once."},
                         &p.tied));
    return out;
}

// What the table and the figures set.
std::vector<Field> hidden_fields(Params& p) {
    std::vector<Field> out;
    for (const RowInfo& row : memory::rows()) {
        if (row.row == Row::workspace) continue;
        const std::size_t i = index(row.row);
        const std::string field(row.field), label(row.label);
        std::vector<Choice> formats = row.row == Row::activations
                                          ? std::vector<Choice>{{"bf16", "BF16"},
                                                                {"fp8", "FP8, one copy"},
                                                                {"fp8-both", "FP8, both copies"}}
                                          : keep_choices();
        out.push_back(choice({.name = field, .label = label, .help = "The format in which they are kept."},
                             &p.formats[i], with_plan(std::move(formats))));
        out.push_back(
            choice({.name = field + "_at", .label = label + ", place", .help = "Where they are kept."},
                   &p.places[i], with_plan({{"gpu", "GPU"}, {"cpu", "CPU"}})));
    }
    out.push_back(choice({.name = "act_counted",
                          .label = "Activations counted",
                          .help = "Whether activations and workspace are part of the sum."},
                         &p.act_counted, with_plan({{"on", "yes"}, {"off", "no"}})));
    out.push_back(text({.name = "config",
                        .label = "config.json",
                        .help = "The sizes of a published model, as its config.json has them."},
                       &p.config));
    out.push_back(toggle({.name = "own_hidden",
                          .label = "Allocated bytes hidden",
                          .help = "For an exercise: the allocated bytes are not shown."},
                         &p.own_hidden));
    return out;
}

}  // namespace

std::vector<table::Row> Memory::rows(Params& p) const {
    std::vector<table::Row> out;
    const auto add = [&](std::vector<Field> fields, bool more, bool hidden) {
        for (Field& field : fields) {
            field.info.more = more, field.info.hidden = hidden;
            std::string why = why_not(field.info.name);
            const bool shown = why.empty();
            out.push_back({.field = std::move(field), .why_not = std::move(why), .shown = shown});
        }
    };
    add(first_tier(p), false, false);
    if (outcome->ours())
        out.at(2).note = "The trainer has no sequence, no checkpointing and no ZeRO: nothing to set.";
    add(second_tier(p), true, false);
    add(hidden_fields(p), false, true);
    return out;
}

std::string Memory::why_not(std::string_view field) const {
    const auto one_of = [&](std::initializer_list<std::string_view> names) {
        return std::ranges::find(names, field) != names.end();
    };
    const bool dimension = one_of({"kind", "layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "tied"});
    if (dimension && params.model != "own") return "It belongs to a model of your own.";
    if (dimension && !params.config.empty()) return "The config.json decides it.";
    if (field == "act_counted" && !outcome->model.has_activations())
        return "There is no rule for the activations of this model.";
    if (outcome->ours() && one_of({"plan", "compare", "batch", "seq", "checkpointing", "gpus", "zero",
                                   "offload", "pcie", "attention"}))
        return "Our trainer has none.";
    if (field == "contexts" && !outcome->own.plan.infers()) return "It belongs to inference.";
    if (outcome->own.plan.infers() &&
        one_of({"checkpointing", "attention", "gpus", "zero", "offload", "pcie", "batch"}))
        return "It belongs to training.";
    if (field == "pcie" && outcome->own.account.offload_s == 0) return "Nothing is updated in CPU memory.";
    return "";
}

void Memory::choose_plan(std::string_view id) {
    params.plan = id;
    params.formats.fill("plan");
    params.places.fill("plan");
    params.act_counted = "plan";
}

bool Memory::perform(std::string_view action) {
    if (action != "allocate") return false;
    params.gpu = "live";
    ++times_;
    if (arms_.empty()) arms_ = kOwnModels.front().id;
    return true;
}

void Memory::settle() {
    // Heads divide the width, and KV heads the heads: the next smaller ones that do.
    params.heads = largest_divisor(params.hidden, params.heads);
    params.kv_heads = largest_divisor(params.heads, params.kv_heads);
    if (params.gpu != "live")
        arms_.clear();
    else if (find_own_model(params.model))
        arms_ = params.model;
}

Provenance Memory::provenance() const {
    const Allocated& allocated = outcome->allocated;
    if (allocated.live) return Provenance::tensor_core;
    return allocated.bytes[0] || allocated.bytes[1] ? Provenance::recorded : Provenance::cpu_emulated;
}

std::string Memory::device() const {
    return provenance() == Provenance::cpu_emulated
               ? ""
               : outcome->allocated.gpu + ": the allocated bytes. The rest is arithmetic.";
}

std::vector<Figure> Memory::figures() const {
    return {bars_figure(*outcome), tokens_figure(*outcome), plans_figure(params, *outcome)};
}

LabEntry entry() { return entry_of<MemoryLab>(Memory::kInfo); }

}  // namespace fp8lab::memory
