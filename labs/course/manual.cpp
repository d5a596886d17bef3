#include "labs/course/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/formats/format.h"
#include "core/lesson/glossary.h"
#include "core/run/modes.h"
#include "core/run/rules.h"
#include "core/scaling/recipe_keys.h"
#include "core/scaling/recipe_lists.h"
#include "labs/course/deck_pages.h"
#include "labs/lab.h"

namespace fp8lab {
namespace {

std::string row(std::initializer_list<std::string> cells) {
    std::string out = "|";
    for (const std::string& cell : cells) out += " " + cell + " |";
    return out + "\n";
}

std::string table(std::initializer_list<std::string> heads) {
    std::string out = row(heads) + "|";
    for (std::size_t i = 0; i < heads.size(); ++i) out += "---|";
    return out + "\n";
}

std::string place(std::string_view id, std::string_view words) {
    return fmt::format("[{}](place:{})", words, id);
}

ManualPage labs_page() {
    std::string text =
        "# Labs\n\nA lab has a number or a word as its name: `fp8lab --lab L5` and `fp8lab run delayed` mean "
        "the same lab.\n\n" +
        table({"lab", "word", "question", "minutes", "after"});
    for (const LabEntry& lab : lab_registry())
        text += row({place("lab-" + std::string(lab.id),
                           plain_markdown(lab.mark_before()) + plain_markdown(lab.title)),
                     fmt::format("`{}`", lab.id), plain_markdown(lab.question), std::to_string(lab.minutes),
                     std::string(lab.after)});
    return {"lists/labs", "Labs", text};
}

ManualPage exercises_page() {
    std::string text =
        "# Exercises\n\nEach asks for a prediction first. `fp8lab list exercises` prints this list.\n\n";
    for (const LabEntry& entry : lab_registry()) {
        const auto lab = entry.make();
        if (lab->exercises().empty()) continue;
        text += fmt::format("## {}{}\n\n", plain_markdown(entry.mark_before()), plain_markdown(entry.title));
        for (const Exercise& exercise : lab->exercises())
            text += fmt::format("- **{} {}**: {}\n", plain_markdown(exercise.id),
                                plain_markdown(exercise.title), plain_markdown(exercise.question));
        text += "\n";
    }
    return {"lists/exercises", "Exercises", text};
}

ManualPage recipes_page() {
    std::string text =
        "# Recipes\n\nWhat `--recipe` takes. Options follow after colons, as in "
        "`delayed:history=16:margin=1`; [Options of a recipe](lists/options) lists them.\n\n" +
        table({"recipe", "what it is", "x and w", "dy", "trains"});
    for (const auto& [recipe, listed, trains, recommended] : recipe_rows())
        text += row({place("recipe-" + recipe.name, "`" + recipe.name + "`"), plain_markdown(recipe.summary),
                     std::string(recipe.fwd->label), std::string(recipe.bwd->label), trains ? "yes" : "no"});
    return {"lists/recipes", "Recipes", text};
}

// The names of the recipes that take the option; "all".
std::string takers(const RecipeKey& key) {
    std::string out;
    bool all = true;
    for (const RecipeRow& row : recipe_rows()) {
        if (key.applies(row.recipe))
            out += fmt::format("{}`{}`", out.empty() ? "" : ", ", row.recipe.name);
        else
            all = false;
    }
    return all ? "all" : out;
}

ManualPage options_page() {
    std::string text =
        "# Options of a recipe\n\nEach is `name=value` behind a colon, as in `current:bwd=e4m3:wide=last`. "
        "An option "
        "that a recipe does not have is refused, and the message lists those that it has.\n\n" +
        table({"option", "values", "recipes"});
    for (const RecipeKey& key : recipe_keys()) {
        std::string values = key.valid;
        for (std::size_t at = 0; (at = values.find('|', at)) != values.npos;) values.replace(at, 1, ", ");
        text += row({fmt::format("`{}`", key.name), plain_markdown(values), takers(key)});
    }
    return {"lists/options", "Options of a recipe", text};
}

// The smallest values of all formats are powers of two; INT8's is 1.
std::string power(double value) { return power_of_two(static_cast<int>(std::log2(value))); }

ManualPage formats_page() {
    std::string text =
        "# Formats\n\nThe facts of each number format, computed from its row in the program's table. `fp8lab "
        "formats` "
        "prints more of them.\n\n" +
        table(
            {"format", "bits", "exponent, mantissa", "largest", "smallest normal", "smallest", "NaN codes"});
    for (const FormatInfo& format : formats())
        text += row({place("format-" + std::string(format.name), fmt::format("`{}`", format.name)),
                     std::to_string(width_bits(format)),
                     fmt::format("{}, {}", format.exponent_bits, format.mantissa_bits),
                     format_number(max_finite(format), max_finite(format) < 1e6 ? 6 : 4),
                     power(min_normal(format)), power(min_subnormal(format)),
                     group_thousands(count_codes(format).nans)});
    return {"lists/formats", "Formats", text};
}

// The number of a finding that is only hinted at has a question mark.
bool is_of(const RunRule& rule, const FailureMode& mode) {
    return rule.number.substr(0, rule.number.find('?')) == mode.id;
}

ManualPage modes_page() {
    std::string text =
        "# Modes of failure\n\nFP8 training fails in these ways. The run doctor, `fp8lab watch`, and the "
        "clinic, [L16](lab:clinic), number them alike. The doctor reads a log of tensors, in which some of "
        "them do "
        "not "
        "show; [Read the run doctor](how-to/doctor) has a run.\n\n" +
        table({"mode", "what it is", "what the doctor finds of it"});
    for (const FailureMode& mode : failure_modes()) {
        std::string found;
        for (const RunRule& rule : run_rules())
            if (is_of(rule, mode)) found += (found.empty() ? "" : "; ") + plain_markdown(rule.name);
        text += row({std::string(mode.id), plain_markdown(mode.words), found.empty() ? "nothing" : found});
    }
    text +=
        "\n## What the doctor finds\n\nIn the order in which rules are tried. Of those above \"" +
        plain_markdown(std::ranges::find(run_rules(), false, &RunRule::one_of)->name) +
        "\" a tensor has at most one, the first that holds; the others are told beside it. Steps are those "
        "that were logged. The limits were set on small runs, so a finding is a reason to look.\n";
    for (const RunRule& rule : run_rules()) {
        text += fmt::format("\n### {}\n\n", plain_markdown(rule.name));
        if (!rule.number.empty())
            text += rule.number.ends_with("?") ? fmt::format("A hint at mode {}. ", rule.number.front())
                                               : fmt::format("Mode {}. ", rule.number);
        text += fmt::format("{} One change that treats it: {}.\n", condition_of(rule),
                            plain_markdown(rule.treatment));
    }
    return {"lists/modes", "Modes of failure", text};
}

}  // namespace

std::string plain_markdown(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("\\`*_[]<>|#&~").find(c) != std::string_view::npos) out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

ManualPage terms_page() {
    std::string text = "# Glossary\n";
    const Glossary glossary = load_glossary();
    for (const Term& term : glossary.terms()) {
        text += fmt::format("\n### {}\n\n{}", place("term-" + term.id, plain_markdown(term.term)),
                            plain_markdown(term.text));
        if (!term.why.empty()) text += " " + plain_markdown(term.why);
        if (!term.source.empty()) text += " Source: " + plain_markdown(term.source);
        std::string related;
        for (const std::string& id : term.related)
            related += fmt::format("{}[{}]({})", related.empty() ? "" : ", ",
                                   plain_markdown(glossary.find(id)->term), id);
        text += "\n\nSee also: " + related + "\n";
    }
    return {"lists/terms", "Glossary", text};
}

std::vector<ManualPart> manual() {
    std::vector<ManualPart> parts = written_manual();
    parts.push_back(lectures_part());
    parts.push_back(
        {"lists",
         "Reference",
         "Written by the program from its own tables.",
         {labs_page(), exercises_page(), recipes_page(), options_page(), formats_page(), modes_page()}});
    return parts;
}

const ManualPage* find_page(const std::vector<ManualPart>& parts, std::string_view id) {
    for (const ManualPart& part : parts)
        for (const ManualPage& page : part.pages)
            if (page.id == id) return &page;
    return nullptr;
}

}  // namespace fp8lab
