// The two font families of look.md 4, rasterised at the size they are shown in and never stretched.
#pragma once

#include "labs/ui/context.h"

namespace fp8lab::ui {

// Fills ImGui's font atlas and context.fonts for context.scale. Call outside a frame; the renderer must
// upload the atlas again afterwards. Faces come from assets/fonts if they are there, else from the
// distribution's folders. Throws Error{failed} with the package to install when a face is missing or is not a
// font.
//
// Every face sits on the same baseline, kBaseline of the size below the top (Inter's ascent), so that a
// number in mono and its label in sans align when they are drawn at the same height.
constexpr float kBaseline = 0.97F;
void load_fonts(Context& context);

// Where the four faces were found, in the order of Face. Throws like load_fonts().
std::vector<std::string> font_files();

int font_key(Font font);  // index into Context::fonts

}  // namespace fp8lab::ui
