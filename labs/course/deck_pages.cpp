#include "labs/course/deck_pages.h"

#include <fmt/format.h>

#include "labs/course/manual.h"
#include "labs/course/scene_run.h"
#include "labs/lab.h"

namespace fp8lab {
namespace {

std::string line_of(std::string_view label, const std::string& words) {
    return words.empty() ? "" : fmt::format("- **{}.** {}\n", label, plain_markdown(words));
}

// The question, and its answers with the letters that the room sees.
std::string vote_line(const Scene& scene) {
    if (!scene.predict) return {};
    std::string words = scene.predict->question;
    for (std::size_t i = 0; i < scene.predict->choices.size(); ++i)
        words += fmt::format("{} {}: {}{}", i == 0 ? "" : ";", static_cast<char>('A' + i),
                             scene.predict->choices[i],
                             static_cast<int>(i) == scene.predict->answer ? " (right)" : "");
    return line_of("Vote", words + ".");
}

}  // namespace

ManualPage lecture_page(const Deck& deck, const std::string& name) {
    std::string text = fmt::format(
        "# {}\n\n{} minutes, {} scenes. `fp8lab --present {}` shows them; `?` lists the keys, and `N` opens "
        "this text beside "
        "them, with a clock.\n",
        plain_markdown(deck.title), deck.minutes, deck.scenes.size(), name);
    if (!deck.prepare.empty()) text += "\n**Before.**\n\n";
    for (const std::string& line : deck.prepare) text += "- " + line + "\n";
    for (std::size_t i = 0; i < deck.scenes.size(); ++i) {
        const Scene& scene = deck.scenes[i];
        const LabEntry& lab = lab_of(scene);
        text += fmt::format("\n## {}\\. {}\n\n[{}](lab:{}), minutes {} to {}.\n\n", i + 1,
                            plain_markdown(scene.title),
                            plain_markdown(lab.mark_before() + std::string(lab.title)), lab.id,
                            deck.begins_at(i), deck.begins_at(i + 1));
        text += vote_line(scene) + line_of("Say", scene.cue.say) + line_of("Ask", scene.cue.ask) +
                line_of("Do", scene.cue.act) + line_of("Notes", notes_text(scene));
    }
    return {"lectures/" + name, deck.title, text};
}

ManualPart lectures_part() {
    ManualPart part{"lectures",
                    "Lectures",
                    "Decks with times: what to say, ask and do at each scene. Written by the program.",
                    {}};
    for (const auto& path : shipped_decks())
        if (const Deck deck = read_deck(path); deck.minutes > 0)
            part.pages.push_back(lecture_page(deck, path.stem().string()));
    return part;
}

}  // namespace fp8lab
