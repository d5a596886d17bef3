// Markdown as blocks, and these as HTML.
#include <doctest/doctest.h>

#include "core/lesson/manual/manual.h"
#include "core/lesson/manual/markdown.h"
#include "core/lesson/manual/markdown_html.h"

using namespace fp8lab;

namespace {

std::string html(const std::string& text, HtmlOptions options = {}) {
    return markdown_html(parse_markdown(text), options);
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
    CHECK_FALSE(is_plain_link("amax"));
}
