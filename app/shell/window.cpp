#include "app/shell/window.h"

#include "app/shell/window_loop.h"

namespace fp8lab {

int run_window(const WindowOptions& options) {
    WindowLoop{options}.run();
    return 0;
}

}  // namespace fp8lab
