#include "labs/course/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

Error bad_link(const std::string& why) { return input_error("link", why); }

std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+') {
            out += ' ';
        } else if (text[i] == '%') {
            unsigned char byte = 0;
            const auto digits = text.substr(i + 1, 2);
            const auto [end, problem] =
                std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
            if (digits.size() != 2 || end != digits.data() + 2 || problem != std::errc{})
                throw bad_link(fmt::format("'{}' has a % without two hexadecimal digits",
                                           quote_from(std::string(text))));
            out += static_cast<char>(byte);
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::string encoded(std::string_view text) {
    constexpr std::string_view kPlain = "-._~:,";
    std::string out;
    for (const char c : text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letter || kPlain.find(c) != kPlain.npos)
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace

Link parse_link(std::string_view fragment) {
    Link link;
    int opens = 0;
    while (!fragment.empty()) {
        const std::string_view part = fragment.substr(0, fragment.find('&'));
        fragment.remove_prefix(std::min(fragment.size(), part.size() + 1));
        if (part.empty()) continue;
        const std::size_t equals = part.find('=');
        if (equals == part.npos || equals == 0)
            throw bad_link(fmt::format("'{}' is not NAME=VALUE, as lab=L5 is", quote_from(decoded(part))));
        const std::string name = decoded(part.substr(0, equals)), value = decoded(part.substr(equals + 1));
        std::string* const opened = name == "lab"       ? &link.lab
                                    : name == "scene"   ? &link.scene
                                    : name == "present" ? &link.deck
                                                        : nullptr;
        if (opened == nullptr) {
            link.fields.push_back(name + "=" + value);
            continue;
        }
        if (value.empty()) throw bad_link(name + " has no value");
        if (++opens > 1) throw bad_link("has more than one of lab, scene and present");
        *opened = value;
    }
    if (!link.fields.empty() && link.lab.empty())
        throw bad_link(fmt::format("sets '{}', but names no lab", quote_from(link.fields.front())));
    return link;
}

std::string link_text(const Link& link) {
    std::string out;
    const auto add = [&](std::string_view name, std::string_view value) {
        if (!value.empty())
            out += fmt::format("{}{}={}", out.empty() ? "" : "&", encoded(name), encoded(value));
    };
    add("lab", link.lab);
    add("scene", link.scene);
    add("present", link.deck);
    for (const std::string& field : link.fields) {
        const std::size_t equals = field.find('=');
        out += fmt::format("&{}={}", encoded(std::string_view(field).substr(0, equals)),
                           encoded(std::string_view(field).substr(equals + 1)));
    }
    return out;
}

}  // namespace fp8lab
