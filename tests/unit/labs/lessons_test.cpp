// Lessons and the glossary: each term is linked where a lesson first uses it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/files/files.h"
#include "core/lesson/glossary.h"
#include "labs/course/term_figures.h"
#include "labs/lab.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;

std::set<std::string> test::lesson_numbers(const std::string& lab) {
    const std::string text = read_text(std::string(FP8LAB_SOURCE) + "/assets/text/" + lab + ".md");
    const std::regex number(R"(\b(0x[0-9A-F]+|\d+(\.\d+)?)\b)");
    std::set<std::string> out;
    for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
        out.insert(at->str());
    return out;
}

namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// Replaces the uses of a term, singular or plural, by blanks; true where there was one. A name in small
// letters is found at the start of a sentence too.
bool blank_uses(std::string& text, const std::string& name) {
    const bool any_case = lower(name) == name;
    bool found = false;
    for (std::size_t at = 0;; ++at) {
        at = (any_case ? lower(text) : text).find(name, at);
        if (at == std::string::npos) return found;
        std::size_t end = at + name.size();
        for (const std::string_view plural : {"es", "s"})
            if (text.compare(end, plural.size(), plural) == 0 &&
                (end + plural.size() == text.size() || !in_word(text[end + plural.size()])))
                end += plural.size();
        if ((at > 0 && in_word(text[at - 1])) || (end < text.size() && in_word(text[end]))) continue;
        text.replace(at, end - at, end - at, ' ');
        found = true;
    }
}

// The terms that the text uses before it links them, and what is wrong with its links.
std::vector<std::string> faults(const std::string& lesson, const Glossary& glossary) {
    std::vector<const Term*> terms;  // "amax history" before "amax", which is a part of it
    for (const Term& term : glossary.terms()) terms.push_back(&term);
    std::ranges::stable_sort(terms, std::greater{}, [](const Term* term) { return term->term.size(); });
    std::vector<std::string> out;
    std::set<std::string> linked;
    const auto check = [&](std::string plain) {
        for (const Term* term : terms)
            if (blank_uses(plain, term->term) && !linked.contains(term->id)) out.push_back(term->term);
    };
    static const std::regex kLink(R"((!?)\[([^\]]*)\]\(([^)]*)\))");
    std::string rest = lesson;
    for (std::smatch link; std::regex_search(rest, link, kLink); rest = link.suffix()) {
        check(link.prefix());
        const std::string id = link[3];
        if (link[1].length() > 0) {  // an image: the figure of a term
            if (std::ranges::find(illustrated_terms(), id) == illustrated_terms().end())
                out.push_back("no figure of " + id);
            continue;
        }
        if (glossary.find(id) == nullptr) out.push_back("no term " + id);
        if (!linked.insert(id).second) out.push_back("linked twice: " + id);
    }
    check(rest);
    return out;
}

}  // namespace

TEST_CASE("no lesson uses a term of the glossary before it links it, and each link leads to a term") {
    const Glossary glossary = load_glossary();
    for (const LabEntry& entry : lab_registry()) {
        CAPTURE(std::string(entry.id));
        const std::string lesson = read_text(asset("text/" + std::string(entry.id) + ".md"));
        CHECK(std::ranges::count(lesson, ']') >= 5);
        for (const std::string& fault : faults(lesson, glossary)) FAIL_CHECK(fault);
    }
}

TEST_CASE("a term before its link, a link to nothing and a second link are found") {
    const Glossary glossary = load_glossary();
    using Faults = std::vector<std::string>;
    CHECK(faults("An [amax](amax) and a second amax.", glossary).empty());
    CHECK(faults("Amaxes, then [amax](amax).", glossary) == Faults{"amax"});
    CHECK(faults("`amax_history_len` and amaxed are other words.", glossary).empty());
    CHECK(faults("the [amax history](amax-history) first", glossary).empty());
    CHECK(faults("E4M3 has a name, e4m3 is none", glossary) == Faults{"E4M3"});
    CHECK(faults("[a](no-such-term)", glossary) == Faults{"no term no-such-term"});
    CHECK(faults("![a](ulp)", glossary).empty());
    CHECK(faults("![a](seed)", glossary) == Faults{"no figure of seed"});
    CHECK(faults("[a](amax), [b](amax)", glossary) == Faults{"linked twice: amax"});
}
