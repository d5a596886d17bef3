// The manual: what is written (core/lesson/manual/manual.h), and lists that are generated from the tables of the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lesson/manual/manual.h"

namespace fp8lab {

// The pages of written_manual(), then the part "lectures" (labs/course/deck_pages.h) and the part "lists": labs, exercises,
// recipes, their options, formats, modes of failure. Throws as written_manual() does.
std::vector<ManualPart> manual();

// "lists/terms": every term of the glossary, with a place "term-<id>" each. The window has the glossary itself.
ManualPage terms_page();

// A text with the signs that Markdown would take for its own behind a backslash.
std::string plain_markdown(std::string_view text);

// The page with this id; null: none.
const ManualPage* find_page(const std::vector<ManualPart>& parts, std::string_view id);

}  // namespace fp8lab
