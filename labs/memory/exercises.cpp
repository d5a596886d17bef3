// The judges of L10's exercises, assets/exercises/memory.json.
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

}  // namespace

std::span<const NamedJudge> Memory::judges() {
    static constexpr std::array kJudges = {
        NamedJudge{"fix_the_table", fix_the_table}, NamedJudge{"costs_more", costs_more},
        NamedJudge{"on_24_gb", on_24_gb},           NamedJudge{"the_price", the_price},
        NamedJudge{"half_of_them", half_of_them},   NamedJudge{"believe_it", believe_it}};
    return kJudges;
}

}  // namespace fp8lab::memory
