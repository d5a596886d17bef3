// Decks with times as pages of the manual: what a lecturer prints.
#pragma once

#include <string>

#include "core/lesson/manual/manual.h"
#include "core/lesson/scene.h"

namespace fp8lab {

// The part "lectures": a page for each shipped deck that has times, "lectures/low-precision-90". It says of each scene when
// it begins, what to say, ask and do, and which answer of its vote is right.
ManualPart lectures_part();

// One such page; `name` is the deck's name for --present.
ManualPage lecture_page(const Deck& deck, const std::string& name);

}  // namespace fp8lab
