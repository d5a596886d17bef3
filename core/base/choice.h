// One entry of a menu.
#pragma once

#include <string>

namespace fp8lab {

struct Choice {
    std::string id;     // what --set takes and files hold
    std::string label;  // what the window shows
};

}  // namespace fp8lab
