// Where a training of a lab runs. Its setting is "auto", "cpu" or "cuda"; "auto" is the GPU where there is one.
#pragma once

#include <memory>
#include <string_view>

#include "core/backend/backends.h"

namespace fp8lab::live {

// "cpu" or "cuda": where a training that starts now would run, as far as is known before the GPU is first used.
std::string_view backend_of(const Backends& backends, std::string_view setting);

// The backend of a training that was to run on `name`. For the worker: the GPU may take its half second. Only "auto"
// may end on the CPU instead, and only where there is no GPU to be had: then Backends::gpu_reason() says so from here
// on. Throws Error{backend} as Backends::get().
struct ChosenForTraining {
    Backend& backend;
    std::string_view name;
};
ChosenForTraining get_backend(const Backends& backends, std::string_view setting, std::string_view name);

}  // namespace fp8lab::live
