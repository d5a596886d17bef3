#include "app/window/window.h"

#include "app/window/window_loop.h"

namespace fp8lab {

int run_window(const WindowOptions& options) {
    WindowLoop{options}.run();
    return 0;
}

}  // namespace fp8lab
