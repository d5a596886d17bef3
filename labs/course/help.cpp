#include "labs/course/help.h"

#include <algorithm>

#include "core/base/units.h"

namespace fp8lab {
namespace {

std::string label_of(const Field& field, const std::string& value) {
    for (const Choice& choice : field.choices)
        if (choice.id == value) return choice.label;
    if (auto* const* real = std::get_if<double*>(&field.value)) return format_number(**real, 4, true);
    return value;
}

// "0.0001 to 10000, default 1"; of choices, all of them.
std::string values_of(const Field& field, const Field* as_it_starts) {
    const std::string unit = field.info.unit.empty() ? "" : " " + field.info.unit;
    std::string text;
    if (!field.choices.empty()) {
        for (const Choice& choice : field.choices) text += (text.empty() ? "" : ", ") + choice.label;
    } else if (std::holds_alternative<bool*>(field.value)) {
        text = "on or off";
    } else if (field.max > field.min) {
        text = format_number(field.min, 4, true) + " to " + format_number(field.max, 4, true) + unit;
    }
    if (as_it_starts == nullptr) return text;
    const std::string value = field_text(*as_it_starts);
    if (value.empty()) return text;
    return text + (text.empty() ? "default " : "; default ") + label_of(*as_it_starts, value);
}

void add_term(ControlHelp& help, const Term* term) {
    if (term == nullptr) return;
    help.term = term->id;
    help.term_text = term->text;
    help.why = term->why;
}

}  // namespace

const Field* field_of(std::string_view lab, std::span<const Field> fields, std::string_view probe) {
    const auto named = [&](std::string_view name) {
        name = name.substr(0, name.find('.'));
        if (const Field* field = find_field(fields, name)) return field;
        while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
        return find_field(fields, name);
    };
    if (probe.starts_with(std::string(lab) + "."))
        if (const Field* field = named(probe.substr(lab.size() + 1))) return field;
    return named(probe);  // also of a field that has the name of its lab
}

std::optional<ControlHelp> control_help(Lab* lab, std::string_view probe, const Glossary& glossary) {
    ControlHelp help;
    if (const ControlNote* note = glossary.control(probe)) {
        help.title = note->label;
        help.what = note->help;
        add_term(help, glossary.find(note->term));
        return help;
    }
    if (lab == nullptr) return std::nullopt;
    const std::string_view id = lab->info().id;
    const auto fields = lab->fields();
    const Field* field = field_of(id, fields, probe);
    if (field == nullptr) return std::nullopt;
    const auto defaults = lab->defaults();
    help.title = field->info.label;
    help.te_name = field->info.te_name;
    help.what = field->info.help;
    help.values = values_of(*field, find_field(defaults, field->info.name));
    add_term(help, glossary.field(id, field->info.name));
    return help;
}

}  // namespace fp8lab
