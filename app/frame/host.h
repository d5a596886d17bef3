// What the window's parts ask of the place that they run in: a desktop's window, or the page of a browser.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace fp8lab {

struct Host {
    // Live labs call it from their workers when there is something new to draw. Empty: nobody waits for it.
    std::function<void()> wake = {};
    bool reloads = false;  // a start is mostly a reload, and begins as the last one ended, without a question
    // Takes a file that the user asked for, whole or not at all; throws Error{failed} with the reason. Empty: it is written
    // to its path, whose folder is made. A page hands it over as a download: the name counts, the folder does not.
    std::function<void(const std::filesystem::path& file, std::span<const std::byte> bytes)> deliver = {};
    // Lets the user choose files, which are then opened as if they were dropped. Empty: they are dropped, or named.
    std::function<void()> ask_for_files = {};
    // The address that opens the laboratory with this behind it: "lab=L5&history=4". Empty: there is none.
    std::function<std::string(std::string_view fragment)> link = {};
};

}  // namespace fp8lab
