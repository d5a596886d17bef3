// The manual as it is written: Markdown in assets/docs/manual, in the order of its index.json,
//
//   {"machine": "AMD EPYC, 2 cores, 2026-11-28",
//    "parts": [{"id": "how-to", "title": "How to", "about": "One question per page.", "pages": ["inspect", ...]}]}
//
// where the page "how-to/inspect" is manual/how-to/inspect.md. What is generated from the program stands behind these pages
// (labs/course/manual.h). In a page
//
//   [amax](amax)                      links to a term of the glossary
//   [Plan memory](how-to/memory)      links to a page
//   [L5](lab:delayed)                 links to a lab
//   [31.5](seen:metrics/sqnr_db)      is a number that the command above it prints: the path in its JSON
//   [2.6](seen:arms/1/gap_pct~1.5)    the same, where another machine may differ by 1.5: of a training
//   {runs L8 delayed gap_pct mean}    is a number of ten trainings (core/lesson/runs.h)
//   [0.25](published:arXiv-2412.19437)  is a number that others have published there
//
// A block ```sh is commands, which a test runs page by page in an empty folder. "```sh exit=2" ends with that code.
// "```sh needs=X" needs torch or no-gpu, without which the test leaves it out, or a model or exercises, of which the test
// has some. A block ```text behind it has lines that the command prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

struct ManualPage {
    std::string id;     // "how-to/inspect"
    std::string title;  // its first heading
    std::string text;   // Markdown, with that heading
};

struct ManualPart {
    std::string id, title, about;
    std::vector<ManualPage> pages;
};

// Throws input_error naming the file: the index or a page is missing or cannot be read, a page without a heading.
std::vector<ManualPart> written_manual();

// A number in a page: where it stands in the JSON of the command, and how far it may be off.
struct SeenNumber {
    std::string path;                 // "arms/1/gap_pct"
    std::optional<double> tolerance;  // none: half a unit of the last digit that is shown
};
// Of a link; none: it is no number.
std::optional<SeenNumber> seen_number(std::string_view link);

// What stands above a block of code, by what stands behind its fence: "Needs PyTorch."; empty: nothing.
std::string code_note(std::string_view info);

// Where a link leads in the window and in HTML alike.
inline constexpr std::string_view kSeenLink = "seen:", kLabLink = "lab:", kPlaceLink = "place:",
                                  kPublishedLink = "published:";
// Words that are no control: a number, or a place that others link to ("place:term-amax").
bool is_plain_link(std::string_view link);

}  // namespace fp8lab
