#include "labs/set_fields.h"

#include <fmt/format.h>

#include <map>

#include "core/base/error.h"

namespace fp8lab {
namespace {

std::map<std::string, std::string> texts_of(Lab& lab) {
    std::map<std::string, std::string> texts;
    for (const Field& field : lab.fields()) texts[field.info.name] = field_text(field);
    return texts;
}

}  // namespace

void set_fields(Lab& lab, std::span<const std::string> assignments) {
    for (const std::string& assignment : assignments) set_field(lab.fields(), assignment);
    const auto asked = texts_of(lab);
    lab.update();
    const auto taken = texts_of(lab);
    for (const std::string& assignment : assignments) {
        const std::string name = assignment.substr(0, assignment.find('='));
        if (asked.at(name) != taken.at(name))
            throw usage_error(name,
                              fmt::format("{} is not possible with the other settings; the lab would use {}",
                                          asked.at(name), taken.at(name)));
    }
}

void require_steps(const Lab& lab) {
    if (!lab.live()) throw usage_error("--steps", fmt::format("lab {} does not train", lab.info().id));
}

}  // namespace fp8lab
