// Keys and mouse in one form for Dear ImGui 1.86 (Debian 12) and for 1.89.7 and later. The versions differ in
// how a key is named, in how input is handed over (io.KeysDown in 1.86, later a queue of events) and in how
// an item takes the wheel or lets another one lie over it. This file and input.cpp are the only ones that
// know the version.
#pragma once

#include <imgui.h>

#include <span>
#include <string_view>

#if IMGUI_VERSION_NUM >= 18700 && IMGUI_VERSION_NUM < 18970
#error "Dear ImGui 1.86, or 1.89.7 and later"
#endif

namespace fp8lab::ui {

// A key of the keyboard. The values are GLFW's codes, in which letters and digits are ASCII. Letters, digits
// and the function keys are runs without gaps.
// clang-format off
enum class Key : int {
    none = 0,
    space = 32, comma = 44, minus = 45, period = 46, slash = 47, equal = 61,
    digit_0 = 48, digit_1, digit_2, digit_3, digit_4, digit_5, digit_6, digit_7, digit_8, digit_9,
    a = 65, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z,
    escape = 256, enter, tab, backspace, insert, del, right, left, down, up, page_up, page_down, home, end,
    f1 = 290, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12,
    keypad_subtract = 333, keypad_add, keypad_enter,
};
// clang-format on

constexpr int operator-(Key key, Key first) { return static_cast<int>(key) - static_cast<int>(first); }
constexpr Key operator+(Key first, int steps) { return static_cast<Key>(static_cast<int>(first) + steps); }

std::span<const Key> all_keys();  // each once, without `none`

// True in the frame in which the key goes down, and when it repeats. Controls use key_pressed() of context.h.
bool pressed(Key key, bool repeats = true);

// Synthetic input, in place of the system's backend. Call these between frames; they act in the next frame.
// prepare_hand(): for a context without a backend, before its first frame; each frame then takes all input at
// once.
void prepare_hand();
void feed_key(Key key, bool down);
void feed_modifiers(bool ctrl, bool shift = false, bool alt = false);
void feed_mouse(float x, float y);  // physical px
void feed_button(int button, bool down);
void feed_wheel(float notches);  // up is positive
void feed_text(std::string_view utf8);

// A key as the window system reports it: GLFW's code, and GLFW's modifiers before the event.
void feed_system_key(int key, bool down, int modifiers);
void feed_character(unsigned character);

bool input_waits();  // ImGui left events for the next frame (it has a queue from 1.87 on)

bool control_held();  // a control is active; a press on the ground of a window makes none

// Call it before a text field with that label: the field gets the keyboard from the next frame on.
void focus_text_field(const char* label);

// The last item takes the wheel, so that the window under it does not scroll.
void take_mouse_wheel();
// As ImGui::InvisibleButton(). Items that are drawn over it later take the mouse before it does.
bool button_below_others(const char* id, ImVec2 size, ImGuiButtonFlags buttons);

}  // namespace fp8lab::ui
