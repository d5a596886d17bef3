// Any bytes as nvidia-dlfw-inspect's log.
#include <cstdint>

#include "run_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fp8lab::check_run_log({reinterpret_cast<const char*>(data), size});
    return 0;
}
