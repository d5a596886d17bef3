#include "app/shell/commands.h"

#include <GLFW/glfw3.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/read_json.h"

namespace fp8lab {
namespace {

struct NamedKey {
    int key;
    std::string_view name;
};
// Beside letters, digits and F1 to F12.
constexpr std::array kNamed = {
    NamedKey{GLFW_KEY_SPACE, "Space"},    NamedKey{GLFW_KEY_ENTER, "Enter"},
    NamedKey{GLFW_KEY_ESCAPE, "Esc"},     NamedKey{GLFW_KEY_TAB, "Tab"},
    NamedKey{GLFW_KEY_LEFT, "Left"},      NamedKey{GLFW_KEY_RIGHT, "Right"},
    NamedKey{GLFW_KEY_UP, "Up"},          NamedKey{GLFW_KEY_DOWN, "Down"},
    NamedKey{GLFW_KEY_HOME, "Home"},      NamedKey{GLFW_KEY_END, "End"},
    NamedKey{GLFW_KEY_PAGE_UP, "PgUp"},   NamedKey{GLFW_KEY_PAGE_DOWN, "PgDn"},
    NamedKey{GLFW_KEY_DELETE, "Delete"},  NamedKey{GLFW_KEY_BACKSPACE, "Backspace"},
    NamedKey{GLFW_KEY_EQUAL, "+"},        NamedKey{GLFW_KEY_MINUS, "-"},
    NamedKey{GLFW_KEY_KP_ADD, "Keypad+"}, NamedKey{GLFW_KEY_KP_SUBTRACT, "Keypad-"},
    NamedKey{GLFW_KEY_COMMA, ","},        NamedKey{GLFW_KEY_PERIOD, "."},
};

std::string key_name(int key) {
    const auto named = std::ranges::find(kNamed, key, &NamedKey::key);
    if (named != kNamed.end()) return std::string(named->name);
    if (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F12) return "F" + std::to_string(key - GLFW_KEY_F1 + 1);
    return std::string(1, static_cast<char>(key));  // GLFW's codes of letters and digits are ASCII
}

// 0: no key of that name.
int key_named(std::string_view name) {
    const auto named = std::ranges::find(kNamed, name, &NamedKey::name);
    if (named != kNamed.end()) return named->key;
    const auto same = [&](int key) { return key_name(key) == name; };
    for (int key = GLFW_KEY_F1; key <= GLFW_KEY_F12; ++key)
        if (same(key)) return key;
    for (int key = '0'; key <= 'Z'; ++key)
        if ((key <= '9' || key >= 'A') && same(key)) return key;
    return 0;
}

// A "+" right after a letter or digit joins; any other is the key.
std::vector<std::string> parts_of(std::string_view text) {
    std::vector<std::string> parts = {""};
    for (const char c : text) {
        const bool joins = c == ' ' || (c == '+' && !parts.back().empty() && parts.back() != "Keypad");
        if (!joins) {
            parts.back() += c;
        } else if (!parts.back().empty()) {
            parts.emplace_back();
        }
    }
    if (parts.back().empty()) parts.pop_back();
    return parts;
}

std::vector<Chord> chords_from(const nlohmann::json& value) {
    std::vector<Chord> chords;
    if (value.is_string()) {
        chords.push_back(parse_chord(value.get<std::string>()));
    } else {
        for (const auto& text : value) chords.push_back(parse_chord(text.get<std::string>()));
    }
    return chords;
}

}  // namespace

std::string to_string(const Chord& chord) {
    std::string text;
    if (chord.ctrl) text += "Ctrl ";
    if (chord.alt) text += "Alt ";
    if (chord.shift) text += "Shift ";
    return text + (chord.key == 0 ? std::string(1, static_cast<char>(chord.character)) : key_name(chord.key));
}

Chord parse_chord(std::string_view text) {
    Chord chord;
    const auto parts = parts_of(text);
    for (const std::string& part : parts) {
        if (&part != &parts.back()) {
            bool& modifier = part == "Ctrl" ? chord.ctrl : part == "Alt" ? chord.alt : chord.shift;
            if (part != "Ctrl" && part != "Alt" && part != "Shift")
                throw usage_error("'" + std::string(text) + "'", "'" + part + "' is not Ctrl, Alt or Shift");
            modifier = true;
        } else {
            chord.key = key_named(part);
            if (chord.key == 0 && part.size() == 1 && !chord.ctrl && !chord.alt && !chord.shift)
                chord.character = static_cast<unsigned char>(part.front());
        }
    }
    if (chord.key == 0 && chord.character == 0)
        throw usage_error("'" + std::string(text) + "'", "is no key; such as: F8, Ctrl K, Ctrl Shift R, ?");
    return chord;
}

void remap(std::span<ShellCommand> commands, const std::filesystem::path& file) {
    std::error_code none;
    if (!std::filesystem::exists(file, none)) return;
    std::map<std::string, std::vector<Chord>> changed;
    try {
        const auto json = parse_json(read_text(file), file.string());
        for (const auto& [id, value] : json.items()) {
            if (std::ranges::find(commands, id, &ShellCommand::id) == commands.end())
                throw unknown_name("keys", "command", id, commands,
                                   [](const ShellCommand& command) { return command.id; });
            changed[id] = chords_from(value);
        }
        std::vector<std::pair<Chord, std::string>> taken;
        for (const ShellCommand& command : commands) {
            const auto to = changed.find(command.id);
            for (const Chord& chord : to == changed.end() ? command.chords : to->second) {
                const auto other = std::ranges::find(taken, chord, &std::pair<Chord, std::string>::first);
                if (other != taken.end())
                    throw usage_error(to_string(chord), other->second + " and " + command.id + " have it");
                taken.emplace_back(chord, command.id);
            }
        }
    } catch (const Error& error) {
        if (error.where() == file.string()) throw;
        throw input_error(file.string(), error.what());
    } catch (const nlohmann::json::exception& error) {
        throw input_error(file.string(), json_reason(error.what()));
    }
    for (ShellCommand& command : commands)
        if (const auto to = changed.find(command.id); to != changed.end()) command.chords = to->second;
}

}  // namespace fp8lab
