// What L13 says of a run in numbers and words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/live/metrics.h"
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

void add_arm(live::MetricList& list, const TransformerLab& lab, std::size_t index) {
    const std::string arm(1, "ab"[index]);
    const live::ArmTrack& track = lab.history().arms()[index];
    list.word("recipe_" + arm, lab.spec().arms[index].name);
    list.number("loss_" + arm, track.loss.last(), "nats");
    list.number("tail_" + arm, track.tail_loss(), "nats");
    list.number("first_loss_" + arm, lab.first_loss(index), "nats");
    if (const auto& told = lab.evaluation(index)) {
        list.number("heldout_" + arm, told->loss, "nats");
        list.word("writes_" + arm, lab.words(index).prompt + lab.words(index).continuation);
    }
    if (lab.spec().task == TaskKind::copying) {
        list.number(fmt::format("acc_{}_pct", arm), 100 * live::tail_mean(track.accuracy.values(), 20), "%");
        const int learnt = lab.learnt_at(index);
        list.number("t99_" + arm, learnt < 0 ? kNan : learnt, "steps");
    }
    list.stopped("stopped_" + arm, track);
    if (track.accumulate_error_pct.is_known())
        list.number("accumulate_error_" + arm + "_pct", track.accumulate_error_pct.value(), "%");
    if (track.v_zero_pct.is_known()) {
        list.number("v_zero_" + arm + "_pct", track.v_zero_pct.value(), "%");
        list.number("large_updates_" + arm + "_ppm", track.large_updates_ppm.value(), "ppm");
    }
}

// Of arm B's tensors.
void add_health(live::MetricList& list, const TransformerLab& lab) {
    const auto& tensors = lab.health()[1].tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorHealth& health = tensors[i];
        const std::string& name = lab.plan().tensors[i].name;
        if (std::isnan(health.amax)) continue;
        for (const char* which : kParts)
            list.number(name + "." + which, part(health, which), std::string(unit_of(which)));
        if (!std::isnan(health.saturated_casts))
            list.number(name + ".saturated_casts_pct",
                        100 * health.saturated_casts / lab.spec().accumulate.micro_batches, "%");
        if (name != lab.params().tensor) continue;
        list.number("selected.amax", health.amax);
        list.number("selected.lost_pct", health.lost_pct, "%");
        list.number("selected.saturated_steps", health.saturated_steps, "steps");
        list.number("selected.kurtosis", health.kurtosis);
    }
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
    live::MetricList list;
    list.number("step", step());
    list.number("ln_v", ln_vocabulary(), "nats");
    const std::vector<Operation> ops = operations();
    list.number("fp8_ops", double(std::ranges::count(ops, true, &Operation::narrow)));
    list.number("flop_share_pct", flop_share_pct(plan(), recipe, now.sizes.at("context")), "%");
    list.word("selected", params_.tensor);
    if (step() == 0) return list.all;
    for (std::size_t i = 0; i < history_.arms().size(); ++i) add_arm(list, *this, i);
    list.number("gap_b_pct", gap_pct(), "%");
    if (const auto aligned = aligned_at()) list.number("aligned_at", *aligned, "steps");
    for (std::size_t i = 0; i < history_.arms().size(); ++i) {
        const auto& cost = history_.arms()[i].cost;
        if (!cost) continue;
        const std::string name = fmt::format("ms_{}", "ab"[i]);
        list.number(name, cost->step_ms, "ms");
        for (const auto& [part, ms] : cost->parts) list.number(name + "." + part, ms, "ms");
    }
    if (const auto speedup = live::speedup_of(history_, 1)) list.number("speedup_b", speedup->ratio);
    for (const auto& [name, gradients] : {std::pair{"worst_x", false}, {"worst_dy", true}}) {
        const Worst worst = worst_of(health_[1], plan(), recipe, gradients);
        if (worst.name.empty()) continue;
        list.word(name, worst.name);
        list.number(std::string(name) + "_lost_pct", worst.lost_pct, "%");
    }
    add_health(list, *this);
    return std::move(list.all);
}

std::vector<std::string> TransformerLab::metric_names() const {
    std::vector<std::string> out = Lab::metric_names();
    for (const char* arm : {"a", "b"})
        live::add_names(out,
                        {"recipe_{}", "loss_{}", "tail_{}", "first_loss_{}", "heldout_{}", "writes_{}",
                         "acc_{}_pct", "t99_{}", "stopped_{}", "accumulate_error_{}_pct", "v_zero_{}_pct",
                         "large_updates_{}_ppm", "ms_{}"},
                        arm);
    for (const char* worst : {"worst_x", "worst_dy"}) live::add_names(out, {"{}", "{}_lost_pct"}, worst);
    live::add_names(out, {"gap_{}_pct", "speedup_{}"}, "b");
    live::add_names(out, {"{}.amax", "{}.lost_pct", "{}.saturated_steps", "{}.kurtosis"}, "selected");
    out.emplace_back("aligned_at");
    for (const OperandSpec& tensor : plan().tensors) {
        for (const char* name : kParts) out.push_back(tensor.name + "." + name);
        out.push_back(tensor.name + ".saturated_casts_pct");
    }
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
