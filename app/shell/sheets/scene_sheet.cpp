#include "app/shell/sheets/scene_sheet.h"

#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "app/shell/sheets/sheet.h"
#include "core/base/error.h"
#include "core/files/files.h"
#include "core/files/folders.h"
#include "labs/course/scene_run.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kSceneWidth = 520, kSceneHeight = 560;
constexpr std::size_t kMostChoices = 4;

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

// "2; 4 ; 8" -> "2", "4", "8"
std::vector<std::string> choices_of(const std::string& text) {
    std::vector<std::string> choices;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ';');) {
        const auto first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
        if (first != std::string::npos) choices.push_back(part.substr(first, last - first + 1));
    }
    return choices;
}

// What a field will hold when it is left now.
const std::string& as_typed(const ui::Context& context, std::string_view name, const std::string& value) {
    return context.typing.name == name ? context.typing.text : value;
}

void field_label(ui::Context& context, const char* words) {
    ui::text(context, words, Role::muted, {Face::sans, 13});
}

}  // namespace

void SceneSheet::open(Lab& lab, std::filesystem::path folder, const Host& host) {
    host_ = &host;
    folder_ = std::move(folder);
    title_ = lab.info().short_title;
    notes_.clear();
    question_.clear();
    choices_.clear();
    problem_.clear();
    right_ = -1;
    replace_ = false;
}

std::filesystem::path SceneSheet::file(const std::string& title) const {
    return folder_ / (slug(title) + ".f8scene");
}

void SceneSheet::draw_vote(ui::Context& context) {
    field_label(context, "Question to the room, before it sees the figure");
    ui::text_input(context, "scene.question", question_, "may be empty");
    if (as_typed(context, "scene.question", question_).empty()) return;
    field_label(context, "Two to four answers");
    ui::text_input(context, "scene.choices", choices_, "one; another; a third");
    const auto choices = choices_of(as_typed(context, "scene.choices", choices_));
    if (choices.size() < 2) return;
    field_label(context, "The right answer");
    std::vector<std::string> letters = {"none"};
    for (std::size_t i = 0; i < std::min(choices.size(), kMostChoices); ++i)
        letters.emplace_back(1, static_cast<char>('A' + i));
    int chosen = std::min(right_ + 1, static_cast<int>(letters.size()) - 1);
    ui::segmented(context, "scene.right", letters, chosen);
    right_ = chosen - 1;
}

Scene SceneSheet::scene(Lab& lab) const {
    Scene scene = scene_of(lab, title_, notes_);
    if (question_.empty()) return scene;
    const auto choices = choices_of(choices_);
    if (choices.size() < 2 || choices.size() > kMostChoices)
        throw input_error("vote", "needs two to four answers, with a semicolon between them");
    scene.document["predict"] = {{"question", question_}, {"choices", choices}};
    if (right_ >= 0) scene.document["predict"]["answer"] = right_;
    return parse_scene(scene_text(scene), title_);
}

SceneSheet::Done SceneSheet::draw(ui::Context& context, Lab& lab) {
    Done done;
    const SheetArea sheet = begin_sheet(context, "scene", "Save this scene", kSceneWidth, kSceneHeight);
    done.closed = sheet.closed;
    ImGui::SetCursorScreenPos({sheet.content.x0, sheet.content.y0 + context.px(8)});
    ImGui::BeginChild("scene.form", {sheet.content.width(), sheet.content.height() - context.px(44)});
    field_label(context, "Title");
    if (ui::text_input(context, "scene.title", title_)) replace_ = false;
    field_label(context, "Notes for the presenter");
    ui::text_input(context, "scene.notes", notes_, "what to say, what to press");
    draw_vote(context);
    const std::string kept = "Kept as " + file(as_typed(context, "scene.title", title_)).string();
    ui::probe(context, "scene.kept", ui::next_area(context, 1), {}, kept);
    ui::wrapped(context, kept);
    if (!problem_.empty()) ui::warning(context, problem_);
    ImGui::EndChild();
    ImGui::SetCursorScreenPos({sheet.content.x0, sheet.content.y1 - context.px(34)});
    try {
        if (ui::button(context, "scene.save", replace_ ? "Replace it" : "Save", {.primary = true})) {
            const Scene made = scene(lab);
            if (std::filesystem::exists(file(title_)) && !replace_) {
                problem_ = "There is already a scene of that name.";
                replace_ = true;
            } else {
                make_folder(folder_);
                const std::string text = scene_text(made);
                write_file(file(title_), text);
                if (host_->deliver) host_->deliver(file(title_), std::as_bytes(std::span(text)));
                done = {true, "Scene saved", file(title_).string()};
            }
        }
        ImGui::SameLine(0, context.px(8));
        if (ui::button(context, "scene.copy", "Copy as text")) {
            ImGui::SetClipboardText(scene_line(scene(lab)).c_str());
            done = {true, "Scene copied", "Ctrl V opens it in another window"};
        }
        if (host_->link) {
            ImGui::SameLine(0, context.px(8));
            if (ui::button(context, "scene.link", "Copy link")) {
                ImGui::SetClipboardText(host_->link(link_text(link_of(lab))).c_str());
                done = {true, "Link copied", "It opens this lab as it stands"};
            }
        }
    } catch (const std::exception& error) {
        problem_ = error.what();
    }
    end_sheet();
    return done;
}

}  // namespace fp8lab
