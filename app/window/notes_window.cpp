#include "app/window/notes_window.h"

#include <GLFW/glfw3.h>

#include <algorithm>

#include "app/shell/present/notes.h"
#include "labs/ui/fonts.h"

namespace fp8lab {
namespace {

// Half of what the room reads.
float scale_of(const ui::Context& desk) { return std::max(1.0F, desk.scale / 2); }

// The notes of each scene of a deck with times fit into it.
GlWindow::Size size_at(float scale) { return {static_cast<int>(900 * scale), static_cast<int>(640 * scale)}; }

}  // namespace

NotesWindow::NotesWindow(GlWindow& first, const ui::Context& desk)
    : first_(first), window_(size_at(scale_of(desk)), true, &first) {
    glfwSetWindowTitle(window_.handle(), "FP8 Lab: notes");
    window_.place_on_other_monitor(first);
    context_.theme = Theme::dark;  // a presenter's desk is dark
    context_.scale = scale_of(desk);
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
