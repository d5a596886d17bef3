// The lesson of a lab: assets/text/<id>.md, Markdown in which [words](amax) links to a term of the glossary.
#pragma once

#include <string>
#include <string_view>

namespace fp8lab {

// The text of the lesson, with the numbers of trainings filled in (core/lesson/runs.h). Empty: the lab has none.
// Throws input_error where it names a number that there is not.
std::string lesson_of(std::string_view lab);

// The text without links: [words](amax) and ![words](picture) become their words. The other marks stay.
std::string without_links(std::string_view markdown);

}  // namespace fp8lab
