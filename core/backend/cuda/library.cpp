// The CUDA backend is a library of its own, loaded when it is asked for.
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "core/backend/backend.h"
#include "core/files/files.h"

namespace fp8lab {
namespace {

constexpr const char* kLibrary = "libfp8lab-cuda.so";

// Beside the executable, or where `cmake --install` puts it; empty: in neither place.
std::filesystem::path library_path() {
    for (const char* folder : {"", "../lib/fp8lab"}) {
        const std::filesystem::path path = executable_folder() / folder / kLibrary;
        std::error_code none;
        if (std::filesystem::exists(path, none)) return path;
    }
    return {};
}

// cuBLASLt is NVIDIA's, so that no package of ours can bring it: then it is said where it comes from.
std::string load_failure(std::string_view why) {
    const bool cublaslt = why.starts_with("libcublasLt.so");
    return fmt::format("The CUDA backend does not load ({}){}.", why,
                       cublaslt ? ": install NVIDIA's package libcublas, or name the folder of cuBLASLt in "
                                  "LD_LIBRARY_PATH"
                                : "");
}

using MakeBackend = Backend* (*)(int device, const char* version, std::string* reason);

}  // namespace

std::string gpu_obstacle() {
    // The driver first: the CUDA libraries behind our own cost 220 MB, which a machine without a GPU need not
    // pay.
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return "No NVIDIA driver found (libcuda.so.1 is missing).";
    dlclose(driver);
    if (!library_path().empty()) return "";
    return fmt::format(
        "There is no CUDA backend here ({} is neither beside the executable nor in ../lib/fp8lab).",
        kLibrary);
}

Result<std::unique_ptr<Backend>> cuda_backend(int device) {
    if (std::string obstacle = gpu_obstacle(); !obstacle.empty()) return Unavailable{std::move(obstacle)};
    const auto path = library_path();
    // Never unloaded: its objects' code and the driver's threads outlive any place that could close it.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return Unavailable{load_failure(dlerror())};
    const auto make = reinterpret_cast<MakeBackend>(dlsym(library, "fp8lab_make_backend"));
    if (!make)
        return Unavailable{
            fmt::format("{} is not the CUDA backend of this program.", path.lexically_normal().string())};
    std::string reason;
    std::unique_ptr<Backend> backend{make(device, FP8LAB_VERSION, &reason)};
    if (!backend) return Unavailable{reason};
    return backend;
}

}  // namespace fp8lab
