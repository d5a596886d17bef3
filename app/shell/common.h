// What every part of the window needs.
#pragma once

#include <algorithm>
#include <functional>

#include "app/shell/machine.h"
#include "app/shell/profile/profile.h"
#include "app/shell/sheets/toasts.h"

namespace fp8lab {

struct Common {
    ui::Context& context;
    Settings settings;  // what is to be saved
    Machine machine;
    ProfileFolders folders;
    std::function<void()> wake;  // live labs call it from their workers when there is something new to draw
    Toasts toasts{context};

    void set_theme(Theme theme) { settings.theme = context.theme = theme; }
    void set_scale(float scale) {
        settings.scale = context.scale = std::clamp(scale, kSmallestScale, kLargestScale);
    }
};

}  // namespace fp8lab
