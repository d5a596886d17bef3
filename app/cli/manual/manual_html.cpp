#include "app/cli/manual/manual_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/markup.h"
#include "core/lesson/manual/markdown_html.h"
#include "labs/course/manual.h"
#include "labs/grading/page.h"

namespace fp8lab::cli {
namespace {

std::string place_of(std::string_view page) {
    std::string out(page);
    std::ranges::replace(out, '/', '-');
    return out;
}

// The last command of a block, whose JSON has the numbers below it.
std::string last_line(const std::string& code) {
    const auto end = code.find_last_not_of('\n');
    if (end == code.npos) return {};
    const auto begin = code.rfind("\nfp8lab ", end);
    return code.substr(begin == code.npos ? 0 : begin + 1, end - (begin == code.npos ? 0 : begin + 1) + 1);
}

// Writes a page; knows the command that the numbers at hand are of.
class PageWriter {
  public:
    explicit PageWriter(bool whole) : whole_(whole) {}
    std::string html(const ManualPage& page) {
        HtmlOptions options;
        options.heading_id = place_of(page.id);
        options.open_link = [this](const MarkdownRun& run) { return open_link(run.link); };
        options.above_code = [this](const MarkdownBlock& code) { return above_code(code); };
        return fmt::format("<section class=\"manual\">\n{}</section>\n",
                           markdown_html(parse_markdown(page.text), options));
    }

  private:
    std::string open_link(std::string_view link) const {
        if (const auto number = seen_number(link))
            return fmt::format("<span class=\"n\" title=\"{}: {}\">", escaped_markup(command_),
                               escaped_markup(number->path));
        if (link.starts_with(kPublishedLink))
            return fmt::format("<span class=\"n\" title=\"{}\">",
                               escaped_markup(link.substr(kPublishedLink.size())));
        if (link.starts_with(kPlaceLink))
            return fmt::format("<span id=\"{}\">", escaped_markup(link.substr(kPlaceLink.size())));
        if (!whole_) return {};
        std::string place;
        if (link.starts_with(kLabLink))
            place = "lab-" + std::string(link.substr(kLabLink.size()));
        else if (link.find('/') != link.npos)
            place = place_of(link);
        else
            place = "term-" + std::string(link);
        return fmt::format("<a href=\"#{}\">", escaped_markup(place));
    }
    std::string above_code(const MarkdownBlock& code) {
        if (code.info.starts_with("sh")) command_ = last_line(words_of(code.cells.front()));
        const std::string note = code_note(code.info);
        return note.empty() ? "" : fmt::format("<p class=\"ask\">{}</p>\n", escaped_markup(note));
    }

    bool whole_;  // all pages are in the file, so that links have their places
    std::string command_;
};

std::string contents(const std::vector<ManualPart>& parts) {
    std::string out = "<nav class=\"contents\">\n";
    for (const ManualPart& part : parts) {
        out += fmt::format("<h4>{}</h4>\n<ul>\n", escaped_markup(part.title));
        for (const ManualPage& page : part.pages)
            out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", place_of(page.id),
                               escaped_markup(page.title));
        out += "</ul>\n";
    }
    return out + "</nav>\n";
}

std::string page_end() {
    return fmt::format(
        "<footer>Made by FP8 Lab {}, `fp8lab manual -o`.</footer>\n</main>\n</body>\n</html>\n",
        escaped_markup(FP8LAB_VERSION));
}

}  // namespace

std::string manual_html(const std::vector<ManualPart>& parts) {
    std::string out = page_begin("manual");
    out += fmt::format("<header>\n<p class=\"kicker\">FP8 Lab {}</p>\n<h1>Manual</h1>\n</header>\n",
                       escaped_markup(FP8LAB_VERSION)) +
           contents(parts);
    for (const ManualPart& part : parts) {
        out += fmt::format("<header class=\"part\">\n<h1>{}</h1>\n<p class=\"question\">{}</p>\n</header>\n",
                           escaped_markup(part.title), escaped_markup(part.about));
        PageWriter writer(true);
        for (const ManualPage& page : part.pages) out += writer.html(page);
    }
    return out + page_end();
}

std::string pages_html(const std::vector<ManualPage>& pages) {
    std::string out = page_begin(pages.front().title);
    PageWriter writer(false);
    for (const ManualPage& page : pages) out += writer.html(page);
    return out + page_end();
}

}  // namespace fp8lab::cli
