// The Explore tab of L13: the switches of arm B, then the numbers of the run.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "labs/transformer/view.h"

namespace fp8lab::transformer {
namespace {

using ui::Context;

constexpr std::array<std::string_view, 6> kFirst = {"backend", "arm_b", "attention", "head", "act", "task"};
constexpr std::array<std::string_view, 20> kMore = {
    "arm_a",        "wide",    "fprop_in",   "dgrad_in",      "wgrad_in",     "m",       "v",
    "moment_block", "round_m", "round_v",    "master",        "round_update", "history", "batch",
    "lr",           "seed",    "accumulate", "accumulate_in", "weight_cache", "amax_of"};

ui::Cell number_cell(double value, int decimals = 3) {
    if (!std::isfinite(value)) return {};
    return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

}  // namespace

void TransformerView::explore(Context& c, float width) {
    draw_rows(c, kFirst);
    align_button(c);
    draw_rows(c, {}, kMore, "arm A, GEMMs, moments, training");
    draw_waiting(c);
    ui::divider(c);
    numbers(c, width);
    notes(c);
    draw_copy_buttons(c, width, "copy_model", "Copy TE model", "Copy as Transformer Engine model");
}

void TransformerView::draw_row(Context& c, const table::Row& row, const Field& default_field) {
    const std::string& name = row.field.info.name;
    if (name == "backend") return draw_backend(c, row, 150);
    if (name == "accumulate") return draw_micro_batches(c, row, default_field, lab_.params().batch);
    if (name == "arm_a") return (void)draw_arm(c, row, row.field.info.label, 0);
    if (name == "arm_b") {
        const bool chosen =
            draw_arm(c, row, fmt::format("Arm B, beside arm A in {}", lab_.looks()[0].name), 1);
        // The recipe has no attention in FP8, and the switch is shown so.
        if (chosen && lab_.params().arm_b == "block128") set_field(lab_.fields(), "attention=bf16");
    } else if (row.field.info.more) {
        SessionView::draw_row(c, row, default_field);
    } else {
        draw_choice(c, row, row.field.choices.size() > 2 ? 76 : 150, true, row.field.info.help);
    }
}

void TransformerView::align_button(Context& c) {
    const std::string why = lab_.why_not_align();
    if (ui::button(c, "transformer.align", "Align a channel of SwiGLU",
                   {.disabled = !why.empty(), .why_disabled = why, .width = -1}))
        lab_.act("align");
}

void TransformerView::numbers(Context& c, float width) {
    const auto looks = lab_.looks();
    const auto& arms = lab_.history().arms();
    const bool started = lab_.step() > 0, copying = lab_.spec().task == TaskKind::copying;
    const int learnt = lab_.learnt_at(1);
    const std::string gap = !started     ? ""
                            : !copying   ? live::signed_percent(lab_.gap_pct())
                            : learnt < 0 ? "–"
                                         : std::to_string(learnt);
    draw_headline(c, gap,
                  !started  ? "no step yet"
                  : copying ? fmt::format("steps to 99 %, {}", looks[1].name)
                            : "gap, last 100 steps",
                  34);
    const std::array<float, 4> columns = {0.24F * width, 0.24F * width, 0.26F * width, 0.26F * width};
    draw_heads(c,
               std::array{Head{"", ""}, Head{"first", "loss"},
                          copying ? Head{"accuracy %", "induction-head"} : Head{"tail loss", "tail-loss"},
                          Head{"held-out", "held-out"}},
               columns);
    for (std::size_t i = 0; i < 2; ++i) {
        const live::ArmTrack* arm = started && i < arms.size() ? &arms[i] : nullptr;
        const double tail = !arm      ? kNan
                            : copying ? 100 * live::tail_mean(arm->accuracy.values(), 20)
                                      : arm->tail_loss();
        const auto& told = lab_.evaluation(i);
        ui::table_row(c,
                      std::array{arm_cell(looks[i]), number_cell(lab_.first_loss(i)),
                                 number_cell(tail, copying ? 1 : 3), number_cell(told ? told->loss : kNan)},
                      columns);
    }
    end_table(c, width);
}

void TransformerView::notes(Context& c) {
    if (const std::string message = lab_.message(); !message.empty()) ui::warning(c, message);
    if (const auto& arms = lab_.history().arms(); arms.size() > 1)
        if (const std::string sums = live::sum_words(arms[1], lab_.spec().accumulate); !sums.empty())
            ui::wrapped(c, sums, Role::text);
    if (const std::string why = lab_.no_record(); !why.empty()) ui::wrapped(c, why, Role::text);
    ui::wrapped(
        c, fmt::format(
               "First loss = ln {} = {:.3f}, to 1 %: an untrained head finds every symbol equally likely.",
               lab_.spec().vocabulary, lab_.ln_vocabulary()));
    if (lab_.aligned_at())
        ui::wrapped(c,
                    "The channel was set by hand and is held. In a real run such a channel grew over 200 "
                    "billion tokens.");
    if (const std::string cost = lab_.cost_sentence(); !cost.empty()) ui::wrapped(c, cost, Role::text);
    ui::wrapped(
        c, lab_.provenance() == Provenance::cpu_emulated
               ? "Exact: every cast, scale and loss. Simplified: 2 blocks, 600 steps; the CPU adds in FP32."
               : "Exact: every cast, scale and loss. Simplified: 2 blocks, 600 steps.");
}

}  // namespace fp8lab::transformer
