#include "app/desk/browser_keys.h"

#include <array>
#include <charconv>
#include <utility>

#include "labs/ui/input.h"

namespace fp8lab {
namespace {

using ui::Key;

constexpr int kLeftShift = 340, kRightShift = 344;  // then Ctrl, Alt, Meta: GLFW's order
constexpr auto kPlaces = std::to_array<std::pair<std::string_view, int>>({
    {"Space", static_cast<int>(Key::space)},
    {"Comma", static_cast<int>(Key::comma)},
    {"Minus", static_cast<int>(Key::minus)},
    {"Period", static_cast<int>(Key::period)},
    {"Slash", static_cast<int>(Key::slash)},
    {"Equal", static_cast<int>(Key::equal)},
    {"Escape", static_cast<int>(Key::escape)},
    {"Enter", static_cast<int>(Key::enter)},
    {"Tab", static_cast<int>(Key::tab)},
    {"Backspace", static_cast<int>(Key::backspace)},
    {"Insert", static_cast<int>(Key::insert)},
    {"Delete", static_cast<int>(Key::del)},
    {"ArrowRight", static_cast<int>(Key::right)},
    {"ArrowLeft", static_cast<int>(Key::left)},
    {"ArrowDown", static_cast<int>(Key::down)},
    {"ArrowUp", static_cast<int>(Key::up)},
    {"PageUp", static_cast<int>(Key::page_up)},
    {"PageDown", static_cast<int>(Key::page_down)},
    {"Home", static_cast<int>(Key::home)},
    {"End", static_cast<int>(Key::end)},
    {"NumpadSubtract", static_cast<int>(Key::keypad_subtract)},
    {"NumpadAdd", static_cast<int>(Key::keypad_add)},
    {"NumpadEnter", static_cast<int>(Key::keypad_enter)},
    {"ShiftLeft", kLeftShift},
    {"ControlLeft", kLeftShift + 1},
    {"AltLeft", kLeftShift + 2},
    {"MetaLeft", kLeftShift + 3},
    {"ShiftRight", kRightShift},
    {"ControlRight", kRightShift + 1},
    {"AltRight", kRightShift + 2},
    {"MetaRight", kRightShift + 3},
});

int by_place(std::string_view code) {
    if (code.size() == 4 && code.starts_with("Key")) return code.back();
    if (code.size() == 6 && code.starts_with("Digit")) return code.back();
    int number = 0;
    if (code.starts_with('F') && std::from_chars(code.data() + 1, code.data() + code.size(), number).ptr ==
                                     code.data() + code.size()) {
        return number >= 1 && number <= 12 ? static_cast<int>(Key::f1) + number - 1 : -1;
    }
    for (const auto& [name, value] : kPlaces)
        if (code == name) return value;
    return -1;
}

}  // namespace

int key_of(std::string_view key, std::string_view code, bool shift) {
    if (key.size() != 1 || code.starts_with("Numpad")) return by_place(code);
    const char c = key.front();
    if (c >= 'a' && c <= 'z') return c - 'a' + 'A';
    if (c >= 'A' && c <= 'Z') return c;
    // With Shift the key types another sign than the one it is named by.
    const bool named = (c >= '0' && c <= '9') || std::string_view(",-.=/").find(c) != std::string_view::npos;
    return named && !shift ? c : by_place(code);
}

unsigned character_of(std::string_view key) {
    if (key.empty()) return 0;
    const auto byte = [&](std::size_t i) {
        return static_cast<unsigned>(static_cast<unsigned char>(key[i]));
    };
    const unsigned first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (key.size() != length) return 0;  // a name
    unsigned out = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) out = out << 6U | (byte(i) & 0x3FU);
    return out;
}

}  // namespace fp8lab
