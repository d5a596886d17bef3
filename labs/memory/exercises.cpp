// The exercises of L10.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/memory/model.h"

namespace fp8lab::memory {
namespace {

bool within(double value, double wanted, double by) { return std::fabs(value - wanted) <= by; }
bool says(const State& s, std::string_view name, std::string_view word) { return s.text(name) == word; }
std::vector<std::string> gigabytes(double value) { return {fmt::format("{:.1f} GB", value)}; }

// ---- L10.1
bool corrected(const State& s) {
    return says(s, "model", "seed7b") && within(s.number("weights_gb"), 7, 0.1) &&
           within(s.number("gradients_gb"), 7, 0.1) && within(s.number("state_gb"), 126, 0.1) &&
           s.number("cpu_gb") == 0;
}
bool in_e4m3(const State& s) {
    return says(s, "weights_format", "e4m3") && says(s, "gradients_format", "e4m3");
}

Verdict fix_the_table(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool seen = trail.visited(corrected);
    const bool stays = says(now, "model", "seed7b") && in_e4m3(now);
    const bool moved = within(now.number("gpu_gb"), 14, 0.1) && now.number("cpu_gb") >= 83.9;
    return {
        .conditions = {{"the right table: weights 7 GB, gradients 7 GB, 126 GB in all, nothing on the CPU",
                        gigabytes(now.number("state_gb")), seen},
                       {"then 14 GB on the GPU, and 84 GB or more in CPU memory",
                        {fmt::format("{:.1f} and {:.1f} GB", now.number("gpu_gb"), now.number("cpu_gb"))},
                        moved},
                       {"still 7 × 10^9 parameters, weights and gradients in E4M3", {}, stays}},
        .measured = seen ? std::vector<double>{126} : std::vector<double>{}};
}

// ---- L10.2
constexpr std::array kCells = {"weights", "copy", "copy_t", "gradients", "accumulator", "master", "m", "v"};

bool fp8_products(const State& s) {
    return says(s, "weights_format", "e4m3") || says(s, "copy_format", "e4m3");
}
bool fair(const State& s) {
    return says(s, "compare", "bf16") && says(s, "update_path", "master") && fp8_products(s) &&
           s.number("activations_counted") == 1;
}
bool same_cells(const State& a, const State& b) {
    for (const std::string name : kCells)
        if (a.text(name + "_format") != b.text(name + "_format") ||
            a.text(name + "_at") != b.text(name + "_at"))
            return false;
    return a.text("activations_format") == b.text("activations_format");
}

Verdict costs_more(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const auto larger = [](const State& s) { return fair(s) && s.number("diff_gb") >= 10; };
    const bool seen = trail.visited(larger);
    const bool with_now = trail.visited([&](const State& s) { return larger(s) && same_cells(s, now); });
    const bool smaller = fair(now) && with_now && now.number("diff_gb") < 0;
    return {.conditions = {{"FP8 products, FP32 updates, activations counted: 10 GB or more above BF16 mixed",
                            {},
                            seen},
                           {"now the same formats and places need less than BF16 mixed",
                            {fmt::format("{:+.1f} GB", now.number("diff_gb"))},
                            smaller}},
            .measured = seen ? std::vector<double>{3} : std::vector<double>{}};
}

// ---- L10.3
Verdict on_24_gb(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool model = says(now, "model", "seed7b") || now.number("parameters") >= 6.5e9;
    const bool trains = now.number("seq") >= 2048 && now.number("activations_counted") == 1 &&
                        !says(now, "update_path", "inference");
    const bool one = now.number("gpus") == 1;
    const bool master = says(now, "update_path", "master");
    // FP8 weights are multiplied in both directions, so that their transpose stays; all weights on the GPU.
    const bool usable = says(now, "weights_at", "gpu") &&
                        (!says(now, "weights_format", "e4m3") || says(now, "copy_t_format", "e4m3")) &&
                        !says(now, "weights_format", "none");
    const double total = now.number("gpu_gb");
    const bool done = model && trains && one && master && usable && total <= 24;
    return {.conditions = {{"at most 24 GB on one GPU", gigabytes(total), total <= 24 && one},
                           {"seven billion parameters, 2,048 tokens or more, activations counted",
                            {fmt::format("{:.0f} tokens", now.number("seq"))},
                            model && trains},
                           {"the update is in FP32", {now.text("update_path")}, master},
                           {"the weights are on the GPU, FP8 weights with their transpose", {}, usable}},
            .measured = done ? std::vector<double>{2} : std::vector<double>{}};
}

// ---- L10.4
Verdict the_price(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const bool kept = says(now, "model", "seed7b") && in_e4m3(now) && now.number("pcie") == 25 &&
                      now.number("gpus") == 1 && within(now.number("gpu_gb"), 14, 0.1);
    const double seconds = now.number("offload_s"), answer = trail.answered_number("seconds");
    const bool right = kept && std::fabs(answer - seconds) <= 0.1 * seconds;
    return {.conditions = {{"the offloaded plan: 14 GB on one GPU in E4M3, PCIe 25 GB/s", {}, kept},
                           {"the seconds of one step’s transfers, within 10 %",
                            {trail.answered("seconds")},
                            right}},
            .measured = right ? std::vector<double>{2} : std::vector<double>{}};
}

// ---- L10.5
Verdict half_of_them(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double saving = now.number("act_layer_saving_pct");
    const bool plans =
        says(now, "plan", "te") && says(now, "compare", "bf16") && says(now, "activations_format", "fp8");
    const bool found = plans && saving >= 20;
    return {
        .conditions = {{"Transformer Engine’s default with FP8 activations, against BF16 mixed", {}, plans},
                       {"a layer keeps at least 20 % fewer bytes", {fmt::format("{:.1f} %", saving)}, found}},
        .measured = found ? std::vector<double>{saving} : std::vector<double>{}};
}

// ---- L10.6
Verdict believe_it(const Trail& trail, const Prediction*) {
    const State& now = trail.now();
    const double allocated = now.number("own.fp8_allocated_gb"), answer = trail.answered_number("gb");
    const bool right = std::fabs(answer - allocated) <= 0.02 * allocated;
    return {.conditions = {{"the allocated bytes, within 2 %", {trail.answered("gb")}, right}},
            .note = right ? fmt::format("Allocated: {:.3f} GB. Calculated: {:.3f} GB.", allocated,
                                        now.number("own.fp8_calculated_gb"))
                          : std::string(),
            .measured = right ? std::vector<double>{allocated} : std::vector<double>{}};
}

Exercise exercise_fix_the_table() {
    return {
        .id = "L10.1",
        .title = "Fix the table",
        .question =
            "A widely read FP8 tutorial prints 14 GB of FP8 parameters for 7 × 10^9 of them. Correct the "
            "formats of weights and "
            "gradients, and look at the total. Then offload as the tutorial proposes: only weights and "
            "gradients "
            "stay on the GPU, without an accumulator.",
        .prediction = NumberPrediction{"total", "GB", 60, 200, 140, false, 1},
        .predict =
            "How many GB do weights, gradients, accumulator, master weights, m and v take once weights and "
            "gradients have 8 bits?",
        .covers = {"bars", "table", "plans"},
        .conditions_answer = true,
        .start = {"plan=seed-printed"},
        .hints =
            {"How many bytes are 8 bits?",
             "Change the format of the rows Weights and Gradients. Offload is behind More.",
             "Weights and gradients in E4M3: 126 GB. Then the accumulator to none and Offload to m, v and "
             "master: 14 GB."},
        .judge = fix_the_table,
        .explanation =
            "7 × 10^9 parameters of 1 byte are 7 GB, not 14. Offloading moves 84 GB to the CPU: the FP32 "
            "states were the large part.",
        .solver = {sets("w", "e4m3"), sets("g", "e4m3"), sets("acc", "none"), sets("offload", "master")},
        .near_misses = {
            NearMiss{"only the weights: 133 GB",
                     {sets("w", "e4m3")},
                     "the right table: weights 7 GB, gradients 7 GB, 126 GB in all, nothing on the CPU"},
            NearMiss{"offloaded in 16 bits, as printed: 28 GB",
                     {sets("acc", "none"), sets("offload", "master")},
                     "then 14 GB on the GPU, and 84 GB or more in CPU memory"},
            NearMiss{"corrected, not offloaded",
                     {sets("plan", "seed")},
                     "then 14 GB on the GPU, and 84 GB or more in CPU memory"}}};
}

Exercise exercise_costs_more() {
    return {
        .id = "L10.2",
        .title = "FP8 costs more",
        .question =
            "Find a plan with FP8 products and FP32 updates that needs at least 10 GB more than BF16 mixed. "
            "Then make it the smaller one without changing a format or a place.",
        .prediction = ChoicePrediction{{"half", "a quarter less", "the same", "more"}},
        .predict = "A training in FP8, compared with BF16 mixed: how much memory does it need?",
        .covers = {"bars", "table", "tokens", "plans"},
        .start = {"plan=te-primary"},
        .hints = {"What does Transformer Engine keep beside the BF16 weights?",
                  "Change Plan first, then Micro-batch or Sequence.",
                  "FP8, TE default on Hopper: +12 GB. It is smaller from 29 000 tokens on, so a micro-batch "
                  "of 8 is "
                  "enough."},
        .judge = costs_more,
        .explanation =
            "The FP8 copies cost 2 bytes per parameter, whatever the batch. The inputs of the linear "
            "layers save bytes per token. So only many tokens per GPU pay for the copies.",
        .solver = {sets("plan", "te"), sets("batch", "8")},
        .near_misses = {
            NearMiss{"too few tokens: still 6 GB more",
                     {sets("plan", "te"), sets("batch", "4")},
                     "now the same formats and places need less than BF16 mixed"},
            NearMiss{"FP8 weights alone were never 10 GB more",
                     {sets("batch", "8")},
                     "FP8 products, FP32 updates, activations counted: 10 GB or more above BF16 mixed"},
            NearMiss{"full checkpointing keeps no input that FP8 could make smaller",
                     {sets("plan", "te"), sets("batch", "8"), sets("checkpointing", "full")},
                     "now the same formats and places need less than BF16 mixed"}}};
}

Exercise exercise_24_gb() {
    return {
        .id = "L10.3",
        .title = "Seven billion on 24 GB",
        .question =
            "Fit the training of 7 × 10^9 parameters onto one card of 24 GB, with sequences of 2,048 tokens "
            "or "
            "more and activations counted. The weights stay on the GPU, FP8 weights with their transpose, "
            "and "
            "the update stays in FP32.",
        .prediction = ChoicePrediction{{"weights", "gradients", "Adam", "activations"}},
        .predict = "What has to leave the GPU first, so that 7 × 10^9 parameters train on 24 GB?",
        .covers = {"bars", "table"},
        .start = {"gpu=24"},
        .hints =
            {"Which rows have most of the bytes?",
             "Plan, Offload, the format of the gradients, Checkpointing and Sequence.",
             "FP8 weights, offload m, v and master, gradients in E4M3, full checkpointing, sequence 2,048: "
             "23.1 GB."},
        .judge = on_24_gb,
        .explanation =
            "Of 18 bytes per parameter 12 are Adam’s. With them on the CPU 3 remain: the FP8 weights, their "
            "transpose and FP8 gradients, 21 GB. Checkpointing leaves 1 GB of activations.",
        .solver = {sets("plan", "te-primary"), sets("g", "e4m3"), sets("offload", "master"),
                   sets("checkpointing", "full"), sets("seq", "2048")},
        .near_misses = {NearMiss{"gradients in BF16: 30 GB",
                                 {sets("plan", "te-primary"), sets("offload", "master"),
                                  sets("checkpointing", "full"), sets("seq", "2048")},
                                 "at most 24 GB on one GPU"},
                        NearMiss{"all activations kept: 30 GB",
                                 {sets("plan", "te-primary"), sets("g", "e4m3"), sets("offload", "master"),
                                  sets("seq", "2048")},
                                 "at most 24 GB on one GPU"},
                        NearMiss{"no master weights: updates round away",
                                 {sets("plan", "te-primary"), sets("g", "e4m3"), sets("offload", "master"),
                                  sets("master", "none"), sets("checkpointing", "full"), sets("seq", "2048")},
                                 "the update is in FP32"}}};
}

Exercise exercise_the_price() {
    return {
        .id = "L10.4",
        .title = "The price",
        .question =
            "The offloaded plan of L10.1 keeps 14 GB on the GPU. PCIe moves 25 GB/s each way, one "
            "direction after the other. How many seconds do the transfers of one step take?",
        .prediction = ChoicePrediction{{"10 ms", "100 ms", "0.5 s", "5 s"}},
        .predict = "How long do the transfers of one step of the offloaded plan take over PCIe at 25 GB/s?",
        .start = {"plan=seed-offload", "pcie=25"},
        .answers = {{"seconds", "Transfers of one step", "s"}},
        .hints = {"What crosses the bus in a step, and in which direction?",
                  "The gradients go down to the CPU, the updated weights come back up.",
                  "7 GB down and 7 GB up are 14 GB, divided by 25 GB/s."},
        .judge = the_price,
        .explanation =
            "Gradients and weights cross, not the states that stay on the CPU: 14 GB / 25 GB/s = "
            "0.56 s in every step. If both directions overlap, it is half of that.",
        .solver = {types("seconds", "0.56")},
        .near_misses = {NearMiss{"one way only",
                                 {types("seconds", "0.28")},
                                 "the seconds of one step’s transfers, within 10 %"},
                        NearMiss{"16 bits in both directions",
                                 {types("seconds", "1.12")},
                                 "the seconds of one step’s transfers, within 10 %"},
                        NearMiss{"all 84 GB of Adam",
                                 {types("seconds", "3.4")},
                                 "the seconds of one step’s transfers, within 10 %"}}};
}

Exercise exercise_half() {
    return {
        .id = "L10.5",
        .title = "Half the activations?",
        .question =
            "A project’s note on its FP8 training promises about 50 % less memory for activations. Find the "
            "model, the attention and the "
            "checkpointing with which Transformer Engine’s default saves most of a layer’s bytes: 20 % or "
            "more.",
        .prediction = NumberPrediction{"largest saving", "%", 0, 60, 50, false, 1},
        .predict = "What is the largest share of a layer’s activations that FP8 can save?",
        .covers = {"table"},
        .hints = {"Which of the tensors that a layer keeps are inputs of a linear layer?",
                  "Model, and behind More: Attention. Then Checkpointing.",
                  "GPT 7B, scores kept, selective: 7 of 34 bytes, 20.6 %."},
        .judge = half_of_them,
        .explanation =
            "Only the inputs of the four linear layers are kept in FP8. Norm inputs, Q, K, V and the input "
            "of the activation function stay in 16 bits. GPT has no gate, and with selective recomputation "
            "no scores, so its linear inputs are the largest share.",
        .solver = {sets("model", "gpt-7b"), sets("attention", "scores"), sets("checkpointing", "selective")},
        .near_misses = {NearMiss{"flash attention keeps its output in 16 bits: 14.7 %",
                                 {sets("model", "gpt-7b")},
                                 "a layer keeps at least 20 % fewer bytes"},
                        NearMiss{"Llama’s gate and up stay in 16 bits: 17.7 %",
                                 {sets("model", "llama2-7b"), sets("attention", "scores"),
                                  sets("checkpointing", "selective")},
                                 "a layer keeps at least 20 % fewer bytes"},
                        NearMiss{"the scores are most of the layer: 3.6 %",
                                 {sets("model", "gpt-7b"), sets("attention", "scores")},
                                 "a layer keeps at least 20 % fewer bytes"}}};
}

Exercise exercise_believe() {
    return {
        .id = "L10.6",
        .title = "Believe the calculator?",
        .question =
            "How many GB does L8’s trainer allocate in FP8 for the network 4096-16384-4096 with a batch of "
            "8192? The allocated bytes are hidden. Answer within 2 %.",
        .prediction = NumberPrediction{"FP8 trainer", "GB", 1, 6, 2, false, 0.1},
        .predict = "How many GB does L8’s trainer allocate in FP8 for 4096-16384-4096 with a batch of 8192?",
        .start = {"model=mlp", "own_hidden=on"},
        .answers = {{"gb", "Allocated in FP8", "GB"}},
        .hints = {"How many bytes does each weight take: FP32 states, gradient, FP8 copies?",
                  "17.5 bytes per weight. A row of the batch costs 6 × 4096 + 7 × 16384 bytes.",
                  "2.35 GB of states and 1.14 GB of the batch."},
        .judge = believe_it,
        .explanation =
            "The arithmetic gives 3.49 GB, the list of allocations 3.50. FP8 takes 5 % less than BF16 "
            "here, because the trainer keeps two FP8 copies of every input.",
        .uncovers = {"own_hidden=off"},
        .solver = {types("gb", "3.49")},
        .near_misses = {
            NearMiss{"the batch is missing", {types("gb", "2.35")}, "the allocated bytes, within 2 %"},
            NearMiss{"half of BF16", {types("gb", "1.85")}, "the allocated bytes, within 2 %"},
            NearMiss{"BF16’s bytes", {types("gb", "3.70")}, "the allocated bytes, within 2 %"}}};
}

}  // namespace

std::span<const Exercise> Memory::exercises() {
    static const std::array kExercises = {exercise_fix_the_table(), exercise_costs_more(),
                                          exercise_24_gb(),         exercise_the_price(),
                                          exercise_half(),          exercise_believe()};
    return kExercises;
}

}  // namespace fp8lab::memory
