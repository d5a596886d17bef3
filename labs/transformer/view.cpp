#include "labs/transformer/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"

namespace fp8lab::transformer {
namespace {

using ui::Context;

constexpr float kText = 82;  // height of what the arms write, logical px

}  // namespace

// From the top: the block, the figures, what the arms write, the controls. On a low stage the text is one of the
// pictures at the right; on a narrow one so is the histogram beside the curves.
void TransformerView::stage(Context& c, Rect area) {
    const std::vector<Figure> figures = lab_.figures();
    const float height = area.height() / c.scale;
    const bool low = height < 640, narrow = area.width() < c.px(660);
    const Rect bar{area.x0, area.y1 - c.px(48), area.x1, area.y1};
    const Rect block_area{area.x0, area.y0, area.x1, area.y0 + c.px(low ? 176 : 266)};
    block(c, figures[0].title, block_area, low);
    Rect middle{area.x0, block_area.y1 + c.px(low ? 8 : 14), area.x1, bar.y0 - c.px(6)};
    if (!low) {
        text(c, {area.x0, middle.y1 - c.px(kText), area.x1, middle.y1});
        middle.y1 -= c.px(kText + 6);
        ui::hline(c, area.x0, area.x1, middle.y1, {Role::line});
        middle.y1 -= c.px(4);
    }
    if (narrow) {
        std::vector<std::string> names = pictures(figures, low);
        names.insert(names.begin(), "Loss");
        int chosen = ui::index_of_choice(names, picture_);
        if (live::switch_at(c, "transformer.pictures",
                            {middle.x0, middle.y1 - c.px(32), middle.x1, middle.y1 + c.px(2)}, names, chosen))
            picture_ = names[static_cast<std::size_t>(chosen)];
        middle.y1 -= c.px(38);
        if (chosen == 0)
            curves(c, figures, middle);
        else
            picture(c, figures, names[static_cast<std::size_t>(chosen)], middle);
    } else {
        const float split = std::round(area.x0 + 0.56F * area.width());
        curves(c, figures, {middle.x0, middle.y0, split - c.px(12), middle.y1});
        ui::fill_rect(c, {split, middle.y0, split + ui::hairline(c), middle.y1}, {Role::line});
        right_column(c, figures, {split + c.px(20), middle.y0, middle.x1, middle.y1}, low);
    }
    draw_transport(c, bar);
}

void TransformerView::curves(Context& c, const std::vector<Figure>& own, Rect area) {
    constexpr Split kSplit = {0.34F, 84, 120, 6, 150, ""};
    const std::vector<Figure> recorded = lab_.recorded_curves();
    const Figure& loss = recorded.empty() ? own[1] : recorded[0];
    if (lab_.spec().task == TaskKind::copying)  // losses near 0: their ratio says nothing
        ui::plot(c, "transformer.loss", loss, loss_, area);
    else
        draw_curves(c, loss, recorded.empty() ? own[2] : recorded[1], area, kSplit);
}

std::vector<std::string> TransformerView::pictures(const std::vector<Figure>& figures, bool with_text) const {
    std::vector<std::string> names = {"Histogram"};
    if (with_text) names.emplace_back("Text");
    if (figures.back().id == "step") names.emplace_back("One step");
    if (lab_.recorded()) names.emplace_back("Recorded");
    return names;
}

void TransformerView::picture(Context& c, const std::vector<Figure>& figures, const std::string& name,
                              Rect area) {
    if (name == "Text") return text(c, area);
    if (name == "Recorded") return recorded(c, area);
    if (name != "One step") return histogram(c, figures[3], area);
    ui::plot(c, "transformer.step", figures.back(), step_, area, {.crosshair = false, .y_tick_width = 0});
}

std::vector<std::string> TransformerView::operands() const {
    const std::string& tensor = lab_.params().tensor;
    const std::string gemm = tensor.substr(0, tensor.rfind('.'));
    std::vector<std::string> names;
    for (const std::string& name : tensor_names())
        if (name.substr(0, name.rfind('.')) == gemm) names.push_back(name.substr(name.rfind('.') + 1));
    return names;
}

float TransformerView::tensor_switch_width(const Context& c) const {
    return c.px(operands().size() > 3 ? 210 : 104);
}

// The figure, and the switch between the tensors of the selected GEMM.
void TransformerView::histogram(Context& c, const Figure& figure, Rect area) {
    const Rect bar{area.x0, area.y1 - c.px(32), area.x1, area.y1};
    const std::string& tensor = lab_.params().tensor;
    const std::size_t dot = tensor.rfind('.');
    const std::vector<std::string> names = operands();
    int selected = static_cast<int>(std::ranges::find(names, tensor.substr(dot + 1)) - names.begin());
    if (live::switch_at(c, "transformer.tensor",
                        {bar.x0, bar.y0, bar.x0 + tensor_switch_width(c), bar.y0 + c.px(34)}, names,
                        selected))
        select(tensor.substr(0, dot + 1) + names[static_cast<std::size_t>(selected)]);
    area.y1 = bar.y0 - c.px(4);
    ui::plot(c, "transformer.histogram", figure, histogram_, area, {.y_tick_width = 0});
}

void TransformerView::right_column(Context& c, const std::vector<Figure>& figures, Rect area,
                                   bool with_text) {
    const std::vector<std::string> names = pictures(figures, with_text);
    int at = ui::index_of_choice(names, picture_);
    const std::string& chosen = names[static_cast<std::size_t>(at)];
    if (names.size() > 1) {
        const float own = chosen == "Histogram" ? tensor_switch_width(c) + c.px(8) : 0;
        const float wanted = c.px(86) * static_cast<float>(names.size());
        const bool beside = own > 0 && own + wanted <= area.width();
        if (live::switch_at(
                c, "transformer.picture",
                {std::max(area.x0, area.x1 - wanted), area.y1 - c.px(32), area.x1, area.y1 + c.px(2)}, names,
                at))
            picture_ = names[static_cast<std::size_t>(at)];
        if (!beside) area.y1 -= c.px(38);
    }
    picture(c, figures, chosen, area);
}

// A line per arm; on a place that is higher than wide the lines are broken.
void TransformerView::text(Context& c, Rect area) {
    const bool copying = lab_.spec().task == TaskKind::copying;
    ui::text_mid(c, {area.x0, area.y0 + c.px(14)}, copying ? "What each arm copies" : "What each arm writes",
                 {Role::text}, kBold15);
    const Words told = lab_.words(0);
    std::string how = copying ? "wrong symbols underlined" : "prompt, then temperature 0.6";
    if (told.step > 0) how += fmt::format(", step {}", told.step);
    if (area.width() > c.px(440))
        ui::text_mid(c, {area.x1, area.y0 + c.px(14)}, how, {Role::muted}, kSans13, Anchor::right);
    ui::probe(c, "transformer.text", area, {}, told.prompt + told.continuation);
    float y = area.y0 + c.px(42);
    for (std::size_t arm = 0; arm < 2; ++arm) y = lines_of(c, area, arm, y);
}

// Returns the middle of the line below.
float TransformerView::lines_of(Context& c, Rect area, std::size_t arm, float y) {
    const live::ArmLook look = lab_.looks()[arm];
    const float indent = c.px(72), advance = ui::text_width(c, "m", kMono13), pitch = c.px(22);
    ui::text_mid(c, {area.x0, y}, look.name, {look.role, Tone::ink}, kBold13);
    const Words words = lab_.words(arm);
    if (words.step == 0) {
        ui::text_mid(c, {area.x0 + indent, y}, "after 50 steps", {Role::muted}, kSans13);
        return y + pitch;
    }
    const std::string all = words.prompt + words.continuation;
    const auto fit = static_cast<std::size_t>(std::max(8.0F, (area.width() - indent) / advance));
    const auto room = static_cast<std::size_t>((area.y1 - y) / pitch) / (arm == 0 ? 2 : 1);
    const std::size_t most = area.height() > c.px(kText + 20) ? std::max<std::size_t>(1, room) : 1;
    for (std::size_t row = 0; row * fit < all.size() && row < most; ++row, y += pitch) {
        for (std::size_t i = row * fit; i < std::min(all.size(), (row + 1) * fit); ++i) {
            const bool prompt = i < words.prompt.size();
            const std::size_t at = i - words.prompt.size();
            const bool wrong = !prompt && at < words.wrong.size() && words.wrong[at];
            const float x = area.x0 + indent + advance * static_cast<float>(i - row * fit);
            const Color ink = wrong ? Color{Role::sat, Tone::ink} : Color{prompt ? Role::text : Role::muted};
            ui::text_mid(c, {x, y}, std::string_view(all).substr(i, 1), ink,
                         prompt || wrong ? kMonoBold13 : kMono13);
            if (wrong) ui::fill_rect(c, {x, y + c.px(8), x + advance, y + c.px(9.5F)}, {Role::sat});
        }
    }
    return y;
}

std::vector<std::pair<std::string, std::string>> TransformerView::status() const {
    const TrainSpec& spec = lab_.spec();
    std::size_t weights = 0;
    for (const ParameterSpec& p : lab_.plan().parameters) weights += p.elements();
    return {{"seed", std::to_string(spec.seed)},
            {"task", std::string(to_string(spec.task))},
            {"model",
             fmt::format("{} blocks, d {}, {} heads, {} weights", spec.sizes.at("blocks"), spec.sizes.at("d"),
                         spec.sizes.at("heads"), group_thousands(static_cast<std::int64_t>(weights)))},
            {"batch", fmt::format("{} tokens", group_thousands(spec.batch * spec.sizes.at("context")))}};
}

std::unique_ptr<LabView> make_view(Lab& lab) {
    return std::make_unique<TransformerView>(static_cast<TransformerLab&>(lab));
}

}  // namespace fp8lab::transformer
