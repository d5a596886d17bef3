// The Explore tab of L18.
#include "labs/experts/view.h"
#include "labs/table/view_share.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::experts {

using ui::Context;

std::string MixtureView::more_words() const {
    return lab_.shows("training") ? "balance, steps, seed" : "seed";
}

void MixtureView::draw_below(Context& c, float) {
    ui::divider(c);
    if (lab_.shows("routing")) {
        draw_routing_rows(c);
        table::draw_share(c, lab_, "experts.share", "All pairs", lab_->pairs);
    } else if (lab_.shows("groups")) {
        return draw_groups_rows(c);
    } else if (lab_.shows("hop")) {
        draw_hop_rows(c);
    } else {
        draw_training_rows(c);
        table::draw_share(c, lab_, "experts.share", "Training", lab_->training);
    }
    ui::wrapped(c,
                "Emulated on the CPU: no time is measured. These models have 2 blocks and 8 experts; larger "
                "ones may lose more or less.");
}

}  // namespace fp8lab::experts
