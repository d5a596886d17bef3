// The manual: every command runs, every number is what a command prints, every link leads somewhere.
#include "manual_pages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "app/cli/manual/manual_html.h"
#include "app/cli/manual/verb_pages.h"
#include "core/files/files.h"
#include "core/lesson/manual/markdown.h"
#include "core/run/modes.h"
#include "core/run/rules.h"
#include "labs/course/manual.h"

using namespace fp8lab;
using manual_test::dead_links;
using manual_test::loose_numbers;
using manual_test::run_page;

namespace {

using Lines = std::vector<std::string>;

std::vector<ManualPart> whole() {
    std::vector<ManualPart> parts = manual();
    parts.back().pages.push_back(terms_page());
    parts.push_back(cli::verbs_part());
    return parts;
}

void run_part(std::string_view id) {
    const std::vector<ManualPart> parts = written_manual();
    const auto part = std::ranges::find(parts, id, &ManualPart::id);
    REQUIRE(part != parts.end());
    for (const ManualPage& page : part->pages) {
        CAPTURE(page.id);
        const auto outcome = run_page(page);
        for (const std::string& fault : outcome.faults) FAIL_CHECK(fault);
        CHECK(outcome.commands > 0);
    }
}

ManualPage page_of(const std::string& text) { return {"x/y", "T", "# T\n\n" + text}; }

}  // namespace

TEST_CASE("every command of the tutorials runs and prints what the page quotes") { run_part("tutorial"); }
TEST_CASE("every command of the how-to pages runs and prints what the page quotes") { run_part("how-to"); }
TEST_CASE("every command of the explanations runs and prints what the page quotes") { run_part("why"); }

TEST_CASE("commands of the manual that need PyTorch run with it") {
    if (std::system("python3 -c 'import torch' >/dev/null 2>&1") != 0) {
        MESSAGE("skipped: python3 has no torch, which some commands of the manual need");
        return;
    }
    int pages = 0;
    for (const ManualPart& part : written_manual()) {
        for (const ManualPage& page : part.pages) {
            if (page.text.find("needs=torch") == std::string::npos) continue;
            ++pages;
            const auto outcome = run_page(page, true);
            for (const std::string& fault : outcome.faults) FAIL_CHECK(fault);
            CHECK_FALSE(outcome.skipped.contains("torch"));
        }
    }
    CHECK(pages >= 2);
}

TEST_CASE("each written page is in the index, has a command and a short title") {
    std::set<std::string> listed, there;
    for (const ManualPart& part : written_manual()) {
        for (const ManualPage& page : part.pages) {
            CAPTURE(page.id);
            listed.insert(page.id);
            CHECK(page.title.size() <= 34);  // the list of the window has room for it
            CHECK(page.text.find("```sh") != std::string::npos);
            for (const MarkdownBlock& block : parse_markdown(page.text)) {
                if (block.kind != BlockKind::code || block.info != "text") continue;
                std::istringstream lines(words_of(block.cells.front()));
                for (std::string line; std::getline(lines, line);)
                    CHECK_MESSAGE(line.size() <= 66, line);  // wider ones wrap in a window of 1024 px
            }
        }
    }
    const std::filesystem::path folder = FP8LAB_SOURCE "/assets/docs/manual";
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
        if (file.path().extension() == ".md")
            there.insert(std::filesystem::relative(file.path(), folder).replace_extension().string());
    CHECK(listed == there);
}

TEST_CASE("no number stands in the manual without its run") {
    for (const ManualPart& part : written_manual())
        for (const ManualPage& page : part.pages)
            for (const std::string& number :
                 loose_numbers(read_text(FP8LAB_SOURCE "/assets/docs/manual/" + page.id + ".md")))
                FAIL_CHECK(page.id << ": " << number);
    CHECK(loose_numbers(
              "It is [31.5](seen:a) dB, {runs L8 delayed gap_pct mean} %, E4M3, 2^-24, 1/17, `448`, 16 bits.")
              .empty());
    CHECK(loose_numbers("[0.25](published:arXiv-2412.19437) %").empty());
    CHECK(loose_numbers("31.5 dB").size() == 1);
    CHECK(loose_numbers("| a |\n|---|\n| 7 % |").size() == 1);
    CHECK(loose_numbers("a history of 1024, and 57,344").size() == 2);
    CHECK(loose_numbers("```sh\nfp8lab run L1 --set x=448.5\n```").empty());
}

TEST_CASE("a spread of seeds says which one it is, and a gap is one of two things") {
    const auto has = [](const std::string& text, const char* words) { return text.find(words) != text.npos; };
    static const std::regex kNumber(R"(\{runs \S+ \S+ \S+ (\w+)\})"),
        kGap(R"((loss )?\[?(loss )?gaps?\b(\]\((ulp|loss-gap)\))?)");
    int spreads = 0, gaps = 0;
    for (const ManualPart& part : written_manual()) {
        for (const ManualPage& page : part.pages) {
            CAPTURE(page.id);
            const std::string text = read_text(asset("docs/manual/" + page.id + ".md"));
            for (std::sregex_iterator at(text.begin(), text.end(), kNumber), end; at != end;
                 ++at, ++spreads) {
                const std::string what = (*at)[1];
                CAPTURE(what);
                if (what == "interval")
                    CHECK(has(text, "](prediction-interval)"));
                else
                    CHECK((what == "range" && has(text, "smallest and the largest")));
            }
            for (std::sregex_iterator at(text.begin(), text.end(), kGap), end; at != end; ++at, ++gaps) {
                const bool of_losses = (*at)[1].matched || (*at)[2].matched;
                CHECK_MESSAGE((of_losses ? (*at)[4] != "ulp" : (*at)[4] == "ulp"), at->str());
            }
        }
    }
    CHECK(spreads > 20);
    CHECK(gaps >= 20);
}

TEST_CASE("the page of modes has every mode and every rule of the run doctor, with their limits") {
    const auto parts = manual();
    const ManualPage* page = find_page(parts, "lists/modes");
    REQUIRE(page != nullptr);
    for (const FailureMode& mode : failure_modes())
        CHECK(page->text.find("| " + std::string(mode.id) + " | " + plain_markdown(mode.words)) !=
              std::string::npos);
    for (const RunRule& rule : run_rules()) {
        CHECK(page->text.find("### " + std::string(rule.name) + "\n") != std::string::npos);
        CHECK(page->text.find(plain_markdown(rule.treatment)) != std::string::npos);
    }
    CHECK(page->text.find("32 times the median of the 32 steps before") != std::string::npos);
    CHECK(page->text.find('{') == std::string::npos);
}

TEST_CASE("no link of the manual leads nowhere") {
    const std::vector<ManualPart> parts = whole();
    for (const ManualPart& part : parts)
        for (const ManualPage& page : part.pages)
            for (const std::string& link : dead_links(page, parts)) FAIL_CHECK(link);
    CHECK(
        dead_links(page_of("[a](amax), [b](lab:bits), [c](how-to/memory), [d](seen:x), [e](place:z)."), parts)
            .empty());
    CHECK(dead_links(page_of("[a](no-term), [b](lab:none), [c](how-to/none)."), parts) ==
          Lines{"x/y: no-term", "x/y: lab:none", "x/y: how-to/none"});
}

TEST_CASE("a command that fails, a line that is not printed and a wrong number in a page are found") {
    const auto faults = [](const std::string& text) { return run_page(page_of(text)).faults.size(); };
    CHECK(faults("```sh\nfp8lab run L1\n```\n\nIt ends at [448](seen:metrics/max).") == 0);
    CHECK(faults("```sh\nfp8lab run L1\n```\n\nIt ends at [449](seen:metrics/max).") == 1);
    CHECK(faults("```sh\nfp8lab run L1\n```\n\nIt ends at [440](seen:metrics/max~10).") == 0);
    CHECK(faults("```sh\nfp8lab run L1\n```\n\nIt ends at [440](seen:metrics/max~7).") == 1);
    CHECK(faults("```sh\nfp8lab run L1\n```\n\nIt has [1](seen:metrics/no_such).") == 1);
    CHECK(faults("It ends at [448](seen:metrics/max).") == 1);
    CHECK(faults("```sh\nfp8lab run nothing\n```") == 1);
    CHECK(faults("```sh exit=2\nfp8lab run nothing\n```") == 0);
    CHECK(faults("```sh\nfp8lab run nothing | cat\n```") == 1);
    CHECK(faults("```sh\nfp8lab list labs\n```\n\n```text\nbits  \nruler  \n```") == 0);
    CHECK(faults("```sh\nfp8lab list labs\n```\n\n```text\nruler  \nbits  \n```") == 1);
}

TEST_CASE("the manual in HTML loads nothing, runs nothing, and each of its links has its place, once") {
    const std::string html = cli::manual_html(whole());
    for (const char* word :
         {"<script", "src=", "url(", "<img", "http://", "https://", "@import", "](", "seen:"})
        CHECK_MESSAGE(html.find(word) == std::string::npos, word);
    CHECK(html.find("prefers-color-scheme: dark") != std::string::npos);
    std::map<std::string, int> ids;
    const std::regex id(" id=\"([^\"]*)\""), link("href=\"([^\"]*)\"");
    for (std::sregex_iterator at(html.begin(), html.end(), id), end; at != end; ++at) ++ids[(*at)[1]];
    for (const auto& [name, times] : ids) CHECK_MESSAGE(times == 1, name);
    int links = 0;
    for (std::sregex_iterator at(html.begin(), html.end(), link), end; at != end; ++at, ++links) {
        const std::string target = (*at)[1];
        REQUIRE(target.starts_with("#"));
        CHECK_MESSAGE(ids.contains(target.substr(1)), target);
    }
    CHECK(links > 300);
    // Tags open and close in pairs.
    for (const char* tag :
         {"section", "ul", "ol", "li", "table", "tr", "td", "th", "pre", "a", "span", "p", "div", "h3"}) {
        const auto count = [&](const std::string& pattern) {
            const std::regex one(pattern);
            return std::distance(std::sregex_iterator(html.begin(), html.end(), one), std::sregex_iterator());
        };
        CHECK_MESSAGE(count(std::string("<") + tag + "[ >]") == count(std::string("</") + tag + ">"), tag);
    }
}
