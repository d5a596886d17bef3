// Counts in documents come from the program: "88 scenes", "fifteen labs". Each such phrase in README.md, the lessons and
// assets/docs is the number that the program has, or stands in a list below with what it counts.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/files/bounded_file.h"
#include "core/formats/format.h"
#include "core/lesson/claim.h"
#include "core/lesson/glossary.h"
#include "core/lesson/scene.h"
#include "core/scaling/recipe.h"
#include "labs/course/exercise_run.h"
#include "labs/lab.h"

using namespace fp8lab;

namespace {

namespace fs = std::filesystem;

std::size_t labs_with_a_number() {
    return static_cast<std::size_t>(
        std::ranges::count_if(lab_registry(), [](const LabEntry& lab) { return lab.number > 0; }));
}

// What a noun counts. Labs: all, or those that have a number.
std::map<std::string, std::set<std::size_t>> totals() {
    return {{"lab", {lab_registry().size(), labs_with_a_number()}},
            {"lesson", {lab_registry().size()}},
            {"exercise", {all_exercises().size()}},
            {"scene", {shipped_scenes().size()}},
            {"deck", {shipped_decks().size()}},
            {"term", {load_glossary().terms().size()}},
            {"claim card", {load_claims().size()}},
            {"claim", {load_claims().size()}},
            {"format", {formats().size()}},
            {"recipe", {recipes().size()}}};
}

std::size_t number_from(const std::string& word) {
    static const std::vector<std::string> kWords = {
        "",         "",        "two",     "three",     "four",     "five",     "six",
        "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",   "thirteen",
        "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"};
    std::string lower = word;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (std::size_t n = 2; n < kWords.size(); ++n)
        if (lower == kWords[n]) return n;
    std::erase(lower, ',');
    return std::stoul(lower);
}

struct Count {
    std::string phrase, noun;  // "48 scenes", "scene"
    std::size_t number = 0;
};

std::vector<Count> counts_in(const std::string& text) {
    static const std::regex kCount(
        "(^|[^\\w.,/"
        "-])((two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
        "sixteen|seventeen|eighteen|nineteen|twenty|[0-9][0-9,]*) +"
        "(shipped +)?(claim card|claim|lab|lesson|exercise|scene|deck|term|format|recipe)s)\\b",
        std::regex::icase);
    std::vector<Count> out;
    for (std::sregex_iterator it(text.begin(), text.end(), kCount), end; it != end; ++it)
        out.push_back({(*it)[2], (*it)[5], number_from((*it)[3])});
    return out;
}

// Phrases that count something else, by the name of the lesson. What they say of the program is checked where it can be.
const std::map<std::string, std::set<std::string>> kOthers = {
    {"blocks", {"Two formats"}},  // with block scales, in the lesson of L6: MX and NVFP4
    {"four", {"two recipes"}},    // whose losses are compared
};

std::vector<fs::path> documents() {
    std::vector<fs::path> out = {FP8LAB_SOURCE "/README.md"};
    for (const char* folder : {"/assets/text", "/assets/docs"})
        for (const auto& entry : fs::directory_iterator(std::string(FP8LAB_SOURCE) + folder))
            if (entry.path().extension() == ".md") out.push_back(entry.path());
    return out;
}

}  // namespace

TEST_CASE("every count of labs, exercises, scenes, decks, terms and formats in a document is the program's") {
    const auto right = totals();
    std::set<std::string> nouns;
    for (const fs::path& path : documents()) {
        CAPTURE(path.string());
        const std::string name = path.stem().string();
        for (const Count& count : counts_in(read_text(path))) {
            CAPTURE(count.phrase);
            if (name == "README") nouns.insert(count.noun);
            if (const auto others = kOthers.find(name);
                others != kOthers.end() && others->second.contains(count.phrase))
                continue;
            if (name == "README" && count.phrase == "ten scenes") {  // of the deck that it presents
                CHECK(read_deck(find_scene("lecture-fp8")).scenes.size() == 10);
                continue;
            }
            CHECK(right.at(count.noun).contains(count.number));
        }
    }
    // README says these of the program; without them the comparison above would be of nothing.
    for (const char* noun : {"scene", "deck"}) CHECK_MESSAGE(nouns.contains(noun), noun);
}

TEST_CASE("counts are found in figures and in words, with and without an adjective") {
    const auto found =
        counts_in("Fifteen labs, 48 scenes; (1,024 shipped exercises). Of L10 labs, 3.5 scenes no.");
    REQUIRE(found.size() == 3);
    CHECK((found[0].noun == "lab" && found[0].number == 15));
    CHECK((found[1].noun == "scene" && found[1].number == 48));
    CHECK((found[2].noun == "exercise" && found[2].number == 1024));
    CHECK(counts_in("the exercises of two other labs").empty());
}
