// One window's profile and Shell: opened, drawn frame by frame by whoever has a window, kept. Knows no window and no clock.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "app/frame/host.h"
#include "app/shell/shell.h"
#include "core/lesson/manual/manual.h"
#include "core/lesson/scene.h"

namespace fp8lab {

struct SessionOptions {
    std::string lab;                    // id; empty: home
    std::optional<Scene> scene;         // opened on the desk
    std::optional<Deck> deck;           // presented from the start
    bool probes = false;                // the rectangles of all controls are wanted in the context
    std::string profile;                // --profile DIR; empty: the usual place
    std::string read_only;              // why nothing is kept, as a sentence; empty: the profile decides
    std::function<ManualPart()> verbs;  // of the manual; empty: it has none
};

class Session {
  public:
    // Locks the profile and reads the settings. `display_scale`: of text and lines, unless the settings have one.
    Session(SessionOptions options, const std::function<float()>& display_scale);
    // Once ImGui's context and the fonts are there: makes the Shell, opens what the options say, and says what is wrong with
    // the profile.
    void start(Host host);
    void end() { shell_.reset(); }  // and with it the labs' workers, which wake the window

    Shell& shell() { return *shell_; }
    ui::Context& context() { return context_; }
    const ProfileFolders& folders() const { return folders_; }
    const Settings& saved() const { return saved_; }

    // Saves the settings where they changed. Returns in how many seconds to try again; infinity: all is kept.
    double keep_settings(double now_s);
    // Exercises and settings, with the window's last size in physical px. Returns what could not be kept and why; empty: nothing.
    std::string keep_at_the_end(int width, int height);

  private:
    SessionOptions options_;
    ProfileFolders folders_;
    ProfileLock lock_;
    std::string not_moved_, problem_;  // of an earlier version's profile, of the settings
    Settings saved_;
    std::optional<Settings> refused_;  // what the disk did not take, at refused_s_
    double refused_s_ = 0;
    ui::Context context_;
    std::unique_ptr<Shell> shell_;
};

}  // namespace fp8lab
