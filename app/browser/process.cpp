// What a page knows of itself (FP8LAB_BROWSER).
#include <emscripten/emscripten.h>
#include <emscripten/heap.h>

#include "app/shell/machine.h"

namespace fp8lab {

std::uint64_t resident_bytes() { return emscripten_get_heap_size(); }  // WebAssembly's memory

double process_age_ms() { return emscripten_get_now(); }  // since the page began

}  // namespace fp8lab
