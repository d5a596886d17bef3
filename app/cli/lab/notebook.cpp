#include "app/cli/lab/notebook.h"

#include <fmt/format.h>

#include <cmath>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/python/notebook.h"

namespace fp8lab::cli {
namespace {

// Inside a table of Markdown.
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (c == '|')
            out += "\\|";
        else
            out += c == '\n' || c == '\r' ? ' ' : c;
    return out;
}

std::string question(const LabInfo& info, const std::string& command) {
    return fmt::format(
        "# {}{}\n\n**{}**\n\n{}\n\nWritten by FP8 Lab {}: `{}`. It needs PyTorch, and runs on a CPU.",
        info.mark_before(), info.short_title, info.title, info.question, FP8LAB_VERSION, command);
}

std::string state(const std::vector<Field>& fields) {
    std::string out = "## The state\n\n| field | value |\n|---|---|\n";
    for (const Field& field : fields)
        if (!field.info.looks)
            out += fmt::format("| {} (`{}`) | {} |\n", cell(field.info.label), field.info.name,
                               cell(field_text(field)));
    return out;
}

std::string measured(const Lab& lab) {
    const std::string device = lab.device().empty() ? cpu_backend()->device().name : lab.device();
    std::string out = fmt::format("## What the lab measured\n\n{}, {}.\n\n| metric | value |\n|---|---|\n",
                                  device, to_string(lab.provenance()));
    for (const Metric& metric : lab.metrics()) {
        const std::string value = !metric.text.empty()          ? metric.text
                                  : std::isfinite(metric.value) ? format_number(metric.value)
                                                                : "-";
        out += fmt::format("| `{}` | {} |\n", metric.name,
                           cell(value + (metric.unit.empty() || value == "-" ? "" : " " + metric.unit)));
    }
    return out;
}

}  // namespace

std::string lab_notebook(Lab& lab, const std::string& command) {
    Notebook notebook;
    for (const std::string& text : lab.recipes()) notebook.recipes.push_back(parse_recipe(text));
    const LabInfo& info = lab.info();
    if (notebook.recipes.empty())
        throw usage_error("--notebook",
                          fmt::format("the state of {} has no recipe to write code for{}{}", info.name(),
                                      info.no_code.empty() ? "" : ": ", info.no_code));
    notebook.opening = {question(lab.info(), command), state(lab.fields()), measured(lab)};
    return notebook_json(notebook);
}

}  // namespace fp8lab::cli
