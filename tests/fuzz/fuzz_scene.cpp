// A scene or a deck from a stranger: refused with a place, or read so that its text reads back to the same.
#include <cstdlib>

#include "core/base/error.h"
#include "core/lesson/scene.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto parse = [](const std::string& t) {
        return is_scene_line(t) ? scene_from_line(t) : parse_scene(t, "s");
    };
    try {
        const std::string once = scene_text(parse(text));
        const Scene again = parse_scene(once, "s");
        if (scene_text(again) != once || scene_text(scene_from_line(scene_line(again))) != once) std::abort();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    try {
        parse_deck(text, "d", "/nonexistent");
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
