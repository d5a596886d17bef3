// The Explore tab of L18.
#include <fmt/format.h>

#include "labs/experts/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::experts {

using ui::Context;

std::string MixtureView::more_words() const {
    return lab_.shows("training") ? "balance, steps, seed" : "seed";
}

namespace {

// How far a computation of seconds is, with a button that stops it; nothing where none runs or was stopped.
template <class Spec, class Result>
void draw_share(Context& c, MixtureLab& lab, const std::string& words, table::Long<Spec, Result>& part) {
    if (!part.busy() && !part.stopped()) return;
    const Rect line = ui::next_area(c, 32);
    ui::text_mid(c, {line.x0, (line.y0 + line.y1) / 2},
                 fmt::format("{}{}, {:.0f} %", words, part.stopped() ? " stopped" : "", 100 * part.share()),
                 {Role::muted}, kSans13);
    constexpr float kButton = 76;
    ImGui::SetCursorScreenPos({line.x1 - c.px(kButton), line.y0});
    if (!ui::button(c, "experts.share", part.stopped() ? "Go on" : "Stop", {.width = kButton})) return;
    if (!part.stopped()) return part.stop();
    part.resume();
    lab.update();
}

}  // namespace

void MixtureView::draw_below(Context& c, float) {
    ui::divider(c);
    if (lab_.shows("routing")) {
        draw_routing_rows(c);
        draw_share(c, lab_, "All pairs", lab_->pairs);
    } else if (lab_.shows("groups")) {
        return draw_groups_rows(c);
    } else if (lab_.shows("hop")) {
        draw_hop_rows(c);
    } else {
        draw_training_rows(c);
        draw_share(c, lab_, "Training", lab_->training);
    }
    ui::wrapped(c,
                "Emulated on the CPU: no time is measured. These models have 2 blocks and 8 experts; larger "
                "ones may lose more or less.");
}

}  // namespace fp8lab::experts
