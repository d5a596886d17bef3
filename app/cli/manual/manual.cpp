// fp8lab manual [PAGE]... [-o OUT.html]: the manual, as its contents, pages as text, or all or some pages as one HTML file.
#include "labs/course/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/cli/manual/manual_html.h"
#include "app/cli/manual/manual_text.h"
#include "app/cli/manual/verb_pages.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/outputs.h"

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

std::vector<ManualPage> chosen_pages(const std::vector<ManualPart>& parts,
                                     const std::vector<std::string>& names) {
    std::vector<const ManualPage*> all;
    for (const ManualPart& part : parts)
        for (const ManualPage& page : part.pages) all.push_back(&page);
    std::vector<ManualPage> out;
    for (const std::string& name : names) {
        const ManualPage* page = find_page(parts, name);
        if (page == nullptr)
            throw unknown_name("manual", "page", name, all, [](const ManualPage* each) { return each->id; });
        out.push_back(*page);
    }
    return out;
}

void run_manual(const ManualArguments& arguments) {
    const std::vector<ManualPart> parts = whole_manual();
    const std::vector<ManualPage> pages = chosen_pages(parts, arguments.pages);
    if (!arguments.html.empty()) {
        Outputs outputs;
        outputs.writes("-o", arguments.html, Holds::page);
        return write_file(arguments.html, pages.empty() ? manual_html(parts) : pages_html(pages));
    }
    if (pages.empty()) return print_contents(parts);
    for (std::size_t i = 0; i < pages.size(); ++i) write_stdout((i == 0 ? "" : "\n") + manual_text(pages[i]));
}

}  // namespace

void add_manual(CLI::App& app, Globals&) {
    const auto arguments = std::make_shared<ManualArguments>();
    CLI::App* verb = app.add_subcommand(
        "manual", "The manual: its contents, pages as text, or all of it as one HTML file");
    verb->add_option("page", arguments->pages, "pages to print, such as tutorial/afternoon");
    verb->add_option("-o", arguments->html, "HTML file of these pages, else of all; - is stdout");
    verb->callback([arguments] { run_manual(*arguments); });
}

}  // namespace fp8lab::cli
