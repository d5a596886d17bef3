#include "labs/grading/page.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/markup.h"
#include "core/base/units.h"
#include "core/figure/svg.h"
#include "core/files/files.h"

namespace fp8lab {
namespace {

// The palette's roles as CSS variables; in the dark only the page changes, figures stay on their white.
std::string palette_css(Theme theme) {
    constexpr std::pair<const char*, Role> kRoles[] = {
        {"surface", Role::surface}, {"raised", Role::raised},  {"field", Role::field},
        {"line", Role::line},       {"axis", Role::axis},      {"text", Role::text},
        {"muted", Role::muted},     {"warning", Role::warning}};
    std::string css;
    for (const auto& [name, role] : kRoles) {
        const Rgba c = rgba(theme, {role});
        css += fmt::format("--{}:#{:02x}{:02x}{:02x};", name, c.r, c.g, c.b);
    }
    return ":root{" + css + "}";
}

}  // namespace

std::string page_begin(std::string_view title) {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>FP8 Lab: {}</title>\n<style>\n{}\n@media (prefers-color-scheme: dark){{{}}}\n"
        "@media print{{{}}}\n{}</style>\n</head>\n<body>\n<main>\n",
        escaped_markup(title), palette_css(Theme::light), palette_css(Theme::dark), palette_css(Theme::light),
        read_text(asset("report.css")));
}

std::string number_markup(double value, std::string_view unit) {
    return fmt::format("<span class=\"n\" data-value=\"{}\">{}{}{}</span>", shortest(value),
                       format_number(value, 4, true), unit.empty() ? "" : "\u2009", escaped_markup(unit));
}

}  // namespace fp8lab
