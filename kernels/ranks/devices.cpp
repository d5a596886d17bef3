#include "kernels/ranks/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "kernels/device/device.h"

namespace fp8lab::cuda {

void check_devices(const std::vector<int>& devices) {
    int count = 0;
    check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    cudaDeviceProp first{};
    for (const int device : devices) {
        if (device < 0 || device >= count)
            throw usage_error("--devices",
                              fmt::format("there is no GPU {}; {} found, counted from 0", device, count));
        if (std::ranges::count(devices, device) > 1)
            throw usage_error("--devices", fmt::format("GPU {} is named twice", device));
        cudaDeviceProp now{};
        check(cudaGetDeviceProperties(&now, device), "cudaGetDeviceProperties");
        if (device == devices.front()) first = now;
        if (now.major != first.major || now.minor != first.minor)
            throw usage_error("--devices", fmt::format("GPU {} is sm_{}{}, GPU {} sm_{}{}", device, now.major,
                                                       now.minor, devices.front(), first.major, first.minor));
    }
}

}  // namespace fp8lab::cuda
