// The parts of L1's stage. Each draws into a rectangle of physical px and edits the lab through its verbs.
#pragma once

#include "labs/bits/model.h"
#include "labs/ui/context.h"

namespace fp8lab::bits {

inline void select(BitsLab& lab, std::uint32_t code) { lab->select(code), lab.update(); }
// Bits with their fields, and the value beside them, the arithmetic below. `last_bit`, the one toggled last,
// is outlined. Returns the y of its lower end.
float draw_bits(ui::Context& context, BitsLab& lab, int& last_bit, Rect area, bool compact);
void draw_map(ui::Context& context, BitsLab& lab, Rect area, bool with_notes);
// Physical px that draw_line_end() needs for its words.
float line_end_width(const ui::Context& context, const BitsLab& lab);
void draw_line_end(ui::Context& context, BitsLab& lab, Rect area);

}  // namespace fp8lab::bits
