#include "kernels/device/sensors.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

namespace fp8lab::cuda {
namespace {

// NVML's C interface as far as it is used (docs.nvidia.com/deploy/nvml-api). Its header is not part of every
// CUDA toolkit.
using NvmlDevice = struct NvmlDeviceHandle*;
struct NvmlUtilisation {
    unsigned gpu, memory;
};
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;
struct Slowing {
    unsigned long long bit;
    const char* words;
};
constexpr std::array kSlowing = {Slowing{0x4, "power cap"},  // sw_power_cap
                                 Slowing{0x8, "hardware slowdown"}, Slowing{0x20, "heat"},
                                 Slowing{0x40, "heat (hardware)"}, Slowing{0x80, "power brake"}};
constexpr unsigned long long kIdle = 0x1;

struct Nvml {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    template <class Function>
    Function symbol(const char* name) const {
        return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
    }
    int (*init)() = symbol<int (*)()>("nvmlInit_v2");
    int (*handle)(const char*, NvmlDevice*) =
        symbol<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
    int (*clock)(NvmlDevice, int,
                 unsigned*) = symbol<int (*)(NvmlDevice, int, unsigned*)>("nvmlDeviceGetClockInfo");
    int (*power)(NvmlDevice, unsigned*) = symbol<int (*)(NvmlDevice, unsigned*)>("nvmlDeviceGetPowerUsage");
    int (*limit)(NvmlDevice,
                 unsigned*) = symbol<int (*)(NvmlDevice, unsigned*)>("nvmlDeviceGetEnforcedPowerLimit");
    int (*temperature)(NvmlDevice, int,
                       unsigned*) = symbol<int (*)(NvmlDevice, int, unsigned*)>("nvmlDeviceGetTemperature");
    int (*reasons)(NvmlDevice, unsigned long long*) =
        symbol<int (*)(NvmlDevice, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    int (*utilisation)(NvmlDevice, NvmlUtilisation*) =
        symbol<int (*)(NvmlDevice, NvmlUtilisation*)>("nvmlDeviceGetUtilizationRates");
    int (*driver)(char*, unsigned) = symbol<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    bool works = init && handle && clock && init() == 0;
};
// Never closed: threads of the driver may outlive any place that could.
const Nvml& nvml() {
    static const Nvml one;
    return one;
}

double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

}  // namespace

std::string driver_version() {
    std::array<char, 96> text{};
    if (nvml().works && nvml().driver && nvml().driver(text.data(), text.size()) == 0) return text.data();
    std::ifstream proc("/proc/driver/nvidia/version");
    for (std::string word; proc >> word;)
        if (!word.empty() && word.find_first_not_of("0123456789.") == word.npos &&
            word.find('.') != word.npos)
            return word;
    return "";
}

struct Sensors::Reader {
    NvmlDevice device = nullptr;
    mutable std::mutex mutex;
    std::condition_variable_any wake;
    std::vector<double> sm_mhz, power_w;
    double memory_mhz = 0, hottest_c = 0, limit_w = 0;
    unsigned long long slowed = 0;
    std::jthread thread;

    void read() {
        unsigned value = 0;
        unsigned long long reasons = 0;
        if (nvml().reasons && nvml().reasons(device, &reasons) == 0 && (reasons & kIdle) != 0) return;
        const std::lock_guard lock(mutex);
        slowed |= reasons;
        if (nvml().clock(device, kSmClock, &value) == 0) sm_mhz.push_back(value);
        if (nvml().clock(device, kMemoryClock, &value) == 0) memory_mhz = value;
        constexpr double kMilli = 1e-3;
        if (nvml().power && nvml().power(device, &value) == 0) power_w.push_back(value * kMilli);
        if (nvml().limit && nvml().limit(device, &value) == 0) limit_w = value * kMilli;
        if (nvml().temperature && nvml().temperature(device, kGpuTemperature, &value) == 0)
            hottest_c = std::max(hottest_c, static_cast<double>(value));
    }
    void serve(const std::stop_token& stop) {
        constexpr auto kPause = std::chrono::milliseconds(50);
        std::mutex sleeping;
        std::unique_lock lock(sleeping);
        while (!stop.stop_requested()) {
            read();
            wake.wait_for(lock, stop, kPause, [] { return false; });
        }
    }
};

Sensors::Sensors(int cuda_device) : reader_(std::make_unique<Reader>()) {
    std::array<char, 64> bus{};
    if (!nvml().works ||
        cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), cuda_device) != cudaSuccess)
        return;
    if (nvml().handle(bus.data(), &reader_->device) != 0) return;
    reader_->thread =
        std::jthread([reader = reader_.get()](const std::stop_token& stop) { reader->serve(stop); });
}
Sensors::~Sensors() = default;

GridClocks Sensors::seen() const {
    const std::lock_guard lock(reader_->mutex);
    GridClocks clocks;
    const std::vector<double>& mhz = reader_->sm_mhz;
    if (mhz.empty()) return clocks;
    clocks.sm_mhz_low = *std::ranges::min_element(mhz);
    clocks.sm_mhz_high = *std::ranges::max_element(mhz);
    clocks.sm_mhz_median = median_of(mhz);
    clocks.memory_mhz = reader_->memory_mhz;
    clocks.power_w = median_of(reader_->power_w);
    clocks.power_limit_w = reader_->limit_w;
    clocks.hottest_c = reader_->hottest_c;
    for (const Slowing& slowing : kSlowing)
        if (reader_->slowed & slowing.bit)
            clocks.slowed_by += (clocks.slowed_by.empty() ? "" : ", ") + std::string(slowing.words);
    return clocks;
}

int Sensors::utilisation() const {
    NvmlUtilisation rates{};
    if (!reader_->device || !nvml().utilisation || nvml().utilisation(reader_->device, &rates) != 0)
        return -1;
    return static_cast<int>(rates.gpu);
}

}  // namespace fp8lab::cuda
