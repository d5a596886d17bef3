// assets/docs/cli.md against --help: every verb and every option stands in both.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "child.h"

namespace {

using Words = std::set<std::string>;

// "-o", "--csv": not inside a word, and no number. A table in Markdown has \| in it.
Words options_in(const std::string& text) {
    static const std::regex kOption(R"((^|[^\w-])(--?[A-Za-z][A-Za-z-]*))");
    Words options;
    for (std::sregex_iterator it(text.begin(), text.end(), kOption), end; it != end; ++it)
        options.insert((*it)[2]);
    return options;
}

// The words of `some` that `others` do not have, as a text, so that a check that fails prints them.
std::string only_in(const Words& some, const Words& others) {
    std::string out;
    for (const std::string& word : some)
        if (!others.contains(word)) out += (out.empty() ? "" : " ") + word;
    return out;
}

void check_same(const Words& page, const Words& help) {
    CHECK_MESSAGE(only_in(help, page) == "", "only in --help");
    CHECK_MESSAGE(only_in(page, help) == "", "only in cli.md");
}

// The options of the lines that begin with one: words in their descriptions are no options of this verb.
Words options_of(const std::string& help) {
    Words options;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);)
        if (const auto at = line.find_first_not_of(' '); at != line.npos && line[at] == '-' && at < 4)
            options.merge(options_in(line.substr(at, line.find(' ', at) - at)));
    return options;
}

Words verbs_of(const std::string& help) {
    Words verbs;
    const auto from = help.find("Subcommands:");
    REQUIRE(from != help.npos);
    std::istringstream lines(help.substr(help.find('\n', from) + 1));
    for (std::string line; std::getline(lines, line) && line.starts_with("  ");)
        if (line[2] != ' ') verbs.insert(line.substr(2, line.find(' ', 2) - 2));
    return verbs;
}

// The text under each heading: "### cast" and "## The window" alike.
std::map<std::string, std::string> sections_of(const std::string& page) {
    std::map<std::string, std::string> sections;
    std::string heading;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("#"))
            heading = line.substr(line.find(' ') + 1);
        else
            sections[heading] += line + "\n";
    }
    return sections;
}

}  // namespace

TEST_CASE("the page about the command line has every verb and every option of --help, and no others") {
    const std::string help = fp8lab("--help").out;
    auto sections = sections_of(slurp(FP8LAB_SOURCE "/assets/docs/cli.md"));
    Words global = options_in(sections["Options of every verb"]);
    for (const std::string& option : options_in(sections["The window"])) global.insert(option);
    check_same(global, options_of(help));

    const Words verbs = verbs_of(help);
    for (const std::string& verb : verbs) CHECK_MESSAGE(sections.contains(verb), verb);
    for (const std::string& verb : verbs) {
        CAPTURE(verb);
        if (!kHasWindow && verb == "screenshot") continue;
        Words there = options_of(fp8lab(verb + " --help").out);
        for (const char* of_every_verb : {"-h", "--help"}) CHECK(there.erase(of_every_verb) == 1);
        check_same(options_in(sections[verb]), there);
    }
    const std::string page = slurp(FP8LAB_SOURCE "/assets/docs/cli.md");
    const std::regex heading("\n### (.*)\n");
    for (std::sregex_iterator it(page.begin(), page.end(), heading), end; it != end; ++it)
        CHECK(verbs.contains((*it)[1]));
}

TEST_CASE("the exit codes of --help stand in the page and in the README") {
    const std::string help = fp8lab("--help").out;
    const std::regex row("\n  (\\d+)  ");
    Words codes;
    for (std::sregex_iterator it(help.begin(), help.end(), row), end; it != end; ++it) codes.insert((*it)[1]);
    CHECK(codes == Words{"0", "1", "2", "3", "4", "129", "130", "141", "143"});
    for (const char* file : {"/assets/docs/cli.md", "/README.md"}) {
        CAPTURE(file);
        const std::string text = slurp(std::string(FP8LAB_SOURCE) + file);
        for (const std::string& code : codes) CHECK(text.find("\n| " + code + " |") != std::string::npos);
    }
}
