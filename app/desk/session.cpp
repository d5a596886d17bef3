#include "app/desk/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/files/console.h"

namespace fp8lab {
namespace {

constexpr double kSaveAgain_s = 10;  // what the disk refused

}  // namespace

Session::Session(SessionOptions options, const std::function<float()>& display_scale)
    : options_(std::move(options)), folders_(profile_folders(options_.profile)), lock_(folders_) {
    if (!options_.read_only.empty()) {
        folders_.access = Access::read_only;
        folders_.why_read_only = options_.read_only;
    }
    if (folders_.access == Access::read_write) not_moved_ = migrate_profile(folders_);
    LoadedSettings loaded = load_settings(folders_);
    saved_ = loaded.settings;
    problem_ = loaded.problem;
    context_.probes.enabled = options_.probes;
    context_.scale =
        saved_.scale > 0 ? saved_.scale : std::clamp(display_scale(), kSmallestScale, kLargestScale);
}

void Session::start(Host host) {
    const bool reloads = host.reloads;
    shell_ = std::make_unique<Shell>(context_, saved_, detect_machine(), folders_, std::move(host));
    if (!folders_.notice.empty()) {
        tell("fp8lab: profile: " + folders_.notice);
        shell_->warn("Profile", folders_.notice);
    }
    if (!problem_.empty()) shell_->warn("Settings", problem_);
    if (!not_moved_.empty()) shell_->warn("Exercises of an earlier version", not_moved_);
    if (options_.verbs) shell_->add_to_manual(options_.verbs);
    shell_->open(options_.lab);
    if (reloads) shell_->restore_left();
    if (options_.scene) shell_->open(*options_.scene);
    if (options_.deck) shell_->present(*options_.deck);
}

std::string Session::keep_at_the_end(int width, int height) {
    std::string lost = shell_->close();
    Settings last = shell_->settings();
    last.width = width;
    last.height = height;
    if (last == saved_) return lost;
    try {
        save_settings(folders_, last);
    } catch (const Error& error) {  // what refuses the settings has mostly refused the rest as well
        lost += fmt::format("{}the settings could not be saved: {}", lost.empty() ? "" : "; ", error.what());
    }
    return lost;
}

double Session::keep_settings(double now_s) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    Settings now = shell_->settings();
    now.width = saved_.width;  // kept at the end only: a resize is a hundred sizes
    now.height = saved_.height;
    if (now == saved_) return kNever;
    const bool again = now == refused_;
    if (again && now_s < refused_s_ + kSaveAgain_s) return refused_s_ + kSaveAgain_s - now_s;
    try {
        save_settings(folders_, now);
        saved_ = now;
        if (refused_) shell_->say("Saved now", "What could not be saved before is");
        context_.wants_redraw |= refused_.has_value();
        refused_.reset();
        return kNever;
    } catch (const Error& error) {
        if (!again) shell_->say("Settings were not saved", error.what());
        context_.wants_redraw |= !again;
        refused_ = now;
        refused_s_ = now_s;
        return kSaveAgain_s;
    }
}

}  // namespace fp8lab
