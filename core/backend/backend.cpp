#include "core/backend/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>

#include "core/backend/infer_case.h"
#include "core/base/error.h"
#include "core/formats/codec.h"
#include "core/threads/parallel.h"
#include "core/trainer/cpu_trainer.h"

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
    std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec, const Preparation&) override {
        return make_cpu_trainer(spec);
    }
};

Error needs_gpu(const char* bench) {
    return {ErrorKind::backend, fmt::format("bench {}", bench),
            "measures a GPU; the backend here is the CPU"};
}

std::atomic<int> chosen_gpu = 0;

}  // namespace

std::vector<SelfCheck> Backend::self_checks(bool full) { return codec_self_checks(full); }
std::vector<Timed> Backend::time_products(std::array<int, 3>, int) { throw needs_gpu("gemm"); }
std::vector<BlockTimes> Backend::time_blocks(const TrainSpec&, int) { throw needs_gpu("blocks"); }
std::vector<Timed> Backend::time_casts(std::array<int, 2>, int) { throw needs_gpu("cast"); }
std::vector<AccumulationError> Backend::accumulation_errors() { throw needs_gpu("accumulate"); }
std::vector<CollectiveTime> Backend::time_collectives(const std::vector<int>&, const std::vector<double>&,
                                                      int) {
    throw needs_gpu("comm");
}
std::unique_ptr<TokenEngine> Backend::make_token_engine(const ServedModel&) {
    throw Error(ErrorKind::backend, "tokens", "are read by a GPU; the backend here is the CPU");
}
InferTime Backend::time_infer(const InferCase&, int) { throw needs_gpu("infer"); }
std::vector<double> Backend::allocated_bytes(const TrainSpec&) {
    throw Error(ErrorKind::backend, "allocated bytes", "the CPU has no memory of its own; a GPU is needed");
}

GemmGrid Backend::measure_grid(const GridOptions&, const GridProgress&) { throw needs_gpu("gemm --grid"); }
LayerTimes Backend::measure_layer(const LayerProbe&, const LayerProgress&) {
    throw Error(ErrorKind::backend, "measure", "the CPU has no times of FP8 products; a GPU has");
}

std::unique_ptr<Backend> cpu_backend() { return std::make_unique<CpuBackend>(); }

void set_gpu(int device) { chosen_gpu = device; }
int gpu() { return chosen_gpu; }

ChosenBackend choose_backend(std::string_view name, int device) {
    constexpr std::array<std::string_view, 3> kNames = {"auto", "cpu", "cuda"};
    if (std::ranges::find(kNames, name) == kNames.end())
        throw unknown_name("--backend", "backend", name, kNames, [](std::string_view n) { return n; });
    if (name == "cpu") return {cpu_backend(), ""};
    auto cuda = cuda_backend(device);
    if (cuda) return {std::move(cuda.value()), ""};
    if (name == "cuda") throw Error(ErrorKind::backend, "--backend cuda", cuda.reason());
    return {cpu_backend(), cuda.reason()};
}

}  // namespace fp8lab
