#include "labs/four/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::four {
namespace {

using ui::Context;

constexpr float kGap = 10;

}  // namespace

void FourView::stage(Context& c, Rect area) {
    std::vector<Figure> figures = lab_.figures();
    const bool narrow = area.width() < c.px(680);
    const float low = area.height() / c.scale < 600 ? 6 : kGap;
    const float after = draw_tiles(c, figures[0], area) + c.px(low);
    ui::region(c, "tiles", {area.x0, area.y0, area.x1, after});
    ui::hline(c, area.x0, area.x1, after, {Role::line});
    float below = after;
    if (shows_block(c, area)) {
        below += c.px(kBlockHeight);
        draw_block(c, {area.x0, after + c.px(2), area.x1, below});
        ui::hline(c, area.x0, area.x1, below, {Role::line});
    }
    const Rect rest{area.x0, below + c.px(low), area.x1, area.y1};
    if (narrow) {  // one of them
        static const std::array<std::string, 3> kPictures = {"Tensors", "Means", "Block"};
        const bool block = block_in_switch(c, area);
        const float wide = block ? 250 : 190;
        if (!block) picture_ = std::min(picture_, 1);
        ui::corner_switch(c, "four.picture", {rest.x1, rest.y0}, wide,
                          std::span(kPictures).first(block ? 3 : 2), picture_);
        const Rect under{rest.x0, rest.y0 + c.px(40), rest.x1, rest.y1};
        if (picture_ == 0) draw_data(c, figures[2], rest, rest.x1 - c.px(wide + 10));
        if (picture_ == 1) draw_mean(c, figures[3], under);
        if (picture_ == 2) draw_block(c, {under.x0, under.y0, under.x1, under.y0 + c.px(kBlockHeight)});
        return;
    }
    const float split = std::round(rest.x0 + 0.56F * rest.width());
    ui::fill_rect(c, {split, below, split + ui::hairline(c), rest.y1}, {Role::line});
    draw_data(c, figures[2], {rest.x0, rest.y0, split - c.px(17), rest.y1}, split - c.px(17));
    draw_mean(c, figures[3], {split + c.px(17), rest.y0, rest.x1, rest.y1});
}

// On a low stage the pictures need its room; where it is narrow too, the switch has the block.
bool FourView::shows_block(const Context& c, Rect area) const {
    if (block_in_switch(c, area)) return false;
    return !tiles_layout(*lab_->outcome).picture || area.height() / c.scale >= 640;
}

bool FourView::block_in_switch(const Context& c, Rect area) const {
    return area.width() < c.px(680) && area.height() < c.px(600) && !tiles_layout(*lab_->outcome).picture;
}

std::vector<std::pair<std::string, std::string>> FourView::status() const {
    const Outcome& o = *lab_->outcome;
    const Tensor& tensor = o.tensor[0];
    const auto kind = std::ranges::find(o.kinds, tensor.name, &Kind::id);
    const std::string name =
        o.params.tensor.file.empty() && kind != o.kinds.end() ? std::string(kind->label) : tensor.name;
    return {{"seed", std::to_string(lab_->params.tensor.seed)},
            {"tensor", fmt::format("{}, {}×{}", name, tensor.rows, tensor.cols)}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<FourView>(static_cast<FourLab&>(lab));
}

}  // namespace fp8lab::four
