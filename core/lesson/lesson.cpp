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

}  // namespace fp8lab
