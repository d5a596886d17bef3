// A sheet over the window: the controls under it are dimmed and take neither mouse nor key, Escape and a click
// beside it close it. One at a time; its owner draws between begin_sheet() and end_sheet().
#pragma once

#include <string>
#include <string_view>

#include "labs/ui/context.h"

namespace fp8lab {

struct SheetArea {
    Rect content;         // physical px, inside the margins
    bool closed = false;  // by Escape, by a click beside it or on its cross
};

// width, height: logical px, less where the window is smaller. title: empty, no heading.
SheetArea begin_sheet(ui::Context& context, std::string_view name, std::string_view title, float width,
                      float height);
void end_sheet();

// A part of a sheet that scrolls: what is drawn in it is as wide as `area`, its thumb stands in the margin beside it.
void begin_sheet_list(const ui::Context& context, const std::string& name, Rect area);
void end_sheet_list(const ui::Context& context);

}  // namespace fp8lab
