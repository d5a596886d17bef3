#include "app/shell/sheets/manual_sheet.h"

#include <algorithm>
#include <cmath>

#include "app/shell/sheets/sheet.h"
#include "core/base/error.h"
#include "labs/course/manual.h"
#include "labs/ui/markdown.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kManualWidth = 1120, kManualHeight = 760, kPages = 380, kPagesGap = 32;

}  // namespace

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
    const SheetArea sheet = begin_sheet(context, "manual", "Manual", kManualWidth, kManualHeight);
    const auto px = [&](float logical) { return std::round(context.px(logical)); };
    const Rect all = sheet.content;
    const float top = all.y0 + px(16);
    const float list = std::min(px(kPages), std::round(all.width() * 0.36F));
    finder_.draw(context, "manual.pages", rows_, {all.x0, top, all.x0 + list, all.y1}, "Type to search");
    const Rect right{all.x0 + list + px(kPagesGap), top, all.x1, all.y1};
    if (const auto at = finder_.selected()) {
        shown_ = page(*at).id;
        begin_sheet_list(context, "manual." + shown_, right);
        ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
        ui::text(context, page(*at).title, Role::text, {Face::sans_bold, 24});
        ui::probe(context, "manual.page", {}, {}, shown_);
        const std::string_view text = page(*at).text;
        follow(ui::markdown(context, text.substr(text.find('\n'))), done);
        ImGui::PopStyleVar();
        end_sheet_list(context);
    }
    end_sheet();
    done.closed = sheet.closed;
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
