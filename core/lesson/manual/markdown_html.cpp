#include "core/lesson/manual/markdown_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <vector>

#include "core/base/markup.h"

namespace fp8lab {
namespace {

class HtmlWriter {
  public:
    explicit HtmlWriter(const HtmlOptions& options) : options_(options) {}

    void block(const MarkdownBlock& block) {
        if (block.kind != BlockKind::item) close_lists(0);
        if (block.kind != BlockKind::row) close_table();
        switch (block.kind) {
            case BlockKind::heading:
                return heading(block);
            case BlockKind::item:
                return item(block);
            case BlockKind::code:
                return code(block);
            case BlockKind::row:
                return row(block);
            case BlockKind::rule:
                out_ += "<hr>\n";
                return;
            case BlockKind::paragraph:
            case BlockKind::picture:  // its words
                out_ += fmt::format("<p>{}</p>\n", cell(block.cells.front()));
                return;
        }
    }
    std::string end() {
        close_lists(0);
        close_table();
        return std::move(out_);
    }

  private:
    std::string cell(const MarkdownCell& runs) const {
        std::string out;
        for (const MarkdownRun& run : runs) {
            std::string words = escaped_markup(run.text);
            if (run.code)
                words = "<code>" + words + "</code>";
            else if (words.find('^') != words.npos)
                words = std::regex_replace(words, std::regex(R"((\d)\^(-?\d+))"), "$1<sup>$2</sup>");
            if (run.bold) words = "<strong>" + words + "</strong>";
            const std::string open = run.link.empty() || !options_.open_link ? "" : options_.open_link(run);
            if (!open.empty()) words = open + words + (open.starts_with("<a") ? "</a>" : "</span>");
            out += words;
        }
        return out;
    }
    void heading(const MarkdownBlock& block) {
        const int level = block.level + options_.heading_shift;
        std::string id;
        if (!headed_ && !options_.heading_id.empty()) id = fmt::format(" id=\"{}\"", options_.heading_id);
        headed_ = true;
        out_ += fmt::format("<h{0}{1}>{2}</h{0}>\n", level, id, cell(block.cells.front()));
    }
    void item(const MarkdownBlock& block) {
        const auto depth = static_cast<std::size_t>(block.level);
        const char* const list = block.bullet.empty() ? "ul" : "ol";
        close_lists(depth);
        if (lists_.size() == depth && lists_.back() != list) close_lists(depth - 1);
        if (lists_.size() == depth) {
            out_ += "</li>\n";
        } else {
            lists_.emplace_back(list);
            out_ += fmt::format("<{}>\n", list);
        }
        out_ += "<li>" + cell(block.cells.front());
    }
    void code(const MarkdownBlock& block) {
        if (options_.above_code) out_ += options_.above_code(block);
        out_ += "<pre><code>" + escaped_markup_lines(words_of(block.cells.front())) + "</code></pre>\n";
    }
    void row(const MarkdownBlock& block) {
        if (block.header && in_table_) close_table();
        if (!in_table_) out_ += "<div class=\"scroll\">\n<table class=\"numbers page\">\n";
        in_table_ = true;
        out_ += "<tr>";
        const char* const tag = block.header ? "th" : "td";
        for (const MarkdownCell& one : block.cells) out_ += fmt::format("<{0}>{1}</{0}>", tag, cell(one));
        out_ += "</tr>\n";
    }
    void close_lists(std::size_t depth) {
        while (lists_.size() > depth) {
            out_ += fmt::format("</li>\n</{}>\n", lists_.back());
            lists_.pop_back();
        }
    }
    void close_table() {
        if (in_table_) out_ += "</table>\n</div>\n";
        in_table_ = false;
    }
    // escaped_markup() turns the end of a line into a space.
    static std::string escaped_markup_lines(const std::string& text) {
        std::string out;
        for (std::size_t at = 0; at < text.size();) {
            const auto end = std::min(text.find('\n', at), text.size());
            out += escaped_markup(std::string_view(text).substr(at, end - at)) + "\n";
            at = end + 1;
        }
        return out;
    }

    const HtmlOptions& options_;
    std::string out_;
    std::vector<std::string> lists_;  // "ul", "ol": open ones
    bool in_table_ = false, headed_ = false;
};

}  // namespace

std::string markdown_html(std::span<const MarkdownBlock> blocks, const HtmlOptions& options) {
    HtmlWriter writer(options);
    for (const MarkdownBlock& block : blocks) writer.block(block);
    return writer.end();
}

}  // namespace fp8lab
