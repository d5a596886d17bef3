#include "app/window/notes_window.h"

#include <GLFW/glfw3.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "labs/course/scene_run.h"
#include "labs/ui/draw.h"
#include "labs/ui/fonts.h"
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

}  // namespace

void draw_notes(ui::Context& context, Presentation& presentation, Rect area) {
    Lecture& lecture = *presentation.lecture();
    const auto& scenes = lecture.deck().scenes;
    ui::fill_rect(context, area, {Role::surface});
    area = ui::inset(area, context.px(24));
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const float top = area.y0 + context.px(16);
    ui::text_mid(context, {area.x1, top}, fmt::format("{:%H:%M}", fmt::localtime(now)), {Role::muted},
                 kMono24, Anchor::right);
    ui::text_mid(context, {area.x1 - context.px(96), top}, clock_text(presentation.seconds()), {Role::text},
                 kMono24, Anchor::right);
    ui::probe(context, "notes.clock", {area.x0, area.y0, area.x1, top}, {},
              clock_text(presentation.seconds()));
    const Rect column{area.x0, area.y0, area.x1 - context.px(190), area.y1};
    float y = paragraph(context, fmt::format("{}  {}", lecture.at() + 1, lecture.scene().title), Role::text,
                        kBold24, column, area.y0);
    y = paragraph(context, lecture.asking() ? lecture.scene().predict->question : lecture.sentence(),
                  Role::muted, kSans18, area, y + context.px(8));
    const std::string notes = notes_text(lecture.scene());
    y = paragraph(context, notes.empty() ? "No notes." : notes, Role::text, kSans18, area,
                  y + context.px(16));
    if (lecture.scene().predict) {
        y += context.px(16);
        const auto& choices = lecture.scene().predict->choices;
        for (std::size_t i = 0; i < choices.size(); ++i)
            y = paragraph(
                context,
                fmt::format("{}  {}  {}{}", static_cast<char>('A' + i), lecture.votes().at(i), choices[i],
                            static_cast<int>(i) == lecture.scene().predict->answer ? "   (right)" : ""),
                static_cast<int>(i) == lecture.scene().predict->answer ? Role::text : Role::muted, kSans18,
                area, y);
    }
    const float foot = area.y1 - context.px(104);
    ui::hline(context, area.x0, area.x1, foot, {Role::line});
    const bool last = lecture.at() + 1 == scenes.size();
    float below = paragraph(context, last ? "This is the last scene" : "Next", Role::muted, kSans13, area,
                            foot + context.px(8));
    if (!last)
        below = paragraph(context, fmt::format("{}  {}", lecture.at() + 2, scenes[lecture.at() + 1].title),
                          Role::text, kBold18, area, below);
    std::string keys = "arrows: scenes   F: freeze   T: dark   N: this window   Esc: desk";
    if (!lecture.scene().compare.is_null()) keys = "B: compare   " + keys;
    if (!lecture.scene().knob.empty()) keys = "Up Down: " + lecture.scene().knob + "   " + keys;
    paragraph(context, keys, Role::muted, kSans13, area, area.y1 - context.px(24));
}

NotesWindow::NotesWindow(GlWindow& first, const ui::Context& desk)
    : first_(first), window_({900, 640}, true, &first) {
    glfwSetWindowTitle(window_.handle(), "FP8 Lab: notes");
    window_.place_on_other_monitor(first);
    context_.theme = Theme::dark;  // a presenter's desk is dark
    context_.scale = std::max(1.0F, desk.scale / 2);
    ui::load_fonts(context_);
    window_.upload_fonts();
    first_.use();
}

void NotesWindow::draw(Presentation& presentation) {
    window_.use();
    window_.begin_frame();
    ui::begin_frame(context_);
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(size);
    ImGui::Begin("notes", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
    draw_notes(context_, presentation, {0, 0, size.x, size.y});
    ImGui::End();
    window_.end_frame();
    window_.present();
    first_.use();
}

bool NotesWindow::closed() const { return glfwWindowShouldClose(window_.handle()) == GLFW_TRUE; }

}  // namespace fp8lab
