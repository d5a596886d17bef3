#include "app/cli/list_entries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/lesson/claim.h"
#include "core/lesson/glossary.h"
#include "core/lesson/lesson.h"
#include "labs/lab.h"

namespace fp8lab::cli {
namespace {

std::string paragraph(std::string_view heading, std::string_view text) {
    return text.empty() ? "" : fmt::format("\n{}{}\n", heading, text);
}

std::string term_text(const Term& term) {
    return term.term + "\n" + paragraph("", term.text) + paragraph("Why it matters: ", term.why) +
           paragraph("Source: ", term.source) +
           paragraph("Related: ", fmt::format("{}", fmt::join(term.related, ", "))) +
           paragraph("Explains: ", fmt::format("{}", fmt::join(term.explains, ", ")));
}

std::vector<std::string> events_of(const std::vector<Event>& experiment) {
    std::vector<std::string> out;
    for (const Event& event : experiment)
        out.push_back(event.kind == Event::Kind::set ? event.name + "=" + event.value : event.name);
    return out;
}

std::string claim_text(const Claim& claim) {
    const std::string settings = fmt::format("{}", fmt::join(events_of(claim.experiment), ", "));
    return fmt::format("\"{}\"\n{}\nRuling: {}\n{}\n", claim.claim, claim.place(), words_of(claim.ruling),
                       claim.verdict_text()) +
           fmt::format("Experiment: {}, {}\nTo repeat it: fp8lab run --claim {}\n",
                       find_lab(claim.lab).name(), settings.empty() ? "its first state" : settings, claim.id);
}

nlohmann::json claim_json(const Claim& claim) {
    nlohmann::json out = {{"lab", claim.lab},
                          {"claim", claim.claim},
                          {"source", claim.source},
                          {"ruling", words_of(claim.ruling)},
                          {"verdict", claim.verdict_text()},
                          {"experiment", events_of(claim.experiment)},
                          {"findings", nlohmann::json::array()}};
    if (claim.line > 0) out["line"] = claim.line;
    for (const Finding& finding : claim.findings)
        out["findings"].push_back(
            {{"metric", finding.metric}, {"value", finding.value}, {"tolerance", finding.tolerance}});
    return out;
}

}  // namespace

std::vector<ListEntry> lesson_entries() {
    std::vector<ListEntry> out;
    for (const LabEntry& lab : lab_registry()) {
        const std::string markdown = lesson_of(lab.id);
        if (markdown.empty()) continue;
        const std::string text = without_links(markdown);
        const std::string title = text.substr(2, text.find('\n') - 2);  // "# Title"
        out.push_back({std::string(lab.id), lab.mark_before() + title, text, {{"text", text}}});
    }
    return out;
}

std::vector<ListEntry> term_entries() {
    std::vector<ListEntry> out;
    const Glossary glossary = load_glossary();
    for (const Term& term : glossary.terms())
        out.push_back({term.id,
                       term.term + ": " + term.text,
                       term_text(term),
                       {{"term", term.term},
                        {"also", term.also},
                        {"text", term.text},
                        {"why", term.why},
                        {"source", term.source},
                        {"related", term.related},
                        {"explains", term.explains}}});
    return out;
}

std::vector<ListEntry> claim_entries() {
    std::vector<ListEntry> out;
    for (const Claim& claim : load_claims())
        out.push_back({claim.id, fmt::format("{}: \"{}\"", words_of(claim.ruling), claim.claim),
                       claim_text(claim), claim_json(claim)});
    return out;
}

}  // namespace fp8lab::cli
