#include "app/shell/scene_sheet.h"

#include <imgui.h>

#include <cctype>

#include "app/shell/sheet.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "labs/scene_run.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kSceneWidth = 520, kSceneHeight = 360;

// "The spike, again" -> "the-spike-again"
std::string slug(const std::string& title) {
    std::string out;
    for (const char c : title) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        else if (!out.empty() && out.back() != '-')
            out += '-';
    }
    while (out.ends_with('-')) out.pop_back();
    return out.empty() ? "scene" : out;
}

void label(ui::Context& context, const char* words) {
    ui::text(context, words, Role::muted, {Face::sans, 13});
}

}  // namespace

void SceneSheet::open(Lab& lab, std::filesystem::path folder) {
    folder_ = std::move(folder);
    title_ = lab.info().short_title;
    notes_.clear();
    problem_.clear();
    replace_ = false;
}

std::filesystem::path SceneSheet::file() const { return folder_ / (slug(title_) + ".f8scene"); }

SceneSheet::Done SceneSheet::draw(ui::Context& context, Lab& lab) {
    Done done;
    const SheetArea sheet = begin_sheet(context, "scene", "Save this scene", kSceneWidth, kSceneHeight);
    done.closed = sheet.closed;
    ImGui::SetCursorScreenPos({sheet.content.x0, sheet.content.y0 + context.px(8)});
    ImGui::BeginChild("scene.form", {sheet.content.width(), sheet.content.height() - context.px(44)});
    label(context, "Title");
    if (ui::text_input(context, "scene.title", title_)) replace_ = false;
    label(context, "Notes for the presenter");
    ui::text_input(context, "scene.notes", notes_, "what to say, what to press");
    ui::wrapped(context, "Kept as " + file().string());
    if (!problem_.empty()) ui::warning(context, problem_);
    ImGui::EndChild();
    ImGui::SetCursorScreenPos({sheet.content.x0, sheet.content.y1 - context.px(34)});
    try {
        if (ui::button(context, "scene.save", replace_ ? "Replace it" : "Save", {.primary = true})) {
            if (std::filesystem::exists(file()) && !replace_) {
                problem_ = "There is a scene of that name.";
                replace_ = true;
            } else {
                std::filesystem::create_directories(folder_);
                write_file(file(), scene_text(scene_of(lab, title_, notes_)));
                done = {true, "Scene saved", file().string()};
            }
        }
        ImGui::SameLine(0, context.px(8));
        if (ui::button(context, "scene.copy", "Copy as text")) {
            ImGui::SetClipboardText(scene_line(scene_of(lab, title_, notes_)).c_str());
            done = {true, "Scene copied", "Ctrl V opens it in another window"};
        }
    } catch (const std::exception& error) {
        problem_ = error.what();
    }
    end_sheet();
    return done;
}

}  // namespace fp8lab
