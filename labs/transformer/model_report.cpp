// What L13 says of a run in numbers and words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/transformer/model.h"

namespace fp8lab::transformer {
namespace {

constexpr std::array kParts = {"amax", "scale", "lost_pct", "saturated_steps", "sqnr_db"};

double part(const TensorHealth& health, std::string_view name) {
    if (name == "amax") return health.amax;
    if (name == "scale") return health.scale;
    if (name == "lost_pct") return health.lost_pct;
    if (name == "saturated_steps") return health.saturated_steps;
    return health.sqnr_db;
}

std::string_view unit_of(std::string_view name) {
    return name == "lost_pct" ? "%" : name == "sqnr_db" ? "dB" : name == "saturated_steps" ? "steps" : "";
}

}  // namespace

double TransformerLab::first_loss(std::size_t arm) const {
    if (arm >= history_.arms().size() || history_.arms()[arm].loss.size() == 0) return kNan;
    return history_.arms()[arm].loss.values().front();
}

double TransformerLab::ln_vocabulary() const { return std::log(static_cast<double>(spec().vocabulary)); }

int TransformerLab::learnt_at(std::size_t arm) const {
    constexpr std::size_t kWindow = 20;
    if (arm >= history_.arms().size()) return -1;
    const auto accuracy = history_.arms()[arm].accuracy.values();
    double sum = 0;
    for (std::size_t i = 0; i < accuracy.size(); ++i) {
        sum += accuracy[i];
        if (i >= kWindow) sum -= accuracy[i - kWindow];
        if (i + 1 >= kWindow && sum / kWindow >= 0.99) return static_cast<int>(i) + 1;
    }
    return -1;
}

Words TransformerLab::words(std::size_t arm) const {
    const auto& told = evaluations_.at(arm);
    if (!told) return {};
    const auto one_line = [](std::string text) {
        std::ranges::replace(text, '\n', ' ');
        return text;
    };
    Words out{.prompt = one_line(told->prompt),
              .continuation = one_line(told->continuation),
              .step = told->text_step};
    if (told->expected.empty()) return out;
    for (std::size_t i = 0; i < told->continuation.size(); ++i)
        out.wrong.push_back(i >= told->expected.size() || told->continuation[i] != told->expected[i]);
    return out;
}

std::vector<Metric> TransformerLab::metrics() const {
    const TrainSpec& now = spec();
    const Recipe& recipe = now.arms.at(1);
    std::vector<Metric> all = {{.name = "step", .value = double(step())}};
    all.push_back({.name = "ln_v", .value = ln_vocabulary(), .unit = "nats"});
    const std::vector<Operation> ops = operations();
    const auto narrow = std::ranges::count_if(ops, [](const Operation& op) { return op.narrow; });
    all.push_back({.name = "fp8_ops", .value = double(narrow)});
    all.push_back({.name = "flop_share_pct",
                   .value = flop_share_pct(plan(), recipe, now.sizes.at("context")),
                   .unit = "%"});
    all.push_back({.name = "selected", .text = params_.tensor});
    if (step() == 0) return all;
    for (std::size_t i = 0; i < history_.arms().size(); ++i) {
        const std::string arm(1, "ab"[i]);
        const live::ArmTrack& track = history_.arms()[i];
        all.push_back({.name = "recipe_" + arm, .text = now.arms[i].name});
        all.push_back({.name = "loss_" + arm, .value = track.loss.last(), .unit = "nats"});
        all.push_back({.name = "tail_" + arm, .value = track.tail_loss(), .unit = "nats"});
        all.push_back({.name = "first_loss_" + arm, .value = first_loss(i), .unit = "nats"});
        if (const auto& told = evaluations_.at(i)) {
            all.push_back({.name = "heldout_" + arm, .value = told->loss, .unit = "nats"});
            all.push_back({.name = "writes_" + arm, .text = words(i).prompt + words(i).continuation});
        }
        if (now.task == TaskKind::copying) {
            all.push_back({.name = fmt::format("acc_{}_pct", arm),
                           .value = 100 * live::tail_mean(track.accuracy.values(), 20),
                           .unit = "%"});
            const int learnt = learnt_at(i);
            all.push_back({.name = "t99_" + arm, .value = learnt < 0 ? kNan : learnt, .unit = "steps"});
        }
        if (track.stopped)
            all.push_back({.name = "stopped_" + arm,
                           .text = fmt::format("step {}, {}", track.stopped->step, track.stopped->tensor)});
    }
    all.push_back({.name = "gap_b_pct", .value = gap_pct(), .unit = "%"});
    if (const auto aligned = aligned_at())
        all.push_back({.name = "aligned_at", .value = double(*aligned), .unit = "steps"});
    for (std::size_t i = 0; i < history_.arms().size(); ++i) {
        const auto& cost = history_.arms()[i].cost;
        if (!cost) continue;
        const std::string name = fmt::format("ms_{}", "ab"[i]);
        all.push_back({.name = name, .value = cost->step_ms, .unit = "ms"});
        for (const auto& [part, ms] : cost->parts)
            all.push_back({.name = name + "." + part, .value = ms, .unit = "ms"});
    }
    if (const auto speedup = live::speedup_of(history_, 1))
        all.push_back({.name = "speedup_b", .value = speedup->ratio});
    for (const auto& [name, gradients] : {std::pair{"worst_x", false}, {"worst_dy", true}}) {
        const Worst worst = worst_of(health_[1], plan(), recipe, gradients);
        if (worst.name.empty()) continue;
        all.push_back({.name = name, .text = worst.name});
        all.push_back({.name = std::string(name) + "_lost_pct", .value = worst.lost_pct, .unit = "%"});
    }
    for (std::size_t i = 0; i < health_[1].tensors().size(); ++i) {
        const TensorHealth& health = health_[1].tensors()[i];
        const std::string& name = plan().tensors[i].name;
        if (std::isnan(health.amax)) continue;
        for (const char* which : kParts)
            all.push_back({.name = name + "." + which,
                           .value = part(health, which),
                           .unit = std::string(unit_of(which))});
        if (name != params_.tensor) continue;
        all.push_back({.name = "selected.amax", .value = health.amax});
        all.push_back({.name = "selected.lost_pct", .value = health.lost_pct, .unit = "%"});
        all.push_back(
            {.name = "selected.saturated_steps", .value = double(health.saturated_steps), .unit = "steps"});
        all.push_back({.name = "selected.kurtosis", .value = health.kurtosis});
    }
    return all;
}

std::vector<std::string> TransformerLab::metric_names() const {
    std::vector<std::string> out = Lab::metric_names();
    for (const char* name : {"recipe_a",
                             "recipe_b",
                             "loss_a",
                             "loss_b",
                             "tail_a",
                             "tail_b",
                             "first_loss_a",
                             "first_loss_b",
                             "heldout_a",
                             "heldout_b",
                             "writes_a",
                             "writes_b",
                             "acc_a_pct",
                             "acc_b_pct",
                             "t99_a",
                             "t99_b",
                             "stopped_a",
                             "stopped_b",
                             "gap_b_pct",
                             "aligned_at",
                             "ms_a",
                             "ms_b",
                             "speedup_b",
                             "worst_x",
                             "worst_x_lost_pct",
                             "worst_dy",
                             "worst_dy_lost_pct",
                             "selected.amax",
                             "selected.lost_pct",
                             "selected.saturated_steps",
                             "selected.kurtosis"})
        out.emplace_back(name);
    for (const OperandSpec& tensor : plan().tensors)
        for (const char* name : kParts) out.push_back(tensor.name + "." + name);
    return out;
}

std::string TransformerLab::cost_sentence() const {
    const std::string sentence = live::speedup_details(history_, looks());
    const auto speedup = live::speedup_of(history_, 1);
    if (!speedup || speedup->ratio >= 1) return sentence;
    return sentence +
           " A model of this size has too little to multiply: casts and launches cost more than "
           "FP8 saves.";
}

std::shared_ptr<const Shipped> TransformerLab::recorded() const {
    if (gpu_reason().empty()) return nullptr;
    auto all = shipped();
    const bool any =
        std::ranges::any_of(all->recordings, [](const Recording& one) { return !one.blocks.empty(); });
    return any ? all : nullptr;
}

std::vector<Figure> TransformerLab::recorded_curves() const {
    const auto run = recorded_run().run;
    if (!run) return {};
    const auto arm_looks = live::arm_looks(run->arms);
    return {loss_figure(run->history, arm_looks), gap_figure(run->history, arm_looks)};
}

std::string TransformerLab::command() const {
    std::string text = Session::command();
    if (const auto aligned = aligned_at())
        text += fmt::format("\n# a channel of SwiGLU was aligned after step {}", *aligned);
    return text;
}

std::string TransformerLab::transformer_engine() const {
    const std::string code = Session::transformer_engine();
    if (code.starts_with('#')) return code;
    return fmt::format(
        "recipe = {}\n"
        "block = te.TransformerLayer(\n"
        "    hidden_size=64, ffn_hidden_size=192, num_attention_heads=4, num_gqa_groups=4,\n"
        "    normalization=\"RMSNorm\", activation=\"swiglu\", bias=False, fuse_qkv_params=True,\n"
        "    hidden_dropout=0.0, attention_dropout=0.0, params_dtype=torch.bfloat16)\n"
        "with te.autocast(enabled=True, recipe=recipe):\n"
        "    y = block(x, self_attn_mask_type=\"causal\", rotary_pos_emb=rope)",
        code);
}

}  // namespace fp8lab::transformer
