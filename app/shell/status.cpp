// The status line.
#include <fmt/format.h>

#include <algorithm>

#include "app/shell/drawn.h"
#include "core/base/units.h"
#include "labs/ui/draw.h"

namespace fp8lab {
namespace {

using Pair = std::pair<std::string, std::string>;

const char* in_words(Provenance provenance) {
    switch (provenance) {
        case Provenance::tensor_core:
            return "tensor core";
        case Provenance::gpu_emulated:
            return "GPU emulated";
        case Provenance::cpu_emulated:
            return "CPU emulated";
        case Provenance::recorded:
            return "recorded";
    }
    return "";
}

float pair_width(const ui::Context& context, const Pair& pair) {
    return ui::text_width(context, pair.first, kSans13) + context.px(7) +
           ui::text_width(context, pair.second, kMono13);
}

void draw_pair(ui::Context& context, const Pair& pair, float x, float y) {
    ui::text_mid(context, {x, y}, pair.first, {Role::muted}, kSans13);
    ui::text_mid(context, {x + ui::text_width(context, pair.first, kSans13) + context.px(7), y}, pair.second,
                 {Role::text}, kMono13);
}

// Whole words and "..." where the pair is wider than that.
void shorten_to(ui::Context& context, Pair& pair, float width) {
    if (pair_width(context, pair) <= width) return;
    std::string words = pair.second;
    do {
        words.resize(std::min(words.find_last_of(' '), words.size() - 1));
        pair.second = words + " \u2026";
    } while (words.find(' ') != std::string::npos && pair_width(context, pair) > width);
}

// "!" and a sentence; its width.
float draw_notice(ui::Context& context, const std::string& what, const std::string& why, Point at) {
    ui::alert(context, {at.x + context.px(7), at.y}, {Role::warning});
    const float words = at.x + context.px(22);
    ui::text_mid(context, {words, at.y}, what, {Role::text}, kBold13);
    const float after = words + ui::text_width(context, what, kBold13) + context.px(7);
    ui::text_mid(context, {after, at.y}, why, {Role::muted}, kSans13);
    return after + ui::text_width(context, why, kSans13) - at.x;
}

// Right-aligned, as many as fit before `from`. Returns where they begin.
float draw_right(ui::Context& context, const std::vector<Pair>& pairs, Rect line, float from) {
    const float y = (line.y0 + line.y1) / 2, gap = context.px(24);
    float end = line.x1 - gap;
    for (const Pair& pair : pairs) {
        const float x = end - pair_width(context, pair);
        if (x < from) break;
        draw_pair(context, pair, x, y);
        end = x - gap;
    }
    return end;
}

// A toast where no panel shows it; on home profile and progress; then what the lab tells.
std::vector<Pair> told_at_left(Parts& parts, const Toast* toast) {
    std::vector<Pair> out;
    Labs::Entry* entry = parts.labs.current();
    if (toast != nullptr) {
        out.emplace_back(toast->title, toast->line);
    } else if (entry == nullptr) {
        out.emplace_back("profile", parts.common.folders.data.string());
        out.emplace_back("progress", parts.labs.progress_words());
    }
    if (entry != nullptr && !parts.labs.predicting(*entry))
        for (Pair& pair : entry->view->status()) out.push_back(std::move(pair));
    return out;
}

}  // namespace

void draw_status(Parts& parts, const WindowLayout& layout, double frame_ms) {
    ui::Context& context = parts.common.context;
    const Rect line = layout.status;
    ui::fill_rect(context, line, {Role::raised});
    ui::hline(context, line.x0, line.x1, line.y0, {Role::line});
    const float y = (line.y0 + line.y1) / 2, gap = context.px(24);
    Labs::Entry* entry = parts.labs.current();
    const Provenance provenance = entry ? entry->lab->provenance() : parts.common.machine.provenance;
    std::vector<Pair> right = {{"provenance", in_words(provenance)}};
    if (frame_ms >= 0) right.emplace_back("frame", fmt::format("{:.1f} ms", frame_ms));
    if (frame_ms >= 0 && entry == nullptr) right.emplace_back("memory", format_bytes(resident_bytes()));
    float x = line.x0 + gap;
    const float end = draw_right(context, right, line, x);
    for (const auto& [what, why] : parts.keeping.notices()) {
        ImGui::PushClipRect({x, line.y0}, {end, line.y1}, true);
        const float width = draw_notice(context, what, why, {x, y});
        ImGui::PopClipRect();
        ui::probe(context, "status." + what, {x, line.y0, x + width, line.y1}, {}, why);
        x += width + gap;
    }
    const bool toast_is_elsewhere = entry != nullptr && parts.labs.panel_shown;
    const Toast* const shown = parts.common.toasts.shown();
    const Toast* const toast = toast_is_elsewhere || (shown && shown->title.empty()) ? nullptr : shown;
    for (Pair& pair : told_at_left(parts, toast)) {
        // What does not fit is left out, from the end; of the toast its last words.
        const bool told = toast != nullptr && pair.first == toast->title;
        if (told) shorten_to(context, pair, end - x);
        const float width = pair_width(context, pair);
        if (x + width > end) break;
        draw_pair(context, pair, x, y);
        if (told) ui::probe(context, "toast", {x, line.y0, x + width, line.y1}, {}, pair.first);
        x += width + gap;
    }
}

}  // namespace fp8lab
