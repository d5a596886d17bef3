#include "app/shell/sheets/commands.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

struct NamedKey {
    ui::Key key;
    std::string_view name;
};
// Beside letters, digits and F1 to F12.
constexpr std::array kNamed = {
    NamedKey{ui::Key::space, "Space"},
    NamedKey{ui::Key::enter, "Enter"},
    NamedKey{ui::Key::escape, "Esc"},
    NamedKey{ui::Key::tab, "Tab"},
    NamedKey{ui::Key::left, "Left"},
    NamedKey{ui::Key::right, "Right"},
    NamedKey{ui::Key::up, "Up"},
    NamedKey{ui::Key::down, "Down"},
    NamedKey{ui::Key::home, "Home"},
    NamedKey{ui::Key::end, "End"},
    NamedKey{ui::Key::page_up, "PgUp"},
    NamedKey{ui::Key::page_down, "PgDn"},
    NamedKey{ui::Key::del, "Delete"},
    NamedKey{ui::Key::backspace, "Backspace"},
    NamedKey{ui::Key::equal, "+"},
    NamedKey{ui::Key::minus, "-"},
    NamedKey{ui::Key::keypad_add, "Keypad+"},
    NamedKey{ui::Key::keypad_subtract, "Keypad-"},
    NamedKey{ui::Key::comma, ","},
    NamedKey{ui::Key::period, "."},
    NamedKey{ui::Key::slash, "/"},
    NamedKey{ui::Key::insert, "Insert"},
    NamedKey{ui::Key::keypad_enter, "KeypadEnter"},
};

constexpr std::size_t kLargestKeys = std::size_t{64} << 10;  // bytes of keys.json

std::string key_name(ui::Key key) {
    const auto named = std::ranges::find(kNamed, key, &NamedKey::key);
    if (named != kNamed.end()) return std::string(named->name);
    if (key >= ui::Key::f1 && key <= ui::Key::f12) return "F" + std::to_string(key - ui::Key::f1 + 1);
    return std::string(1, static_cast<char>(key));  // letters and digits are ASCII
}

// none: no key has that name.
ui::Key key_named(std::string_view name) {
    const auto keys = ui::all_keys();
    const auto named = std::ranges::find_if(keys, [&](ui::Key key) { return key_name(key) == name; });
    return named == keys.end() ? ui::Key::none : *named;
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

// Throws usage_error naming the command.
std::vector<Chord> chords_from(const nlohmann::json& value, const std::string& command) {
    const auto is_text = [](const nlohmann::json& one) { return one.is_string(); };
    if (!value.is_string() && !(value.is_array() && std::ranges::all_of(value, is_text)))
        throw usage_error(command, "expected a key such as \"Ctrl K\", or a list of them");
    std::vector<Chord> chords;
    try {
        if (value.is_string()) return {parse_chord(value.get<std::string>())};
        for (const auto& text : value) chords.push_back(parse_chord(text.get<std::string>()));
    } catch (const Error& error) {
        throw usage_error(command, error.what());
    }
    return chords;
}

}  // namespace

std::string to_string(const Chord& chord) {
    std::string text;
    if (chord.ctrl) text += "Ctrl ";
    if (chord.alt) text += "Alt ";
    if (chord.shift) text += "Shift ";
    return text + (chord.key == ui::Key::none ? std::string(1, static_cast<char>(chord.character))
                                              : key_name(chord.key));
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
            if (chord.key == ui::Key::none && part.size() == 1 && !chord.ctrl && !chord.alt && !chord.shift)
                chord.character = static_cast<unsigned char>(part.front());
        }
    }
    if (chord.key == ui::Key::none && chord.character == 0)
        throw usage_error("'" + std::string(text) + "'",
                          "is not a key. Examples: F8, Ctrl K, Ctrl Shift R, ?");
    return chord;
}

void remap(std::span<ShellCommand> commands, const std::filesystem::path& file) {
    std::error_code none;
    if (!std::filesystem::exists(file, none)) return;
    std::map<std::string, std::vector<Chord>> changed;
    try {
        const auto json = parse_json(read_bounded(file, kLargestKeys), file.string());
        if (!json.is_object()) throw input_error(file.string(), "expected an object of commands and keys");
        for (const auto& [id, value] : json.items()) {
            if (std::ranges::find(commands, id, &ShellCommand::id) == commands.end())
                throw unknown_name("keys", "command", id, commands,
                                   [](const ShellCommand& command) { return command.id; });
            changed[id] = chords_from(value, id);
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
    }
    for (ShellCommand& command : commands)
        if (const auto to = changed.find(command.id); to != changed.end()) command.chords = to->second;
}

}  // namespace fp8lab
