// What every part of the window needs.
#pragma once

#include <algorithm>

#include "app/frame/host.h"
#include "app/shell/machine.h"
#include "app/shell/profile/profile.h"
#include "app/shell/sheets/toasts.h"

namespace fp8lab {

struct Common {
    ui::Context& context;
    Settings settings;  // what is to be saved
    Machine machine;
    ProfileFolders folders;
    Host host;
    Toasts toasts{context};

    void set_theme(Theme theme) { settings.theme = context.theme = theme; }
    void set_scale(float scale) {
        settings.scale = context.scale = std::clamp(scale, kSmallestScale, kLargestScale);
    }
};

}  // namespace fp8lab
