// What a step of larger transformers took on a GPU that was measured, for a machine without one.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/transformer/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::transformer {
namespace {

using ui::Context;

// GEMMs in the arm's colour, casts in a lighter one; what no format changes is grey.
struct PartLook {
    const char *name, *label;
    float alpha;  // of the arm's colour, or of grey
    bool grey;
};
constexpr std::array<PartLook, 5> kParts = {{{"GEMM", "GEMM", 1, false},
                                             {"casts", "casts", 0.5F, false},
                                             {"attention", "attention", 0.75F, true},
                                             {"norms and the rest", "norms", 0.3F, true},
                                             {"optimiser", "optimiser", 0.55F, true}}};

Color color_of(const PartLook& part, Role arm) {
    return {part.grey ? Role::muted : arm, Tone::fill, part.alpha};
}

// What Amdahl's law says of the step from its GEMMs alone: 1 / (1 - s + s / r), s their share of the step in bf16, r how
// many times as fast they are.
std::string amdahl(const RecordedStep& step, const RecordedArm& arm) {
    const RecordedArm* bf16 = step.find("bf16");
    if (!bf16 || bf16 == &arm || bf16->part_ms("GEMM") == 0 || arm.part_ms("GEMM") == 0) return {};
    const double share = bf16->part_ms("GEMM") / bf16->median_ms,
                 ratio = bf16->part_ms("GEMM") / arm.part_ms("GEMM");
    return fmt::format(
        " GEMMs take {:.0f} % of the step in bf16 and are {:.2f} times as fast: Amdahl’s law says {:.2f}, "
        "measured "
        "is {:.2f}.",
        100 * share, ratio, 1 / (1 - share + share / ratio), step.speedup(arm.recipe));
}

// One row per arm: name, its parts end to end, the time of the whole step. The sum of parts that run side by side is
// longer than the step.
void bars(Context& c, const RecordedBlocks& blocks, Rect area) {
    const auto& arms = blocks.step.arms;
    double longest = 0;
    for (const RecordedArm& arm : arms) {
        double sum = 0;
        for (const PartLook& part : kParts) sum += arm.part_ms(part.name);
        longest = std::max(longest, sum);
    }
    const float pitch = std::min(c.px(26), area.height() / static_cast<float>(arms.size()));
    const float left = area.x0 + c.px(76), width = area.x1 - c.px(76) - left, thick = 0.5F * pitch;
    float y = area.y0 + pitch / 2;
    for (const RecordedArm& arm : arms) {
        const Role role = parse_recipe(arm.recipe).role;
        ui::text_mid(c, {area.x0, y}, arm.recipe, {role, Tone::ink}, kBold13);
        float x = left;
        for (const PartLook& part : kParts) {
            const auto share = static_cast<float>(arm.part_ms(part.name) / longest);
            ui::fill_rect(c, {x, y - thick / 2, x + width * share, y + thick / 2}, color_of(part, role));
            x += width * share;
        }
        ui::text_mid(c, {area.x1, y}, live::step_text(arm.median_ms) + " ms", {role, Tone::ink}, kMono13,
                     Anchor::right);
        const Rect row{area.x0, y - pitch / 2, area.x1, y + pitch / 2};
        ui::probe(c, "transformer.recorded." + arm.recipe, row, {}, live::step_text(arm.median_ms));
        std::string parts = fmt::format("IQR {:.2f} ms, {} of memory. Parts, each alone:", arm.iqr_ms,
                                        format_bytes(static_cast<std::uint64_t>(arm.memory_bytes)));
        for (const PartLook& part : kParts)
            parts += fmt::format(" {} {} ms,", part.label, live::step_text(arm.part_ms(part.name)));
        parts.back() = '.';
        if (arm.recipe != "bf16") parts += " Norms include the casts that are in the same kernel.";
        parts += amdahl(blocks.step, arm);
        ImGui::SetCursorScreenPos({row.x0, row.y0});
        ui::advance(row);
        ui::tooltip(c, arm.recipe, parts);
        y += pitch;
    }
}

void legend(Context& c, Role role, Rect line) {
    const float y = (line.y0 + line.y1) / 2, side = c.px(10);
    float x = line.x0;
    for (const PartLook& part : kParts) {
        ui::fill_rect(c, {x, y - side / 2, x + side, y + side / 2}, color_of(part, role));
        ui::text_mid(c, {x + c.px(14), y}, part.label, {Role::muted}, kSans13);
        x += c.px(21) + ui::text_width(c, part.label, kSans13);
    }
}

std::string short_name(const RecordedBlocks& blocks) {
    return blocks.steps > 0 ? "V " + group_thousands(blocks.vocabulary)
                            : fmt::format("{} \u00d7 d {}", blocks.sizes.at("blocks"), blocks.sizes.at("d"));
}

std::string words_of(const RecordedBlocks& blocks) {
    if (blocks.steps == 0)
        return fmt::format("{}; {} tokens; attention: {}", blocks.name(),
                           group_thousands(blocks.step.batch * blocks.sizes.at("context")), blocks.attention);
    std::vector<std::string> losses;
    for (const double loss : blocks.held_out) losses.push_back(fmt::format("{:.2f}", loss));
    return fmt::format("{}; {} steps: held-out loss {}", blocks.name(), blocks.steps,
                       fmt::join(losses, ", "));
}

std::string title_of(const RecordedBlocks& blocks) {
    const RecordedArm* best = nullptr;
    for (const RecordedArm& arm : blocks.step.arms)
        if (arm.recipe != "bf16" && (!best || arm.median_ms < best->median_ms)) best = &arm;
    if (!best || blocks.step.speedup(best->recipe) == 0) return "Recorded steps";
    return fmt::format("{} is {:.2f} times as fast as bf16", best->recipe, blocks.step.speedup(best->recipe));
}

}  // namespace

void TransformerView::recorded(Context& c, Rect area) {
    std::vector<const Recording*> all;
    const auto shipped = lab_.recorded();
    for (const Recording& one : shipped->recordings)
        if (!one.blocks.empty()) all.push_back(&one);
    recording_ = std::min(recording_, static_cast<int>(all.size()) - 1);
    const Recording& recording = *all[static_cast<std::size_t>(recording_)];

    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ui::badge(c, Provenance::recorded);
    std::vector<std::string> names;
    for (const Recording* one : all)
        names.push_back(short_gpu_name(one->gpu) + ", " + one->blocks.front().date);
    const Rect menu{std::max(area.x0, area.x1 - c.px(172)), area.y0, area.x1, area.y0 + c.px(24)};
    draw_recording_menu(c, menu, names, recording_);

    std::vector<std::string> shapes;
    for (const RecordedBlocks& one : recording.blocks) shapes.push_back(short_name(one));
    recorded_shape_ = std::min(recorded_shape_, static_cast<int>(shapes.size()) - 1);
    float top = area.y0 + c.px(30);
    if (shapes.size() > 1) {
        live::switch_at(c, "transformer.recorded_shape", {area.x0, top, area.x1, top + c.px(34)}, shapes,
                        recorded_shape_);
        top += c.px(38);
    }
    const RecordedBlocks& blocks = recording.blocks[static_cast<std::size_t>(recorded_shape_)];
    const float line = c.px(19);
    const std::string title = title_of(blocks);
    ui::text_mid(c, {area.x0, top + c.px(11)}, title, {Role::text}, kBold15);
    ui::probe(c, "transformer.recorded.title", {area.x0, top, area.x1, top + c.px(22)}, {}, title);
    bars(c, blocks, {area.x0, top + c.px(26), area.x1, area.y1 - 2 * line - c.px(4)});
    legend(c, parse_recipe(blocks.step.arms.back().recipe).role,
           {area.x0, area.y1 - 2 * line, area.x1, area.y1 - line});
    const std::string how = words_of(blocks);
    const Rect below{area.x0, area.y1 - line, area.x1, area.y1};
    ui::text_mid(c, {below.x0, (below.y0 + below.y1) / 2}, how, {Role::muted}, kSans13);
    ui::probe(c, "transformer.recorded.how", below, {}, how);
}

}  // namespace fp8lab::transformer
