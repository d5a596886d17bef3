// Markdown as blocks, and these as HTML and as text.
#include <doctest/doctest.h>

#include "core/lesson/manual/manual.h"
#include "core/lesson/manual/markdown.h"
#include "core/lesson/manual/markdown_html.h"
#include "core/lesson/manual/markdown_text.h"

using namespace fp8lab;

namespace {

std::string html(const std::string& text, HtmlOptions options = {}) {
    return markdown_html(parse_markdown(text), options);
}

std::string plain(const std::string& text, TextOptions options = {}) {
    return markdown_text(parse_markdown(text), options);
}

}  // namespace

TEST_CASE("blocks have their kind, level, fence and links") {
    const auto blocks = parse_markdown(
        "# A\n\ntext [a b](x) `c` **d**\n\n```sh needs=gpu\nfp8lab\n\nx < y\n```\n\n1. one\n   - two\n\n| h "
        "|\n|---|\n| c |\n");
    REQUIRE(blocks.size() == 7);
    CHECK(blocks[0].kind == BlockKind::heading);
    CHECK(words_of(blocks[1].cells[0]) == "text a b c d");
    CHECK(blocks[1].cells[0][1].link == "x");
    CHECK(blocks[2].info == "sh needs=gpu");
    CHECK(words_of(blocks[2].cells[0]) == "fp8lab\n\nx < y\n");
    CHECK(blocks[3].bullet == "1");
    CHECK(blocks[4].level == 2);
    CHECK(blocks[5].header);
    CHECK_FALSE(blocks[6].header);
}

TEST_CASE("HTML of each block") {
    CHECK(html("# A & B") == "<h2>A &amp; B</h2>\n");
    CHECK(html("# A\n\n# B", {.heading_shift = 0, .heading_id = "a"}) == "<h1 id=\"a\">A</h1>\n<h1>B</h1>\n");
    CHECK(html("a **b** `<c>`\nd") == "<p>a <strong>b</strong> <code>&lt;c&gt;</code> d</p>\n");
    CHECK(html("```sh\na <b\n\nc\n```") == "<pre><code>a &lt;b\n\nc\n</code></pre>\n");
    CHECK(html("- a\n- b\n  1. c\n- d\n\ne") ==
          "<ul>\n<li>a</li>\n<li>b<ol>\n<li>c</li>\n</ol>\n</li>\n<li>d</li>\n</ul>\n<p>e</p>\n");
    CHECK(html("| a | b |\n|---|---|\n| c | d |\n\ne") ==
          "<div class=\"scroll\">\n<table class=\"numbers "
          "page\">\n<tr><th>a</th><th>b</th></tr>\n<tr><td>c</td><td>d</td></tr>\n"
          "</table>\n</div>\n<p>e</p>\n");
    CHECK(html("2^-24, `2^-24`, a ^ b") == "<p>2<sup>-24</sup>, <code>2^-24</code>, a ^ b</p>\n");
    CHECK(html("---") == "<hr>\n");
    CHECK(html("<b>no tag</b>") == "<p>&lt;b&gt;no tag&lt;/b&gt;</p>\n");
}

TEST_CASE("text of each block, without marks of Markdown") {
    CHECK(plain("# A & B") == "# A & B\n");
    CHECK(plain("a **b** `c`\nd\n\ne \\<f\\> \\| 2\\*3") == "a b `c` d\n\ne <f> | 2*3\n");
    CHECK(plain("```sh needs=gpu\na <b\n\nc\n```") == "    a <b\n\n    c\n");
    CHECK(plain("- a\n- b\n  1. c\n- d\n\ne") == "- a\n- b\n  1. c\n- d\n\ne\n");
    CHECK(plain("| a | bcd |\n|---|---|\n| \u00b5s | d |\n\ne") == "a   bcd\n--  ---\n\u00b5s  d\n\ne\n");
    CHECK(plain("a\n\n---\n\nb", {.width = 4}) == "a\n\n----\n\nb\n");
}

TEST_CASE("text is wrapped between words: paragraphs, items, and cells in their columns") {
    CHECK(plain("one two three", {.width = 8}) == "one two\nthree\n");
    CHECK(plain("- one two three", {.width = 9}) == "- one two\n  three\n");
    CHECK(plain("a-word-that-is-long b", {.width = 4}) == "a-word-that-is-long\nb\n");
    CHECK(plain("| a | b |\n|---|---|\n| one | first second third |", {.width = 18}) ==
          "a    b\n---  -------------\none  first second\n     third\n");
    CHECK(plain("```\none two three\n```", {.width = 8}) == "    one two three\n");
}

TEST_CASE("text has behind a link and above code what its writer says") {
    TextOptions options;
    options.behind_link = [](const MarkdownRun& run) { return run.link == "a" ? std::string("page a") : ""; };
    options.above_code = [](const MarkdownBlock& code) { return code_note(code.info); };
    CHECK(plain("[1](a), [2](b)", options) == "1 (page a), 2\n");
    CHECK(plain("```sh exit=2\nfp8lab\n```", options) == "Ends with exit code 2.\n    fp8lab\n");
    CHECK(plain("```sh\nfp8lab\n```", options) == "    fp8lab\n");
    CHECK(code_note("sh needs=torch") == "Needs PyTorch.");
    CHECK(code_note("text") == "It prints, among other lines:");
}

TEST_CASE("a link is opened by who writes the page, and without a tag it is its words") {
    HtmlOptions options;
    options.open_link = [](const MarkdownRun& run) {
        return run.link == "n" ? std::string("<span>") : run.link == "a" ? "<a href=\"#a\">" : "";
    };
    CHECK(html("[1](n) [2](a) [3](b)", options) == "<p><span>1</span> <a href=\"#a\">2</a> 3</p>\n");
}

TEST_CASE("a number of a run names its path and how far it may be off") {
    CHECK_FALSE(seen_number("amax").has_value());
    CHECK(seen_number("seen:metrics/e4m3.max")->path == "metrics/e4m3.max");
    CHECK_FALSE(seen_number("seen:a")->tolerance.has_value());
    CHECK(seen_number("seen:arms/1/gap_pct~1.5")->tolerance == 1.5);
    CHECK(seen_number("seen:arms/1/gap_pct~1.5")->path == "arms/1/gap_pct");
    CHECK_THROWS(seen_number("seen:a~b"));
    CHECK(is_plain_link("seen:a"));
    CHECK(is_plain_link("place:term-amax"));
    CHECK(is_plain_link("published:arXiv-2412.19437"));
    CHECK_FALSE(is_plain_link("amax"));
}
