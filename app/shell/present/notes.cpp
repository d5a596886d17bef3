#include "app/shell/present/notes.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "labs/course/scene_run.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

float paragraph(ui::Context& context, const std::string& words, Role role, Font font, Rect area, float y) {
    const float line = context.px(font.size * 1.45F);
    for (const auto part : ui::wrap_lines(context, words, font, area.width())) {
        ui::text_mid(context, {area.x0, y + line / 2}, part, {role}, font);
        y += line;
    }
    return y;
}

std::string clock_text(double seconds) {
    const auto whole = static_cast<int>(seconds);
    return fmt::format("{}:{:02d}", whole / 60, whole % 60);
}

// The time of day, the time since the start, and of a deck with times where the lecture should be.
void draw_clocks(ui::Context& context, Presentation& presentation, Rect area) {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const float top = area.y0 + context.px(16);
    const std::string clock = clock_text(presentation.seconds());
    ui::text_mid(context, {area.x1, top}, fmt::format("{:%H:%M}", fmt::localtime(now)), {Role::muted},
                 kMono24, Anchor::right);
    ui::text_mid(context, {area.x1 - context.px(96), top}, clock, {Role::text}, kMono24, Anchor::right);
    ui::probe(context, "notes.clock", {area.x0, area.y0, area.x1, top}, {}, clock);
    const Lecture& lecture = *presentation.lecture();
    const std::string plan = plan_text(lecture.deck(), lecture.at());
    if (plan.empty()) return;
    const std::string pace = pace_text(lecture.deck(), lecture.at(), presentation.seconds());
    ui::text_mid(context, {area.x1, top + context.px(30)}, plan, {Role::muted}, kSans15, Anchor::right);
    ui::text_mid(context, {area.x1, top + context.px(52)}, pace, {Role::text}, kBold15, Anchor::right);
    ui::probe(context, "notes.pace", {area.x0, top, area.x1, top + context.px(62)}, {}, pace);
}

// The number and title of the scene, and what the room reads. Returns the y below, as all that follow do.
float draw_head(ui::Context& context, Lecture& lecture, Rect area) {
    const Rect column{area.x0, area.y0, area.x1 - context.px(190), area.y1};
    const float y = paragraph(context, fmt::format("{}  {}", lecture.at() + 1, lecture.scene().title),
                              Role::text, kBold24, column, area.y0);
    return paragraph(context, lecture.asking() ? lecture.scene().predict->question : lecture.sentence(),
                     Role::muted, kSans18, column, y + context.px(8));
}

float draw_cue(ui::Context& context, const Cue& cue, Rect area, float y) {
    const Rect column{area.x0 + context.px(52), area.y0, area.x1, area.y1};
    const auto put = [&](const char* label, const std::string& words) {
        if (words.empty()) return;
        y += context.px(8);
        paragraph(context, label, Role::muted, kSans18, area, y);
        y = paragraph(context, words, Role::text, kSans18, column, y);
    };
    put("Say", cue.say);
    put("Ask", cue.ask);
    put("Do", cue.act);
    return y;
}

float draw_votes(ui::Context& context, const Lecture& lecture, Rect area, float y) {
    if (!lecture.scene().predict) return y;
    const Scene::Vote& vote = *lecture.scene().predict;
    for (std::size_t i = 0; i < vote.choices.size(); ++i) {
        const bool right = static_cast<int>(i) == vote.answer;
        y = paragraph(context,
                      fmt::format("{}  {}  {}{}", static_cast<char>('A' + i), lecture.votes().at(i),
                                  vote.choices[i], right ? "   (right)" : ""),
                      right ? Role::text : Role::muted, kSans18, area, y);
    }
    return y;
}

// What comes next, and the keys.
void draw_foot(ui::Context& context, const Lecture& lecture, Rect area, float foot) {
    const auto& scenes = lecture.deck().scenes;
    ui::hline(context, area.x0, area.x1, foot, {Role::line});
    const bool last = lecture.at() + 1 == scenes.size();
    const float below = paragraph(context, last ? "This is the last scene" : "Next", Role::muted, kSans13,
                                  area, foot + context.px(8));
    if (!last)
        paragraph(context, fmt::format("{}  {}", lecture.at() + 2, scenes[lecture.at() + 1].title),
                  Role::text, kBold18, area, below);
    std::string keys = "arrows: scenes   F: freeze   T: dark   N: this window   Esc: desk";
    if (!lecture.scene().compare.is_null()) keys = "B: compare   " + keys;
    if (!lecture.scene().knob.empty()) keys = "Up Down: " + lecture.scene().knob + "   " + keys;
    paragraph(context, keys, Role::muted, kSans13, area, area.y1 - context.px(24));
}

}  // namespace

void draw_notes(ui::Context& context, Presentation& presentation, Rect area) {
    const Lecture& lecture = *presentation.lecture();
    ui::fill_rect(context, area, {Role::surface});
    area = ui::inset(area, context.px(24));
    draw_clocks(context, presentation, area);
    const float foot = area.y1 - context.px(104);
    float y = draw_head(context, *presentation.lecture(), area);
    y = draw_cue(context, lecture.scene().cue, area, y + context.px(8));
    const std::string notes = notes_text(lecture.scene());
    const bool cued = !lecture.scene().cue.say.empty();
    y = paragraph(context, notes.empty() ? "No notes." : notes, cued ? Role::muted : Role::text,
                  cued ? kSans15 : kSans18, area, y + context.px(8));
    y = draw_votes(context, lecture, area, y + context.px(8));
    ui::probe(context, "notes.text", {area.x0, area.y0, area.x1, y});
    ui::probe(context, "notes.foot", {area.x0, foot, area.x1, area.y1});
    draw_foot(context, lecture, area, foot);
}

}  // namespace fp8lab
