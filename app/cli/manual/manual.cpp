// fp8lab manual [PAGE]... [-o OUT.html]: the manual, as its contents, a page as text, or one HTML file.
#include "labs/course/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/cli/manual/manual_html.h"
#include "app/cli/manual/verb_pages.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/outputs.h"
#include "core/lesson/lesson.h"

namespace fp8lab::cli {
namespace {

struct ManualArguments {
    std::vector<std::string> pages;
    std::string html;
};

std::vector<ManualPart> whole_manual() {
    std::vector<ManualPart> parts = manual();
    parts.back().pages.push_back(terms_page());
    parts.push_back(verbs_part());
    return parts;
}

void print_contents(const std::vector<ManualPart>& parts) {
    std::size_t width = 0;
    for (const ManualPart& part : parts)
        for (const ManualPage& page : part.pages) width = std::max(width, page.id.size());
    for (const ManualPart& part : parts)
        for (const ManualPage& page : part.pages)
            write_stdout(fmt::format("{:<{}}  {}\n", page.id, width, page.title));
}

void print_pages(const std::vector<ManualPart>& parts, const std::vector<std::string>& names) {
    std::vector<const ManualPage*> all, chosen;
    for (const ManualPart& part : parts)
        for (const ManualPage& page : part.pages) all.push_back(&page);
    for (const std::string& name : names) {
        chosen.push_back(find_page(parts, name));
        if (chosen.back() == nullptr)
            throw unknown_name("manual", "page", name, all, [](const ManualPage* page) { return page->id; });
    }
    for (const ManualPage* page : chosen)
        write_stdout((page == chosen.front() ? "" : "\n") + without_links(page->text));
}

void run_manual(const ManualArguments& arguments) {
    if (!arguments.html.empty() && !arguments.pages.empty())
        throw usage_error("manual", "-o writes the whole manual; name no page with it");
    const std::vector<ManualPart> parts = whole_manual();
    if (!arguments.pages.empty()) return print_pages(parts, arguments.pages);
    if (arguments.html.empty()) return print_contents(parts);
    Outputs outputs;
    outputs.writes("-o", arguments.html, Holds::page);
    write_file(arguments.html, manual_html(parts));
}

}  // namespace

void add_manual(CLI::App& app, Globals&) {
    const auto arguments = std::make_shared<ManualArguments>();
    CLI::App* verb = app.add_subcommand(
        "manual", "The manual: its contents, pages as text, or all of it as one HTML file");
    verb->add_option("page", arguments->pages, "pages to print, such as tutorial/afternoon");
    verb->add_option("-o", arguments->html, "HTML file; - is stdout");
    verb->callback([arguments] { run_manual(*arguments); });
}

}  // namespace fp8lab::cli
