// The status line: what the lab computes with on the left; our own cost and the numbers' provenance on the
// right.
#include <fmt/format.h>

#include <algorithm>

#include "app/shell/shell.h"
#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

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

}  // namespace

std::string Shell::progress_words() const {
    std::size_t all = 0, passed = 0;
    for (const Entry& entry : entries_) {
        for (const Exercise& exercise : entry.lab->exercises()) {
            ++all;
            passed += exercises_.progress().passed(exercise.id) != nullptr ? 1 : 0;
        }
    }
    return fmt::format("{} of {} exercises", passed, all);
}

void Shell::draw_status(const WindowLayout& layout, double frame_ms) {
    const Rect line = layout.status;
    ui::fill_rect(context_, line, {Role::raised});
    ui::hline(context_, line.x0, line.x1, line.y0, {Role::line});
    const float y = (line.y0 + line.y1) / 2;
    const float gap = context_.px(24);
    Entry* entry = current();

    const Provenance provenance = entry != nullptr ? entry->lab->provenance() : machine_.provenance;
    std::vector<Pair> right = {{"provenance", in_words(provenance)}};
    if (frame_ms >= 0) right.emplace_back("frame", fmt::format("{:.1f} ms", frame_ms));
    if (frame_ms >= 0 && entry == nullptr) right.emplace_back("memory", format_bytes(resident_bytes()));
    float end = line.x1 - gap;
    for (const Pair& pair : right) {
        const float x = end - pair_width(context_, pair);
        if (x < line.x0 + gap) break;
        draw_pair(context_, pair, x, y);
        end = x - gap;
    }

    float x = line.x0 + gap;
    for (const auto& [what, why] : notices()) {
        ImGui::PushClipRect({x, line.y0}, {end, line.y1}, true);
        const float width = draw_notice(context_, what, why, {x, y});
        ImGui::PopClipRect();
        ui::probe(context_, "status." + what, {x, line.y0, x + width, line.y1}, {}, why);
        x += width + gap;
    }
    std::vector<Pair> left;
    const bool toast_is_elsewhere = entry != nullptr && panel_shown_;
    const Toast* const toast = toasts_.shown();
    const std::string told = toast != nullptr && !toast_is_elsewhere ? toast->title : "";
    if (!told.empty()) {
        left.emplace_back(told, toast->line);
    } else if (entry == nullptr) {
        left.emplace_back("profile", folders_.data.string());
        left.emplace_back("progress", progress_words());
    }
    if (entry != nullptr && !predicting(*entry)) {
        for (Pair& pair : entry->view->status()) left.push_back(std::move(pair));
    }
    for (Pair& pair : left) {  // what does not fit is left out, from the end; of the toast its last words
        if (pair.first == told) shorten_to(context_, pair, end - x);
        const float width = pair_width(context_, pair);
        if (x + width > end) break;
        draw_pair(context_, pair, x, y);
        if (pair.first == told) ui::probe(context_, "toast", {x, line.y0, x + width, line.y1}, {}, told);
        x += width + gap;
    }
}

}  // namespace fp8lab
