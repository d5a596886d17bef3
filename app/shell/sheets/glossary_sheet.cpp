#include "app/shell/sheets/glossary_sheet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "labs/ui/widgets.h"

namespace fp8lab {

void GlossarySheet::open(const Glossary& glossary, std::map<std::string, std::string> labs,
                         std::string_view term) {
    labs_ = std::move(labs);
    rows_.clear();
    for (const Term& one : glossary.terms()) rows_.push_back({.title = one.term, .also = one.also});
    show(glossary, term);
}

void GlossarySheet::show(const Glossary& glossary, std::string_view term) {
    finder_.open();
    const auto& terms = glossary.terms();
    const auto at = std::ranges::find(terms, term, &Term::id);
    if (at != terms.end()) finder_.select(static_cast<std::size_t>(at - terms.begin()));
}

bool GlossarySheet::draw(ui::Context& context, const Glossary& glossary, std::string& go_to) {
    const bool closed = draw_finder_sheet(
        context,
        {.name = "glossary",
         .title = "Glossary",
         .list = "glossary.terms",
         .width = 1000,
         .height = 680,
         .list_width = 300,
         .part = [&](std::size_t row) { return "term." + glossary.terms()[row].id; },
         .draw = [&](std::size_t row) { draw_term(context, glossary, glossary.terms()[row], go_to); }},
        finder_, rows_);
    return !closed && go_to.empty();
}

void GlossarySheet::draw_term(ui::Context& context, const Glossary& glossary, const Term& term,
                              std::string& go_to) {
    ui::text(context, term.term, Role::text, {Face::sans_bold, 24});
    ui::probe(context, "glossary.term", {}, {}, term.id);
    if (!term.also.empty()) ui::wrapped(context, "Also: " + term.also, Role::muted);
    ImGui::Dummy({1, context.px(2)});
    ui::wrapped(context, term.text, Role::text, {Face::sans, 15});
    if (!term.why.empty()) {
        ui::text(context, "Why it matters", Role::text, {Face::sans_bold, 13});
        ui::wrapped(context, term.why, Role::text, {Face::sans, 15});
    }
    pictures_.draw(context, "glossary.figure", term.id, 8);
    draw_links(context, glossary, term, go_to);
    if (!term.source.empty()) ui::wrapped(context, "Source: " + term.source);
}

// Buttons that run on, as many in a row as fit.
void GlossarySheet::draw_links(ui::Context& context, const Glossary& glossary, const Term& term,
                               std::string& go_to) {
    const auto row = [&](std::string_view heading, auto&& each) {
        const Rect area = ui::next_area(context, 32);
        float x = area.x0;
        float y = area.y0;
        const float gap = std::round(context.px(8));
        ui::text_mid(context, {x, y + context.px(16)}, heading, {Role::muted}, {Face::sans, 13});
        x += std::round(context.px(72));
        const float left = x;
        each([&](const std::string& name, const std::string& words) {
            const float width = std::round(ui::text_width(context, words, {Face::sans, 15}) + context.px(24));
            if (x + width > area.x1 && x > left) {
                x = left;
                y += std::round(context.px(40));
            }
            ImGui::SetCursorScreenPos({x, y});
            x += width + gap;
            return ui::button(context, name, words, {.width = width / context.scale});
        });
        ui::advance({area.x0, y, area.x0 + 1, y + std::round(context.px(32))});
    };
    std::string next;
    row("See also", [&](auto&& link) {
        for (const std::string& id : term.related)
            if (link("glossary.related." + id, glossary.find(id)->term)) next = id;
    });
    std::map<std::string, std::string> at_work;  // labs with a field that the term explains
    for (const auto& [id, words] : labs_)
        if (std::ranges::any_of(term.explains,
                                [&](const std::string& field) { return field.starts_with(id + "."); }))
            at_work.emplace(words, id);
    if (!at_work.empty()) {
        row("At work in", [&](auto&& link) {
            for (const auto& [words, id] : at_work)
                if (link("glossary.lab." + id, words)) go_to = id;
        });
    }
    if (!next.empty()) show(glossary, next);
}

}  // namespace fp8lab
