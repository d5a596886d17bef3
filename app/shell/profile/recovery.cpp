#include "app/shell/profile/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "labs/course/exercise_run.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr double kSync_s = 5;
constexpr float kRecoveryWidth = 440, kRecoveryHeight = 176, kRecoveryPad = 24;
constexpr const char* kWhat =
    "It brings back the labs\u2019 settings and an exercise in progress. Passed exercises are kept in any "
    "case.";

// "14:32", with the day where it is another one.
std::string time_of(const std::string& at) {
    if (at.size() < 16) return at;
    const std::string clock = at.substr(11, 5);
    return at.starts_with(local_time().substr(0, 10)) ? clock : at.substr(0, 10) + ", " + clock;
}

// Which lab was open is no work that could be lost.
bool worth_asking(const Journal::Left& left) {
    return std::ranges::any_of(left.values, [](const auto& value) { return value.first != "desk"; });
}

}  // namespace

Recovery::Recovery(const ProfileFolders& folders, bool asks,
                   std::function<void(std::string, std::string)> say)
    : keeps_(folders.access == Access::read_write),
      say_(std::move(say)),
      journal_(folders.state / "journal.jsonl") {
    if (!keeps_) return;
    left_ = Journal::left_behind(folders.state / "journal.jsonl");
    if (left_ && asks && !worth_asking(*left_)) left_.reset();
}

bool Recovery::draw(ui::Context& c) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(size);
    ImGui::Begin("recovery", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoBackground);
    ImGui::SetWindowFocus();  // whatever else was opened lies below
    ui::fill_rect(c, {0, 0, size.x, size.y}, {Role::surface, Tone::line, 0.75F});
    const float width = c.px(kRecoveryWidth), height = c.px(kRecoveryHeight);
    const float x = std::round((size.x - width) / 2), y = std::round((size.y - height) / 2);
    const Rect card{x, y, x + width, y + height};
    ui::fill_rect(c, card, {Role::raised}, 6);
    ui::stroke_rect(c, card, {Role::axis}, 6);
    const float left = x + c.px(kRecoveryPad);
    ui::text_mid(c, {left, y + c.px(38)}, "Restore the state of " + time_of(left_->at) + "?", {Role::text},
                 kBold18);
    float line = y + c.px(72);
    for (const auto words : ui::wrap_lines(c, kWhat, kSans13, width - c.px(2 * kRecoveryPad))) {
        ui::text_mid(c, {left, line}, words, {Role::muted}, kSans13);
        line += c.px(20);
    }
    ui::Focus& focus = c.focus;
    const ImGuiID restore = ImGui::GetID("recovery.restore"), discard = ImGui::GetID("recovery.discard");
    if (focus.id != restore && focus.id != discard) focus.id = restore;
    focus.visible = true;
    ImGui::SetCursorScreenPos({left, y + c.px(kRecoveryHeight - kRecoveryPad - 32)});
    const bool yes = ui::button(c, "recovery.restore", "Restore", {.primary = true, .width = 120});
    ImGui::SetCursorScreenPos({left + c.px(132), y + c.px(kRecoveryHeight - kRecoveryPad - 32)});
    const bool no = ui::button(c, "recovery.discard", "Discard", {.width = 120});
    ui::probe(c, "recovery", card);
    ImGui::End();
    if (!yes && !no) return false;
    focus = {};
    c.wants_redraw = true;
    if (yes) {
        accept();
    } else {
        left_.reset();
        journal_.remove();
    }
    return true;
}

void Recovery::accept() {
    restoring_ = std::exchange(left_, std::nullopt);
    attempt(not_noted_, [&] { journal_.take_over(*restoring_); });
}

std::optional<Journal::Left> Recovery::restoring() { return std::exchange(restoring_, std::nullopt); }

void Recovery::attempt(std::string& problem, const std::function<void()>& write) {
    try {
        write();
        problem.clear();
    } catch (const Error& error) {
        const bool said = !this->problem().empty();
        problem = error.what();
        if (!said) say_(kCrashWould, problem);
    }
}

void Recovery::note(const std::function<void(Journal&)>& note) {
    attempt(not_noted_, [&] { note(journal_); });
}

double Recovery::sync(double now_s) {
    if (!journal_.dirty()) return std::numeric_limits<double>::infinity();
    if (now_s < synced_s_ + kSync_s) return synced_s_ + kSync_s - now_s;
    attempt(not_synced_, [&] { journal_.sync(); });
    synced_s_ = now_s;
    return journal_.dirty() ? kSync_s : std::numeric_limits<double>::infinity();
}

void Recovery::close() {
    if (keeps()) journal_.remove();
}

}  // namespace fp8lab
