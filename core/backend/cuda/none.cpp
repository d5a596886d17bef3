// Of a build for the page of a browser (FP8LAB_BROWSER).
#include "core/backend/backend.h"

namespace fp8lab {

std::string gpu_obstacle() { return "In the browser: there is no CUDA here."; }

Result<std::unique_ptr<Backend>> cuda_backend(int) { return Unavailable{gpu_obstacle()}; }

}  // namespace fp8lab
