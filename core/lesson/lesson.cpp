#include "core/lesson/lesson.h"

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/lesson/runs.h"

namespace fp8lab {
namespace {

std::string text_of(std::string_view lab) {
    try {
        return read_text(asset("text/" + std::string(lab) + ".md"));
    } catch (const Error&) {
        return {};
    }
}

}  // namespace

std::string lesson_of(std::string_view lab) { return with_runs(text_of(lab)); }

std::string without_links(std::string_view markdown) {
    std::string out;
    while (!markdown.empty()) {
        const auto middle = markdown.find("](");
        const auto open = middle == markdown.npos ? middle : markdown.rfind('[', middle);
        const auto close = middle == markdown.npos ? middle : markdown.find(')', middle);
        if (open == markdown.npos || close == markdown.npos) return out.append(markdown);
        const bool picture = open > 0 && markdown[open - 1] == '!';
        out.append(markdown.substr(0, picture ? open - 1 : open));
        out.append(markdown.substr(open + 1, middle - open - 1));
        markdown.remove_prefix(close + 1);
    }
    return out;
}

}  // namespace fp8lab
