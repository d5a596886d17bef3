// The Explore tab of L10: plans, model and tokens, then the total and L8's trainer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/backend/recording.h"
#include "core/base/units.h"
#include "labs/memory/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::memory {
namespace {

using ui::Context;

}  // namespace

// A plan brings its own cells; with other cells it is no preset any more.
bool MemoryView::draw_own(Context& c, const table::Row& row, const Field&) {
    const Field& field = row.field;
    if (field.info.name != "plan") return false;
    std::vector<std::string> labels;
    int selected = 0;
    for (const Choice& choice : field.choices) {
        if (choice.id == lab_->params.plan) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
    }
    if (lab_->outcome->own.changed) {
        labels.push_back("own, from " + labels[static_cast<std::size_t>(selected)]);
        selected = static_cast<int>(labels.size()) - 1;
    }
    ui::text(c, field.info.label, Role::muted, kSans13);
    const bool chosen = ui::dropdown(c, "plan", labels, selected);
    ui::tooltip(c, field.info.label, field.info.help);
    if (chosen && selected < static_cast<int>(field.choices.size()))
        lab_->choose_plan(field.choices[static_cast<std::size_t>(selected)].id);
    return true;
}

void MemoryView::draw_below(Context& c, float width) {
    ui::divider(c);
    draw_result(c, width);
    ui::divider(c);
    draw_trainer(c, width);
}

void MemoryView::draw_result(Context& c, float width) {
    const Outcome& o = *lab_->outcome;
    const Rect line = ui::next_area(c, 36);
    const float y = (line.y0 + line.y1) / 2;
    const std::string total = gb_text(o.own.account.on_gpu());
    const bool lost = !o.ours() && update_path(o.own.plan) == "none";
    ui::text_mid(c, {line.x0, y}, total, {lost ? Role::muted : Role::text}, {Face::mono, 32});
    ui::probe(c, "memory.total", line, {}, total);
    if (!o.ours())
        ui::text_mid(c, {line.x0 + width, y + c.px(6)},
                     fmt::format("of {} on {} {}", screen_number(o.gpu_bytes / kGB),
                                 o.gpu_name.starts_with('H') ? "an" : "a", o.gpu_name),
                     {Role::muted}, kSans13, Anchor::right);
    ui::advance(line);
    ui::wrapped(c, cause(o));
    if (lost) ui::warning(c, "FP8 weights without a master: updates round away (L7).");
    const Params& p = lab_->params;
    if (!o.ours() && p.zero > 0 && p.gpus == 1) ui::wrapped(c, "One GPU shards nothing.");
    if (!o.ours() && p.zero == 0 && p.gpus > 1 && lab_.why_not("gpus").empty())
        ui::wrapped(c, "Without ZeRO each GPU keeps everything.");
    if (!o.ours() && p.offload == "master" && o.own.plan[Row::master] == Keep::none &&
        o.own.plan[Row::m] == Keep::none)
        ui::wrapped(c, "There is nothing to offload.");
}

// Compares the calculator with the bytes that were allocated.
void MemoryView::draw_trainer(Context& c, float width) {
    const Outcome& o = *lab_->outcome;
    ui::text(c, "Held against our own trainer", Role::text, kBold15);
    const Allocated& allocated = o.allocated;
    const OwnModel& model = o.ours() ? *o.own_model : kOwnModels.front();
    const std::string card = short_gpu_name(allocated.gpu);
    const bool taken = allocated.bytes[0] || allocated.bytes[1];
    const std::string what = fmt::format("GB of {}, batch {}", model.sizes, model.batch);
    ui::wrapped(c, !allocated.problem.empty() ? allocated.problem
                   : taken                    ? fmt::format("{}, {}", what, card)
                                              : what + ", not recorded on a card");
    const std::vector<float> columns = {0.2F * width, 0.27F * width, 0.27F * width, 0.26F * width};
    const auto head = [](const char* words) {
        return ui::Cell{.text = words, .role = Role::muted, .mono = false};
    };
    const std::array heads = {head(""), head("calculated"), head("allocated"), head("off by")};
    ui::table_row(c, heads, columns);
    const bool hidden = lab_->params.own_hidden;
    for (std::size_t i = 0; i < o.trainer.size(); ++i) {
        const OwnArm& arm = o.trainer[i];
        const bool known = arm.allocated && !hidden;
        const std::string missing = hidden ? "hidden" : "unknown";
        std::array cells = {
            ui::Cell{.text = i == 0 ? "BF16" : "FP8",
                     .role = i == 0 ? Role::bf16 : Role::e4m3,
                     .mono = false,
                     .strong = true,
                     .anchor = Anchor::left},
            ui::Cell{.text = fmt::format("{:.3f}", arm.calculated / kGB), .value = arm.calculated / kGB},
            ui::Cell{.text = known ? fmt::format("{:.3f}", *arm.allocated / kGB) : missing},
            ui::Cell{.text = known ? fmt::format("{:+.2f} %", arm.off_pct()) : ""}};
        if (known) cells[2].value = *arm.allocated / kGB;
        ui::table_row(c, cells, columns);
    }
    ui::table_end(c, columns);
    if (lab_->params.gpu == "live" &&
        ui::button(c, "memory.allocate", "Allocate again",
                   {.disabled = lab_.busy(), .why_disabled = "It is under way.", .width = -1}))
        lab_.act("allocate");
}

}  // namespace fp8lab::memory
