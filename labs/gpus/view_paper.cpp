// The step of larger models on many hosts, on paper.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/units.h"
#include "labs/gpus/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::gpus {
namespace {

using ui::Context;

constexpr std::array kColumns = {0.25F, 0.4F, 0.53F, 0.68F, 1.0F};  // right edges, shares of the width

const PaperPoint& at(const PaperCurve& curve, int gpus) {
    return *std::ranges::find(curve.points, gpus, &PaperPoint::gpus);
}

}  // namespace

void GpusView::draw_paper(Context& c, const std::string& title, Rect area) {
    ui::region(c, "paper", area);
    const float under = ui::heading(c, title, {area.x0, area.y0, area.x1 - c.px(280), area.y1});
    const Rect rest{area.x0, std::max(under + c.px(4), area.y0 + c.px(32)), area.x1, area.y1};
    const Paper& paper = *lab_->paper;
    if (paper.curves.empty()) return;
    constexpr int kHere = 1024;
    const bool narrow = area.width() < c.px(660);
    const std::array<std::string, kColumns.size()> heads = {
        narrow ? "step ms" : fmt::format("step ms, {} GPUs", group_thousands(kHere)), "network %", "GB on 8",
        "network is half", "what breaks first"};
    const std::array<std::string_view, kColumns.size()> terms = {"step", "reduce-scatter", "zero",
                                                                 "reduce-scatter", "world-size"};
    const auto x_of = [&](std::size_t i) { return area.x0 + kColumns.at(i) * area.width(); };
    for (std::size_t i = 0; i < heads.size(); ++i)
        ui::head(c, {x_of(i), rest.y0 + c.px(10)}, heads.at(i), terms.at(i));
    const float pitch = std::clamp((rest.height() - c.px(22 + 40)) / 4, c.px(20), c.px(38));
    float y = rest.y0 + c.px(22);
    for (const PaperCurve& curve : paper.curves) {
        const float middle = y + pitch / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        ui::text_mid(c, {area.x0, middle},
                     fmt::format("{}, {}", kPaperModels.at(curve.model).label, curve.fp8 ? "FP8" : "BF16"),
                     {curve.fp8 ? Role::e4m3 : Role::bf16, Tone::ink}, kBold13);
        const auto cell = [&](std::size_t i, const std::string& words, bool fault = false) {
            ui::text_mid(c, {x_of(i), middle}, words, fault ? Color{Role::sat, Tone::ink} : Color{Role::text},
                         kMono13, Anchor::right);
        };
        const PaperPoint &here = at(curve, kHere), &few = curve.points.front();
        cell(0, group_thousands(static_cast<std::int64_t>(here.step_ms + 0.5)));
        cell(1, pct(here.share_pct()), here.share_pct() > 50);
        cell(2, fmt::format("{:.0f}", few.memory / 1e9), !few.fits());
        cell(3, curve.half_at > 0 ? "from " + group_thousands(curve.half_at) : "never");
        const std::string breaks = curve.breaks();
        ui::text_mid(c, {x_of(4), middle}, breaks, {Role::text}, kSans13, Anchor::right);
        y += pitch;
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(c,
             fmt::format("Derived, not run: {} tokens per GPU; 6 FLOP per weight and token at the recorded "
                         "rate; ZeRO-1, or ZeRO-3 where "
                         "141 GB do not hold it; more than 16 million tokens per step are too many. "
                         "Network is half: of a step of 16 million tokens.",
                         group_thousands(lab_->params.rows_per_gpu())),
             {area.x0, y + c.px(3), area.x1, area.y1 + c.px(6)});
}

}  // namespace fp8lab::gpus
