// The part "qat" of L17: the divergence while it is trained back, and a row for each way.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/view_parts.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
namespace {

using ui::Context;

constexpr std::size_t kRows = 4;

std::string against(double divergence, double nearest) {
    const bool closer = divergence <= nearest;
    return fmt::format("{}× {}", times_text(closer ? nearest / divergence : divergence / nearest),
                       closer ? "closer" : "further");
}

}  // namespace

void QatStage::draw(Context& c, ServeLab& lab, Rect area) {
    const float split = area.y1 - c.px(28 + 30 * static_cast<float>(kRows) + 26);
    draw_curves(c, lab, {area.x0, area.y0, area.x1, split - c.px(14)});
    draw_table(c, lab, {area.x0, split, area.x1, area.y1});
}

void QatStage::draw_curves(Context& c, ServeLab& lab, Rect area) {
    const Qat& qat = *lab->qat;
    const Figure figure = train_back_figure(qat, lab->params.teacher == "teacher");
    ui::region(c, "train_back", area);
    const float heading = ui::heading(c, figure.title, area);
    if (qat.labels.seeds.empty()) return;
    constexpr float kNames = 140;
    const ui::PlotResult plot = ui::plot(c, "serve.train_back", bare_of_words(figure), curves_,
                                         {area.x0, heading + c.px(6), area.x1 - c.px(kNames), area.y1},
                                         {.interactive = false, .y_tick_width = 52, .title_height = 0});
    std::vector<ui::EndWords> ends;
    const auto end = [&](double value, const char* name, Color ink) {
        ends.push_back({plot.to_px(0, value).y, divergence_text(value), name, ink});
    };
    const Color trained{find_low_format(qat.spec.scheme, "scheme").role, Tone::ink};
    end(qat.nearest, "to nearest", {Role::text});
    end(qat.gptq, "GPTQ", {Role::text});
    end(qat.labels.median().back(), "labels", trained);
    if (!qat.teacher.seeds.empty()) end(qat.teacher.median().back(), "teacher", trained);
    ui::end_words(c, std::move(ends), plot.area.x1 + c.px(10),
                  {area.x0, plot.area.y0, area.x1, plot.area.y1});
}

void QatStage::draw_table(Context& c, ServeLab& lab, Rect area) {
    const Qat& qat = *lab->qat;
    if (qat.labels.seeds.empty()) return;
    const bool with_teacher = lab->params.teacher == "teacher";
    ui::region(c, "ways", area);
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    constexpr std::array kEdges = {0.55F, 0.78F, 1.0F};
    const std::array heads = {"divergence, nats", "of five trainings", "against to nearest"};
    const float head = area.y0 + c.px(12);
    ui::text_mid(c, {area.x0, head}, "how", {Role::muted}, kSans13);
    for (std::size_t i = 0; i < heads.size(); ++i)
        ui::text_mid(c, {x(kEdges[i]), head}, heads[i], {Role::muted}, kSans13, Anchor::right);
    float y = area.y0 + c.px(28);
    const float pitch = c.px(30);
    const auto row = [&](const char* how, double value, const std::string& range, bool strong,
                         bool reference) {
        const float middle = y + pitch / 2;
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        ui::text_mid(c, {area.x0, middle}, how, {Role::text}, strong ? kBold13 : kSans13);
        const Font font = strong ? kMonoBold13 : kMono13;
        ui::text_mid(c, {x(kEdges[0]), middle}, divergence_text(value), {Role::text}, font, Anchor::right);
        ui::text_mid(c, {x(kEdges[1]), middle}, range, {Role::text}, font, Anchor::right);
        ui::text_mid(c, {x(kEdges[2]), middle}, reference ? "1" : against(value, qat.nearest),
                     {reference ? Role::muted : Role::text}, font, Anchor::right);
        y += pitch;
    };
    const auto trained = [&](const QatCurve& curve, const char* how, bool strong) {
        if (curve.seeds.empty()) return;
        double least = curve.last(0), most = least;
        for (std::size_t s = 0; s < curve.seeds.size(); ++s)
            least = std::min(least, curve.last(s)), most = std::max(most, curve.last(s));
        row(how, curve.median().back(),
            fmt::format("{} to {}", divergence_text(least), divergence_text(most)), strong, false);
    };
    row("to nearest", qat.nearest, "", false, true);
    row("GPTQ, no training", qat.gptq, "", false, false);
    trained(qat.labels, "trained on labels", !with_teacher);
    trained(qat.teacher, "trained on the teacher", with_teacher);
    ui::hline(c, area.x0, area.x1, y, {Role::line});
    ui::note(c,
             "Weights and inputs are cast in the forward pass. Lines: medians of five trainings with other "
             "batches; "
             "band: all five.",
             {area.x0, y + c.px(5), area.x1, area.y1 + c.px(8)});
}

void QatStage::draw_rows(Context& c, ServeLab& lab) {
    const Qat& qat = *lab->qat;
    const bool with_teacher = lab->params.teacher == "teacher";
    const std::vector<double> curve = qat.of(with_teacher).median();
    if (curve.empty()) return;
    ui::headline(
        c, "serve.result",
        {divergence_text(curve.back()), fmt::format("nats after {} steps", qat.spec.steps), curve.back()});
    const Rect top = ui::next_area(c, 28 * 3);
    float y = top.y0;
    const auto row = [&](const char* words, std::string value) {
        y = ui::row(c, {words, std::move(value)}, {top.x0, y, top.x1, y}, c.px(28));
    };
    row("to nearest", divergence_text(qat.nearest));
    row("GPTQ, no training", divergence_text(qat.gptq));
    row("against to nearest", against(curve.back(), qat.nearest));
    ui::advance(top);
}

}  // namespace fp8lab::serve
