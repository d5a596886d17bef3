#include "app/shell/sheets/manual_sheet.h"

#include <algorithm>

#include "core/base/error.h"
#include "labs/course/manual.h"
#include "labs/ui/markdown.h"
#include "labs/ui/widgets.h"

namespace fp8lab {

const std::vector<ManualPart>& ManualSheet::parts() {
    if (!parts_.empty()) return parts_;
    parts_ = manual();
    for (const auto& part : more_) parts_.push_back(part());
    for (const ManualPart& part : parts_) {
        for (const ManualPage& page : part.pages) {
            pages_.push_back(&page);
            rows_.push_back({.kind = part.title, .title = page.title, .also = page.text});
        }
    }
    return parts_;
}

void ManualSheet::open(std::string_view id) {
    parts();
    if (!id.empty()) shown_ = id;
    finder_.open();
    const auto at = std::ranges::find(pages_, shown_, [](const ManualPage* page) { return page->id; });
    if (at != pages_.end()) finder_.select(static_cast<std::size_t>(at - pages_.begin()));
}

ManualSheet::Done ManualSheet::draw(ui::Context& context) {
    Done done;
    const auto draw_page = [&](std::size_t row) {
        ui::text(context, page(row).title, Role::text, {Face::sans_bold, 24});
        ui::probe(context, "manual.page", {}, {}, shown_);
        const std::string_view text = page(row).text;
        follow(ui::markdown(context, text.substr(text.find('\n'))), done);
    };
    done.closed =
        draw_finder_sheet(context,
                          {.name = "manual",
                           .title = "Manual",
                           .list = "manual.pages",
                           .width = 1120,
                           .height = 760,
                           .list_width = 380,
                           .part = [&](std::size_t row) { return "manual." + (shown_ = page(row).id); },
                           .draw = draw_page},
                          finder_, rows_);
    return done;
}

void ManualSheet::follow(std::string_view link, Done& done) {
    if (link.empty()) return;
    if (link.starts_with(kLabLink))
        done.lab = link.substr(kLabLink.size());
    else if (link.find('/') != link.npos)
        open(link);
    else
        done.term = link;
}

}  // namespace fp8lab
