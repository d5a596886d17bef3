#include "core/backend/backend.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/formats/codec.h"
#include "core/nn/cpu_trainer.h"

namespace fp8lab {
namespace {

// The processor's name as the kernel tells it; "CPU" where it does not.
std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "CPU";
}

class CpuBackend final : public Backend {
  public:
    DeviceInfo device() const override {
        return {fmt::format("{}, {} {}, {}", cpu_name(), threads(), threads() == 1 ? "thread" : "threads",
                            vector_targets().front()),
                Provenance::cpu_emulated};
    }
    std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec) override { return make_cpu_trainer(spec); }
};

}  // namespace

std::unique_ptr<Backend> cpu_backend() { return std::make_unique<CpuBackend>(); }

Result<std::unique_ptr<Backend>> cuda_backend() {
    // The driver first: the CUDA libraries behind our own cost 220 MB, which a machine without a GPU need not
    // pay.
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return Unavailable{"No NVIDIA driver found (libcuda.so.1 is missing)."};
    dlclose(driver);
    constexpr const char* kLibrary = "libfp8lab-cuda.so";
    const auto path = executable_folder() / kLibrary;
    if (!std::filesystem::exists(path))
        return Unavailable{
            fmt::format("This build has no CUDA backend ({} is not beside the executable).", kLibrary)};
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return Unavailable{fmt::format("The CUDA backend does not load ({}).", dlerror())};
    dlclose(library);
    return Unavailable{
        fmt::format("The CUDA backend beside the executable does not fit this build ({}).", kLibrary)};
}

ChosenBackend choose_backend(std::string_view name) {
    constexpr std::array<std::string_view, 3> kNames = {"auto", "cpu", "cuda"};
    if (std::ranges::find(kNames, name) == kNames.end())
        throw unknown_name("--backend", "backend", name, kNames, [](std::string_view n) { return n; });
    if (name == "cpu") return {cpu_backend(), ""};
    auto cuda = cuda_backend();
    if (cuda) return {std::move(cuda.value()), ""};
    if (name == "cuda") throw Error(ErrorKind::backend, "--backend cuda", cuda.reason());
    return {cpu_backend(), cuda.reason()};
}

}  // namespace fp8lab
