// A key as a browser names it, as labs/ui/input.h counts it.
#pragma once

#include <string_view>

namespace fp8lab {

// `key`: KeyboardEvent.key, what it types ("z", "Enter"); `code`: KeyboardEvent.code, its place on a US keyboard ("KeyY").
// Letters go by what they type, whatever the layout: Ctrl Z is the key that says Z. -1: a key that nothing uses.
int key_of(std::string_view key, std::string_view code, bool shift);

// The one character that the key types; 0: it types none ("Enter", a dead key).
unsigned character_of(std::string_view key);

}  // namespace fp8lab
