// What stands behind the "#" of an address that opens the laboratory: a lab with its settings, a scene or a deck.
//
//   lab=L5&history=4&margin=1
//   scene=L05-b-ramp-real      a shipped scene, or one as a line of text (scene.h: f8scene:...)
//   present=lecture-fp8        a shipped deck
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

struct Link {
    std::string lab = {}, scene = {}, deck = {};  // one of them, or none: home
    std::vector<std::string> fields = {};         // of the lab: "history=4"
    bool operator==(const Link&) const = default;
};

// %41 is A and + is a space, as in the query of an address. Throws input_error: a part without "=", a "%" without two
// hexadecimal digits, more than one of lab, scene and present, fields without a lab.
Link parse_link(std::string_view fragment);

// parse_link() of it gives the same link: all but letters, digits and "-._~:," as %XX.
std::string link_text(const Link& link);

}  // namespace fp8lab
