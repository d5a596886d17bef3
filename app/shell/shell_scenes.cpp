// Scenes and lectures: from files into the window.
#include <GLFW/glfw3.h>

#include "app/shell/shell.h"
#include "labs/scene_run.h"

namespace fp8lab {

void Shell::present(Deck deck) {
    presentation_.start(std::make_unique<Lecture>(std::move(deck), profile_folder_ / "tensors", wake_));
}

void Shell::present() {
    if (Lab* lab = this->lab())
        presentation_.start(std::make_unique<Lecture>(*lab, profile_folder_ / "tensors"));
}

void Shell::open(const Scene& scene) {
    const auto id = find_lab(scene.lab).id;
    for (Entry& entry : entries_) {
        if (entry.lab->info().id != id) continue;
        const auto notices = apply_scene(*entry.lab, scene, profile_folder_ / "tensors");
        open(id);
        update(entry);
        say(scene.title, notices.empty()
                             ? scene.sentence.empty() ? "Scene opened" : sentence_text(scene, *entry.lab)
                             : notices.front());
    }
}

// Keys that step are repeated while they are held.
void Shell::presentation_keys() {
    for (int key = GLFW_KEY_SPACE; key <= GLFW_KEY_LAST && presentation_.active(); ++key) {
        const bool repeats = key == GLFW_KEY_UP || key == GLFW_KEY_DOWN;
        if (ImGui::IsKeyPressed(key, repeats)) presentation_.key(key);
    }
}

void Shell::frame_presentation() {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(size);
    ImGui::Begin("shell", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoScrollWithMouse);
    presentation_.frame({0, 0, size.x, size.y});
    ImGui::End();
}

}  // namespace fp8lab
