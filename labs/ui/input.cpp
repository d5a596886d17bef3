#include "labs/ui/input.h"

#include <imgui_internal.h>  // the wheel's owner, and what waits in the queue of events

#include <algorithm>
#include <array>
#include <string>

namespace fp8lab::ui {
namespace {

struct KeyName {
    Key key;
    ImGuiKey imgui;
};
// Those that every version has a name for.
constexpr std::array kCommonKeys = {
    KeyName{Key::space, ImGuiKey_Space},
    KeyName{Key::escape, ImGuiKey_Escape},
    KeyName{Key::enter, ImGuiKey_Enter},
    KeyName{Key::tab, ImGuiKey_Tab},
    KeyName{Key::backspace, ImGuiKey_Backspace},
    KeyName{Key::insert, ImGuiKey_Insert},
    KeyName{Key::del, ImGuiKey_Delete},
    KeyName{Key::right, ImGuiKey_RightArrow},
    KeyName{Key::left, ImGuiKey_LeftArrow},
    KeyName{Key::down, ImGuiKey_DownArrow},
    KeyName{Key::up, ImGuiKey_UpArrow},
    KeyName{Key::page_up, ImGuiKey_PageUp},
    KeyName{Key::page_down, ImGuiKey_PageDown},
    KeyName{Key::home, ImGuiKey_Home},
    KeyName{Key::end, ImGuiKey_End},
};
// Those for which 1.86 has no name, or another one.
constexpr std::array kOtherKeys = {Key::comma, Key::minus,           Key::period,     Key::slash,
                                   Key::equal, Key::keypad_subtract, Key::keypad_add, Key::keypad_enter};
constexpr int kDigits = 10, kLetters = 26, kFunctionKeys = 12;

constexpr auto make_keys() {
    std::array<Key, kCommonKeys.size() + kOtherKeys.size() + kDigits + kLetters + kFunctionKeys> keys{};
    std::size_t at = 0;
    for (const KeyName& name : kCommonKeys) keys[at++] = name.key;
    for (const Key key : kOtherKeys) keys[at++] = key;
    for (int i = 0; i < kDigits; ++i) keys[at++] = Key::digit_0 + i;
    for (int i = 0; i < kLetters; ++i) keys[at++] = Key::a + i;
    for (int i = 0; i < kFunctionKeys; ++i) keys[at++] = Key::f1 + i;
    return keys;
}
constexpr auto kKeys = make_keys();

}  // namespace

std::span<const Key> all_keys() { return kKeys; }

void feed_text(std::string_view utf8) { ImGui::GetIO().AddInputCharactersUTF8(std::string(utf8).c_str()); }

bool control_held() {
    const ImGuiContext& imgui = *ImGui::GetCurrentContext();
    return imgui.ActiveId != 0 && (!imgui.ActiveIdWindow || imgui.ActiveId != imgui.ActiveIdWindow->MoveId);
}

void feed_character(unsigned character) { ImGui::GetIO().AddInputCharacter(character); }

void feed_system_key(int key, bool down, int modifiers) {
    // The keys of the modifiers have codes in the order of the modifiers' bits, left ones first.
    constexpr int kShift = 1, kCtrl = 2, kAlt = 4, kLeftShift = 340, kRightSuper = 347;
    if (key >= kLeftShift && key <= kRightSuper) {
        const int own = 1 << (key - kLeftShift) % 4;
        modifiers = down ? modifiers | own : modifiers & ~own;
    }
    feed_modifiers((modifiers & kCtrl) != 0, (modifiers & kShift) != 0, (modifiers & kAlt) != 0);
    if (key >= 0) feed_key(static_cast<Key>(key), down);
}

#if IMGUI_VERSION_NUM >= 18700 && IMGUI_VERSION_NUM < 18970
#error "FP8 Lab needs Dear ImGui 1.86, or 1.89.7 and later"
#elif IMGUI_VERSION_NUM >= 18970

namespace {

constexpr std::array kOtherNames = {
    ImGuiKey_Comma, ImGuiKey_Minus,          ImGuiKey_Period,    ImGuiKey_Slash,
    ImGuiKey_Equal, ImGuiKey_KeypadSubtract, ImGuiKey_KeypadAdd, ImGuiKey_KeypadEnter,
};
static_assert(kOtherNames.size() == kOtherKeys.size());

ImGuiKey imgui_key(Key key) {
    const auto in_run = [key](ImGuiKey first, Key from) {
        return static_cast<ImGuiKey>(static_cast<int>(first) + (key - from));
    };
    if (key >= Key::digit_0 && key <= Key::digit_9) return in_run(ImGuiKey_0, Key::digit_0);
    if (key >= Key::a && key <= Key::z) return in_run(ImGuiKey_A, Key::a);
    if (key >= Key::f1 && key <= Key::f12) return in_run(ImGuiKey_F1, Key::f1);
    const auto common = std::ranges::find(kCommonKeys, key, &KeyName::key);
    if (common != kCommonKeys.end()) return common->imgui;
    const auto other = std::ranges::find(kOtherKeys, key);
    return other == kOtherKeys.end() ? ImGuiKey_None
                                     : kOtherNames[static_cast<std::size_t>(other - kOtherKeys.begin())];
}

}  // namespace

bool pressed(Key key, bool repeats) {
    return key != Key::none && ImGui::IsKeyPressed(imgui_key(key), repeats);
}

void prepare_hand() { ImGui::GetIO().ConfigInputTrickleEventQueue = false; }

void feed_key(Key key, bool down) { ImGui::GetIO().AddKeyEvent(imgui_key(key), down); }

void feed_modifiers(bool ctrl, bool shift, bool alt) {
    ImGuiIO& io = ImGui::GetIO();
    io.AddKeyEvent(ImGuiMod_Ctrl, ctrl);
    io.AddKeyEvent(ImGuiMod_Shift, shift);
    io.AddKeyEvent(ImGuiMod_Alt, alt);
}

void feed_mouse(float x, float y) { ImGui::GetIO().AddMousePosEvent(x, y); }
void feed_button(int button, bool down) { ImGui::GetIO().AddMouseButtonEvent(button, down); }
void feed_wheel(float notches) { ImGui::GetIO().AddMouseWheelEvent(0, notches); }

bool input_waits() { return ImGui::GetCurrentContext()->InputEventsQueue.Size > 0; }

void focus_text_field(const char* label) {
    // Not SetKeyboardFocusHere(), which is lost where a sheet closes in the same frame.
    ImGui::ActivateItemByID(ImGui::GetID(label));
    ImGui::GetCurrentContext()->NavNextActivateFlags = ImGuiActivateFlags_PreferInput;
}

void take_mouse_wheel() { ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY); }

bool button_below_others(const char* id, ImVec2 size, ImGuiButtonFlags buttons) {
    ImGui::SetNextItemAllowOverlap();
    return ImGui::InvisibleButton(id, size, buttons);
}

#else

// The state of a key is stored under the backend's own code, and our codes are that backend's.
bool pressed(Key key, bool repeats) {
    return key != Key::none && ImGui::IsKeyPressed(static_cast<int>(key), repeats);
}

void prepare_hand() {
    ImGuiIO& io = ImGui::GetIO();
    for (const auto& [key, imgui] : kCommonKeys) io.KeyMap[imgui] = static_cast<int>(key);
    for (const auto& [key, imgui] : {KeyName{Key::keypad_enter, ImGuiKey_KeyPadEnter},
                                     {Key::a, ImGuiKey_A},
                                     {Key::c, ImGuiKey_C},
                                     {Key::v, ImGuiKey_V},
                                     {Key::x, ImGuiKey_X},
                                     {Key::y, ImGuiKey_Y},
                                     {Key::z, ImGuiKey_Z}})
        io.KeyMap[imgui] = static_cast<int>(key);
}

void feed_key(Key key, bool down) { ImGui::GetIO().KeysDown[static_cast<int>(key)] = down; }

void feed_modifiers(bool ctrl, bool shift, bool alt) {
    ImGuiIO& io = ImGui::GetIO();
    io.KeyCtrl = ctrl;
    io.KeyShift = shift;
    io.KeyAlt = alt;
}

void feed_mouse(float x, float y) { ImGui::GetIO().MousePos = {x, y}; }
void feed_button(int button, bool down) { ImGui::GetIO().MouseDown[button] = down; }
void feed_wheel(float notches) { ImGui::GetIO().MouseWheel = notches; }

bool input_waits() { return false; }

void focus_text_field(const char*) { ImGui::SetKeyboardFocusHere(); }

void take_mouse_wheel() { ImGui::SetItemUsingMouseWheel(); }

bool button_below_others(const char* id, ImVec2 size, ImGuiButtonFlags buttons) {
    const bool clicked = ImGui::InvisibleButton(id, size, buttons);
    ImGui::SetItemAllowOverlap();
    return clicked;
}

#endif

}  // namespace fp8lab::ui
