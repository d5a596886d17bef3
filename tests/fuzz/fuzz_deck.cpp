// A deck from a stranger, beside two scenes: refused with a place, or a lecture of the scenes that it names
// in its order, however its JSON is laid out.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/lesson/scene.h"

namespace {

using namespace fp8lab;

void check(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::filesystem::path folder = FP8LAB_SOURCE "/tests/fuzz/scenes";
    try {
        const Deck deck = parse_deck(text, "d", folder);
        const auto json = nlohmann::ordered_json::parse(text);
        check(deck.title == json["title"].get<std::string>() && deck.scenes.size() == json["scenes"].size());
        for (std::size_t i = 0; i < deck.scenes.size(); ++i) {
            const auto& entry = json["scenes"][i];
            const Scene& scene = deck.scenes[i];
            const auto file = folder / entry["scene"].get<std::string>();
            const bool beside = scene.folder == file.parent_path();
            check(beside ||
                  scene.folder == asset("scenes"));  // the shipped ones, for names that are not beside it
            check(scene.where.starts_with((scene.folder / file.filename()).string()));
            if (entry.contains("notes")) check(scene.notes == entry["notes"].get<std::string>());
        }
        const Deck again = parse_deck(json.dump(1), "d", folder);
        check(again.title == deck.title && again.scenes.size() == deck.scenes.size());
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input);
        check(!error.where().empty() && !error.why().empty());
    }
    return 0;
}
