// The CUDA backend and the one function that core/backend looks up in this library.
#include "core/backend/backend.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/nn/memory/cpu_memory.h"
#include "kernels/bench/collectives.h"
#include "kernels/bench/grid.h"
#include "kernels/bench/measure.h"
#include "kernels/checks/probe.h"
#include "kernels/checks/self_checks.h"
#include "kernels/device/sensors.h"
#include "kernels/gemm/gemm_cache.h"
#include "kernels/infer/generator.h"
#include "kernels/infer/time.h"
#include "kernels/layers/cudnn.h"
#include "kernels/trainer/many_gpus.h"
#include "kernels/trainer/time_blocks.h"
#include "kernels/trainer/trainer.h"

namespace fp8lab::cuda {
namespace {

std::string dotted(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(int index) : index_(index) {
        check(cudaGetDeviceProperties(&properties_, index), "cudaGetDeviceProperties");
    }

    DeviceInfo device() const override {
        int driver = 0, runtime = 0;
        check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
        check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
        const double gigabytes = static_cast<double>(properties_.totalGlobalMem) / 1e9;
        DeviceInfo info{fmt::format("{}, {:.0f} GB", properties_.name, gigabytes),
                        Provenance::tensor_core,
                        {{"GPU", properties_.name},
                         {"compute capability", fmt::format("{}.{}", properties_.major, properties_.minor)},
                         {"memory", fmt::format("{:.1f} GB", gigabytes)},
                         {"driver supports CUDA", dotted(driver)},
                         {"CUDA runtime", dotted(runtime)},
                         {"cuBLASLt", lt_version_text()},
                         {"attention", cudnn_text()}},
                        static_cast<double>(properties_.totalGlobalMem)};
        if (std::string version = driver_version(); !version.empty())
            info.facts.emplace_back("driver", std::move(version));
        return info;
    }
    std::unique_ptr<Trainer> make_trainer(const TrainSpec& spec, const Preparation& preparation) override {
        // The weights of one arm at a time pass through main memory.
        require_memory("train", cpu_inference_bytes(spec, 1));
        if (!spec.devices.empty()) return make_many_gpu_trainer(spec, preparation);
        return make_cuda_trainer(spec, opened(), Launching::graphs, preparation);
    }
    int devices() const override {
        int count = 0;
        check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
        return count;
    }
    std::vector<Capability> capabilities() override {
        const auto device = opened();
        return probe_capabilities(device->lt, device->stream.get());
    }

    std::vector<SelfCheck> self_checks(bool full) override {
        opened();
        return cuda_self_checks(full);
    }
    std::vector<Timed> time_products(std::array<int, 3> mnk, int repeats) override {
        opened();
        return cuda::time_products(mnk, repeats);
    }
    std::vector<Timed> time_casts(std::array<int, 2> shape, int repeats) override {
        opened();
        return cuda::time_casts(shape, repeats);
    }
    std::vector<CollectiveTime> time_collectives(const std::vector<int>& devices,
                                                 const std::vector<double>& bytes, int repeats) override {
        return cuda::time_collectives(devices, bytes, repeats);
    }
    std::vector<BlockTimes> time_blocks(const TrainSpec& spec, int repeats) override {
        return cuda::time_blocks(spec, opened(), repeats);
    }
    GemmGrid measure_grid(const GridOptions& options, const GridProgress& progress) override {
        opened();
        GemmGrid grid = cuda::measure_grid(options, progress);
        const DeviceInfo info = device();
        grid.device = info.name;
        grid.cublaslt = lt_version_text();
        grid.facts = info.facts;
        return grid;
    }
    LayerTimes measure_layer(const LayerProbe& probe, const LayerProgress& progress) override {
        opened();
        return cuda::measure_layer(probe, progress);
    }
    std::unique_ptr<TokenEngine> make_token_engine(const ServedModel& model) override {
        check(cudaSetDevice(index_), "cudaSetDevice");
        return make_generator(model);
    }
    InferTime time_infer(const InferCase& of, int repeats) override {
        check(cudaSetDevice(index_), "cudaSetDevice");
        return cuda::time_infer(of, repeats);
    }
    std::vector<AccumulationError> accumulation_errors() override {
        opened();
        return cuda::accumulation_errors();
    }
    std::vector<double> allocated_bytes(const TrainSpec& spec) override {
        return cuda::allocated_bytes(spec, opened());
    }

  private:
    // The context, the stream and cuBLASLt cost half a second and hundreds of megabytes: when they are needed
    // first.
    std::shared_ptr<Device> opened() {
        check(cudaSetDevice(index_), "cudaSetDevice");
        const std::lock_guard opening{opening_};
        if (!device_) {
            device_ = std::make_shared<Device>();
            device_->index = index_;
        }
        return device_;
    }

    int index_;
    cudaDeviceProp properties_{};
    std::mutex opening_;
    std::shared_ptr<Device> device_;
};

// Why the GPU cannot be used, or empty.
std::string refusal(int index) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorInsufficientDriver) {
        int driver = 0;
        cudaDriverGetVersion(&driver);
        return fmt::format(
            "The NVIDIA driver is too old: it supports CUDA {}, this program was built for {}.",
            dotted(driver), dotted(CUDART_VERSION));
    }
    if (status != cudaSuccess)
        return fmt::format("CUDA finds no usable GPU ({}).", cudaGetErrorString(status));
    if (index < 0 || index >= count)
        return fmt::format("There is no GPU number {}: {} found, counted from 0.", index, count);
    cudaDeviceProp properties{};
    if (const cudaError_t failed = cudaGetDeviceProperties(&properties, index); failed != cudaSuccess)
        return fmt::format("GPU {} does not answer ({}).", index, cudaGetErrorString(failed));
    // FP8 tensor cores begin with Ada.
    if (properties.major * 10 + properties.minor < 89)
        return fmt::format("{} has compute capability {}.{}; FP8 needs 8.9 or higher.", properties.name,
                           properties.major, properties.minor);
    return "";
}

}  // namespace
}  // namespace fp8lab::cuda

// A new backend on GPU `device`, or null with the reason as a sentence. `version` is the caller's: core's
// types cross this border, so that both must come from one build.
extern "C" fp8lab::Backend* fp8lab_make_backend(int device, const char* version, std::string* reason) {
    using namespace fp8lab;
    try {
        if (std::string_view(version) != FP8LAB_VERSION)
            *reason =
                fmt::format("The CUDA backend is of version {}, the program of {}.", FP8LAB_VERSION, version);
        else
            *reason = cuda::refusal(device);
        if (!reason->empty()) return nullptr;
        return std::make_unique<cuda::CudaBackend>(device).release();
    } catch (const std::exception& error) {
        *reason = fmt::format("The GPU cannot be used: {}.", error.what());
        return nullptr;
    }
}
