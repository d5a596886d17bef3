// The controls of LOOK.md section 5. Each draws at the ImGui cursor with the full width available, advances the cursor,
// records a probe under `name`, is reachable by keyboard (Tab, arrows, Enter/Space) with the visible focus ring, and
// returns true when the value changed in this frame.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/fields.h"
#include "core/base/provenance.h"
#include "labs/ui/context.h"

namespace fp8lab::ui {

// Text in a face and size of LOOK.md; "^" raises what follows to the next space. Inline variants for tables.
void text(Context&, std::string_view text, Role role = Role::text, Font font = {Face::sans, 15});
void text_at(Context&, Point top_left_px, std::string_view text, Color color, Font font, Anchor anchor = Anchor::left);
float text_width(const Context&, std::string_view text, Font font);
void wrapped(Context&, std::string_view text, Role role = Role::muted, Font font = {Face::sans, 13});

struct ButtonOptions { std::string_view key = {}; bool primary = false; bool disabled = false; std::string_view why_disabled = {}; float width = 0; };
bool button(Context&, std::string_view name, std::string_view label, ButtonOptions options = {});

// One of n, 32 high. `selected` is an index.
bool segmented(Context&, std::string_view name, std::span<const std::string> labels, int& selected);
bool dropdown(Context&, std::string_view name, std::span<const std::string> labels, int& selected);

struct SliderOptions { bool logarithmic = false; double step = 0; std::string_view format = {}; std::span<const double> ticks = {}; double default_value = 0; };
bool slider(Context&, std::string_view name, std::string_view label, std::string_view te_name, double& value,
            double min, double max, SliderOptions options = {});

// The default widget of a field: slider for numbers, segmented switch (<= 4 short choices) or dropdown, checkbox.
// `default_value` is drawn as the tick; help, unit, range and Transformer Engine's name are the tooltip.
bool edit(Context&, const Field& field, const Field* default_field = nullptr);

void divider(Context&);
void badge(Context&, Provenance provenance);
void tooltip(Context&, std::string_view title, std::string_view body);  // for the last item, after 400 ms

// Table as LOOK.md: hairline above each row, numbers right-aligned in mono.
struct Cell { std::string text; Role role = Role::text; Tone tone = Tone::ink; bool mono = true; bool strong = false; Anchor anchor = Anchor::right; };
void table_row(Context&, std::span<const Cell> cells, std::span<const float> columns_px);

}  // namespace fp8lab::ui
