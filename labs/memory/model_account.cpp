// Computes bytes and metrics from the fields.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"
#include "labs/memory/model.h"

namespace fp8lab::memory {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostTokens = 64.0 * 131072;  // that the fields can reach

ModelShape counted_model(const std::string& config) {
    const plan::ModelSize size = plan::read_model_size(config, "config");
    return {.id = "own",
            .label = "the " + size.model_type + " of a config.json",
            .layers = static_cast<double>(size.layers),
            .hidden = static_cast<double>(size.hidden),
            .ffn = static_cast<double>(size.ffn),
            .heads = static_cast<double>(size.heads),
            .kv_heads = static_cast<double>(size.kv_heads),
            .vocabulary = static_cast<double>(size.vocabulary),
            .tied = size.tied,
            .counted = size};
}

ModelShape model_of(const Params& p) {
    if (const ModelShape* model = find_model(p.model)) return *model;
    if (!p.config.empty()) return counted_model(p.config);
    return {.id = "own",
            .label = "a model of your own",
            .kind = p.kind == "gpt" ? Kind::gpt : Kind::llama,
            .layers = static_cast<double>(p.layers),
            .hidden = static_cast<double>(p.hidden),
            .ffn = static_cast<double>(p.ffn),
            .heads = static_cast<double>(p.heads),
            .kv_heads = static_cast<double>(p.kv_heads),
            .vocabulary = static_cast<double>(p.vocabulary),
            .tied = p.tied};
}

Load load_of(const Params& p) {
    return {.batch = static_cast<double>(p.batch),
            .sequence = static_cast<double>(p.sequence),
            .contexts = static_cast<double>(p.contexts),
            .recompute = p.checkpointing == "full"        ? Recompute::full
                         : p.checkpointing == "selective" ? Recompute::selective
                                                          : Recompute::none,
            .scores = p.attention == "scores",
            .gpus = static_cast<double>(p.gpus),
            .zero = p.zero};
}

Side side_of(const Plan& plan, const ModelShape& model, const Load& load, double pcie) {
    return {.plan = plan,
            .account = account(plan, model, load, pcie),
            .act_layer = plan.activations_counted ? layer_bytes(model, plan.inputs, load) : kNaN,
            .per_parameter = plan.bytes(Place::gpu)};
}

// Our trainer's arms as plans: what has bytes has a format.
Side side_of(const OwnArm& arm, const OwnModel& model) {
    const bool fp8 = arm.recipe != "bf16";
    Side side{.plan = find_plan(fp8 ? "te" : "bf16"), .account = arm.account};
    side.plan.name = fp8 ? model.fp8 : model.bf16;
    side.plan[Row::gradients] = Keep::fp32;
    // Memory is shared: the copy that fprop read is gone in the backward pass.
    const Inputs narrow = arm.saved > 0 ? Inputs::fp8 : Inputs::fp8_both;
    side.plan.inputs = fp8 ? narrow : Inputs::bf16;
    if (fp8 && arm.account[Row::weights] == 0) side.plan[Row::weights] = Keep::none;
    side.act_layer = kNaN;
    side.per_parameter = arm.per_weight;
    return side;
}

// Where the difference crosses 0, from one token to kMostTokens; NaN: nowhere.
double break_even_of(const Outcome& outcome) {
    double low = 1, high = kMostTokens;
    const auto at = [&](double tokens) { return difference_at(outcome, tokens); };
    const bool above = at(low) > 0;
    if (!std::isfinite(at(high)) || above == (at(high) > 0) || at(high) == 0) return kNaN;
    constexpr int kHalvings = 60;
    for (int i = 0; i < kHalvings; ++i) {
        const double middle = (low + high) / 2;
        ((at(middle) > 0) == above ? low : high) = middle;
    }
    return high;
}

}  // namespace

Plan plan_of(const Params& p) {
    Plan plan = find_plan(p.plan);
    const auto place = [](const std::string& cell, Place as_planned) {
        return cell == "plan" ? as_planned : cell == "cpu" ? Place::cpu : Place::gpu;
    };
    for (std::size_t i = 0; i < kStates; ++i) {
        if (p.formats[i] != "plan") plan.states[i] = keep_of(p.formats[i]);
        const Row row = static_cast<Row>(i);
        const bool moved = (p.offload != "none" && (row == Row::m || row == Row::v)) ||
                           (p.offload == "master" && row == Row::master);
        plan.places[i] = place(p.places[i], moved ? Place::cpu : plan.places[i]);
    }
    const std::string &act = p.formats[index(Row::activations)], &kv = p.formats[index(Row::kv)];
    if (act != "plan")
        plan.inputs = act == "bf16" ? Inputs::bf16 : act == "fp8" ? Inputs::fp8 : Inputs::fp8_both;
    plan.inputs_at = place(p.places[index(Row::activations)], plan.inputs_at);
    // Only inference has a KV cache.
    if (plan.infers() && kv != "plan") plan.kv = keep_of(kv);
    if (!plan.infers()) plan.kv = Keep::none;
    plan.kv_at = place(p.places[index(Row::kv)], plan.kv_at);
    if (p.act_counted != "plan") plan.activations_counted = p.act_counted == "on";
    return plan;
}

bool Outcome::leaves_out_activations() const {
    const bool counted = own.plan.activations_counted;
    if (ours() || counted == other.plan.activations_counted) return false;
    return !(counted ? other : own).plan.infers();  // an inference keeps none: nothing is left out
}

double Outcome::compared(std::size_t side) const {
    const Side& one = side == 0 ? own : other;
    if (!leaves_out_activations()) return one.account.on_gpu();
    Plan plan = one.plan;
    plan.activations_counted = false;
    return account(plan, model, load, pcie).on_gpu();
}

double difference_at(const Outcome& outcome, double tokens) {
    Outcome there = outcome;
    there.load.sequence = tokens / there.load.batch;
    for (Side* side : {&there.own, &there.other})
        side->account = account(side->plan, there.model, there.load, there.pcie);
    return there.difference();
}

Outcome outcome_of(const Params& p, const Allocated& allocated) {
    static const std::array<OwnArm, 2> kNetwork = {own_arm("mlp", "bf16"), own_arm("mlp", "delayed")};
    static const std::array<OwnArm, 2> kTransformer = {own_arm("transformer", "bf16"),
                                                       own_arm("transformer", "delayed")};
    const double pcie = p.pcie * kGB;
    Outcome out{.model = model_of(p),
                .load = load_of(p),
                .own_model = find_own_model(p.model),
                .trainer = p.model == "transformer" ? kTransformer : kNetwork};
    out.allocated = allocated;
    out.pcie = pcie;
    for (std::size_t i = 0; i < out.trainer.size(); ++i) out.trainer[i].allocated = allocated.bytes[i];
    const Card& card = find_card(p.gpu);
    const bool live = p.gpu == "live" && allocated.live;
    out.gpu_bytes = live ? allocated.memory : card.bytes;
    out.gpu_name = live ? allocated.gpu : card.name;
    out.break_even = kNaN;
    if (out.ours()) {
        out.own = side_of(out.trainer[1], *out.own_model);
        out.other = side_of(out.trainer[0], *out.own_model);
        const TrainSpec spec = own_model(out.own_model->id);
        out.parameters = own_weights(spec);
        out.load.sequence = spec.batch;
        if (p.model == "transformer") out.load.sequence *= spec.sizes.at("context");
        return out;
    }
    out.parameters = out.model.parameters();
    const auto of_model = [&](Plan plan) {  // without a rule for its activations they are not counted
        plan.activations_counted = plan.activations_counted && out.model.has_activations();
        return plan;
    };
    out.own = side_of(of_model(plan_of(p)), out.model, out.load, pcie);
    const Plan preset = of_model(find_plan(p.plan));
    const Plan& plan = out.own.plan;
    out.own.changed = plan.states != preset.states || plan.places != preset.places ||
                      plan.inputs != preset.inputs || plan.inputs_at != preset.inputs_at ||
                      plan.kv != preset.kv || plan.kv_at != preset.kv_at ||
                      plan.activations_counted != preset.activations_counted;
    out.other = side_of(of_model(find_plan(p.compare)), out.model, out.load, pcie);
    out.break_even = break_even_of(out);
    return out;
}

std::string gb_text(double bytes) {
    constexpr double kTB = 1e12;
    if (bytes >= 10 * kTB) return fmt::format("{:.1f} TB", bytes / kTB);
    return fmt::format("{:.{}f} GB", bytes / kGB, std::fabs(bytes) < 9.9995 * kGB && bytes != 0 ? 3 : 1);
}

std::string gb_short(double bytes) {
    if (bytes > 0 && bytes < kGB) return fmt::format("{:.3f}", bytes / kGB);
    return bytes >= 1e13 ? fmt::format("{:.0f}", bytes / kGB) : screen_number(bytes / kGB, 3);
}

std::string tokens_text(double tokens) {
    const double unit = std::pow(10.0, std::floor(std::log10(tokens)) - 1);
    return group_thousands(std::llround(std::round(tokens / unit) * unit));
}

std::vector<table::MetricRow> Memory::metrics() const {
    const Outcome& o = *outcome;
    const Account &own = o.own.account, &other = o.other.account;
    std::vector<table::MetricRow> out;
    const auto add = [&](std::string name, double value, std::string unit = {}) {
        out.push_back(table::known(std::move(name), value, std::move(unit)));
    };
    const auto gigabytes = [&](std::string name, double bytes) { add(std::move(name), bytes / kGB, "GB"); };
    const auto word = [&](std::string name, std::string_view text) {
        out.push_back(table::known_word(std::move(name), std::string(text)));
    };
    gigabytes("gpu_gb", own.on_gpu());
    gigabytes("cpu_gb", own.on_cpu());
    gigabytes("state_gb", own.states());
    gigabytes("compare_gpu_gb", other.on_gpu());
    gigabytes("diff_gb", o.difference());
    gigabytes("fp32_gb", own.fp32);
    add("bytes_per_parameter", o.own.per_parameter, "B");
    add("compare_bytes_per_parameter", o.other.per_parameter, "B");
    add("parameters", o.parameters);
    if (o.model.counted) {
        add("active_parameters", o.model.counted->active);
        add("embedding_parameters", o.model.counted->embedding);
    }
    for (const RowInfo& row : memory::rows()) {
        const std::string name(row.metric);
        const std::size_t i = index(row.row);
        gigabytes(name + "_gb", own.gpu[i] + own.cpu[i]);
        if (i >= kStates) continue;
        word(name + "_format", id_of(o.own.plan[row.row]));
        word(name + "_at", o.own.plan.places[i] == Place::cpu ? "cpu" : "gpu");
    }
    word("activations_format", o.own.plan.inputs == Inputs::bf16  ? "bf16"
                               : o.own.plan.inputs == Inputs::fp8 ? "fp8"
                                                                  : "fp8-both");
    add("activations_counted", o.own.plan.activations_counted ? 1 : 0);
    add("act_sbh", o.own.act_layer / o.model.hidden);
    add("act_compare_sbh", o.other.act_layer / o.model.hidden);
    add("act_layer_saving_pct", 100 * (1 - o.own.act_layer / o.other.act_layer), "%");
    add("tokens", o.load.tokens());
    add("break_even_tokens", o.break_even);
    add("fits", own.on_gpu() <= o.gpu_bytes ? 1 : 0);
    gigabytes("gpu_size_gb", o.gpu_bytes);
    add("offload_s", own.offload_s, "s");
    add("offload_overlapped_s", own.offload_overlapped_s, "s");
    word("update_path", o.ours() ? "master" : update_path(o.own.plan));
    constexpr double kSide = 1024, kMiB = 1024.0 * 1024.0;
    add("linear_forward_mib", o.ours() ? kNaN : linear_forward_bytes(o.own.plan, kSide, kSide, kSide) / kMiB,
        "MiB");
    add("kv_bytes_per_token", o.ours() ? 0 : kv_bytes_per_token(o.model, o.own.plan.kv), "B");
    for (std::size_t i = 0; i < o.trainer.size(); ++i) {
        const OwnArm& arm = o.trainer[i];
        const std::string name = i == 0 ? "own.bf16_" : "own.fp8_";
        gigabytes(name + "calculated_gb", arm.calculated);
        gigabytes(name + "allocated_gb", arm.allocated.value_or(kNaN));
        add(name + "off_pct", arm.off_pct(), "%");
        gigabytes(name + "saved_gb", arm.saved);
    }
    return out;
}

}  // namespace fp8lab::memory
