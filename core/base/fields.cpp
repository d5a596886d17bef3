#include "core/base/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/base/units.h"

namespace fp8lab {

namespace {

using nlohmann::json;

std::string range_text(const Field& field) { return shortest(field.min) + " to " + shortest(field.max); }

template <class T>
T parse_number(const Field& field, std::string_view text) {
    T value{};
    if (!read_number(text, value))
        throw usage_error(field.info.name,
                          fmt::format("'{}' is not a number; valid: {}", text, range_text(field)));
    if (!(value >= static_cast<T>(field.min) && value <= static_cast<T>(field.max)))
        throw usage_error(field.info.name,
                          fmt::format("{} is out of range; valid: {}", text, range_text(field)));
    return value;
}

bool parse_bool(const Field& field, std::string_view text) {
    if (text == "1" || text == "true" || text == "on") return true;
    if (text == "0" || text == "false" || text == "off") return false;
    throw usage_error(field.info.name, fmt::format("'{}' is not a switch; valid: on off", text));
}

const Field& known_field(std::span<const Field> fields, std::string_view name) {
    const Field* const field = find_field(fields, name);
    if (field == nullptr)
        throw unknown_name("--set", "field", name, fields, [](const Field& f) { return f.info.name; });
    return *field;
}

// A copy of a field's value. A text would not do: what code has stored may be out of the field's range, which
// set_field() refuses.
using Value = std::variant<double, int, bool, std::string>;

Value value_of(const Field& field) {
    return std::visit([](const auto* v) { return Value(*v); }, field.value);
}

void put_back(const Field& field, Value value) noexcept {
    std::visit([&](auto* v) { *v = std::move(std::get<std::remove_pointer_t<decltype(v)>>(value)); },
               field.value);
}

// A JSON value as the text that set_field() takes; throws when its type cannot be this field's.
std::string json_text(const Field& field, const json& value) {
    const auto wrong_type = [&](std::string_view expected) {
        return input_error(field.info.name, fmt::format("expected {}, got {}", expected, value.type_name()));
    };
    if (std::holds_alternative<bool*>(field.value)) {
        if (!value.is_boolean()) throw wrong_type("true or false");
        return value.get<bool>() ? "on" : "off";
    }
    if (std::holds_alternative<std::string*>(field.value)) {
        if (!value.is_string()) throw wrong_type("a string");
        return value.get<std::string>();
    }
    if (std::holds_alternative<int*>(field.value)) {
        if (!value.is_number_integer()) throw wrong_type("an integer");
        return std::to_string(value.get<std::int64_t>());
    }
    if (!value.is_number()) throw wrong_type("a number");
    return shortest(value.get<double>());
}

}  // namespace

Field number(FieldInfo info, double* value, double min, double max, bool logarithmic) {
    return {std::move(info), value, min, max, logarithmic, {}};
}
Field integer(FieldInfo info, int* value, int min, int max, bool logarithmic) {
    return {std::move(info), value, static_cast<double>(min), static_cast<double>(max), logarithmic, {}};
}
Field toggle(FieldInfo info, bool* value) { return {std::move(info), value, 0, 1, false, {}}; }
Field choice(FieldInfo info, std::string* value, std::vector<Choice> choices) {
    return {std::move(info), value, 0, 0, false, std::move(choices)};
}
Field text(FieldInfo info, std::string* value) { return {std::move(info), value, 0, 0, false, {}}; }

const Field* find_field(std::span<const Field> fields, std::string_view name) {
    const auto named = [&](const Field& field) { return field.info.name == name; };
    const auto it = std::ranges::find_if(fields, named);
    return it == fields.end() ? nullptr : &*it;
}

std::string field_text(const Field& field) {
    struct Visitor {
        std::string operator()(const double* v) const { return shortest(*v); }
        std::string operator()(const int* v) const { return std::to_string(*v); }
        std::string operator()(const bool* v) const { return *v ? "on" : "off"; }
        std::string operator()(const std::string* v) const { return *v; }
    };
    return std::visit(Visitor{}, field.value);
}

void set_field(const Field& field, std::string_view text) {
    struct Visitor {
        const Field& field;
        std::string_view text;
        void operator()(double* v) const { *v = parse_number<double>(field, text); }
        void operator()(int* v) const { *v = parse_number<int>(field, text); }
        void operator()(bool* v) const { *v = parse_bool(field, text); }
        void operator()(std::string* v) const {
            const auto is_chosen = [&](const Choice& c) { return c.id == text; };
            if (!field.choices.empty() && std::none_of(field.choices.begin(), field.choices.end(), is_chosen))
                throw unknown_name(field.info.name, "value", text, field.choices,
                                   [](const Choice& c) { return c.id; });
            *v = std::string(text);
        }
    };
    std::visit(Visitor{field, text}, field.value);
}

void set_field(std::span<const Field> fields, std::string_view assignment) {
    const auto equals = assignment.find('=');
    if (equals == std::string_view::npos)
        throw usage_error("--set", fmt::format("'{}' is not FIELD=VALUE", assignment));
    set_field(known_field(fields, assignment.substr(0, equals)), assignment.substr(equals + 1));
}

json fields_to_json(std::span<const Field> fields) {
    json object = json::object();
    for (const Field& field : fields)
        object[field.info.name] = std::visit([](const auto* v) { return json(*v); }, field.value);
    return object;
}

void fields_from_json(std::span<const Field> fields, const json& values) {
    if (!values.is_object()) throw input_error("state", "expected an object");
    std::vector<Value> before;
    for (const Field& field : fields) before.push_back(value_of(field));
    try {
        for (const auto& [name, value] : values.items()) {
            const Field& field = known_field(fields, name);
            set_field(field, json_text(field, value));
        }
    } catch (const Error& error) {
        for (std::size_t i = 0; i < fields.size(); ++i) put_back(fields[i], std::move(before[i]));
        throw input_error(error.where(), error.why());
    }
}

}  // namespace fp8lab
