#include "tests/simulator/runtime.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

namespace fp8lab::simulator {
namespace {

std::unordered_map<void*, std::size_t> allocations;
std::size_t in_use = 0;
constexpr std::size_t kMemory = std::size_t{8} << 30;

struct EventState {
    std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
};

void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
               std::size_t rows) {
    for (std::size_t r = 0; r < rows; ++r)
        std::memmove(static_cast<std::byte*>(to) + r * to_pitch,
                     static_cast<const std::byte*>(from) + r * from_pitch, width);
}

}  // namespace
}  // namespace fp8lab::simulator

using namespace fp8lab::simulator;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    *properties = {};
    std::strcpy(properties->name, "simulator");
    properties->major = 9;
    properties->multiProcessorCount = 1;
    properties->totalGlobalMem = kMemory;
    properties->l2CacheSize = 1 << 20;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
    *value = which == cudaDevAttrComputeCapabilityMajor         ? 9
             : which == cudaDevAttrMultiProcessorCount          ? 1
             : which == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 227 << 10
                                                                : 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int, int) {
    *id = 0;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
    *version = 13000;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
    *function = nullptr;
    if (result) *result = cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "an error"; }
const char* cudaGetErrorName(cudaError_t) { return "error"; }

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
    if (in_use + bytes > kMemory) return cudaErrorMemoryAllocation;
    *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*pointer) return cudaErrorMemoryAllocation;
    std::memset(*pointer, 0xFF, bytes);
    allocations[*pointer] = bytes;
    in_use += bytes;
    return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
    const auto known = allocations.find(pointer);
    if (known == allocations.end()) return cudaErrorInvalidValue;
    in_use -= known->second;
    allocations.erase(known);
    std::free(pointer);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
    *total = kMemory;
    *available = kMemory - in_use;
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
    *pointer = std::malloc(bytes);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* pointer) {
    std::free(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
    std::memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
    cudaMemsetParams memset{};
    memset.dst = to;
    memset.value = static_cast<unsigned>(value);
    memset.elementSize = memset.height = 1;
    memset.width = bytes;
    enqueue([=] { std::memset(to, value, bytes); }, &memset);
    return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t rows,
                              cudaStream_t) {
    enqueue([=] {
        for (std::size_t r = 0; r < rows; ++r)
            std::memset(static_cast<std::byte*>(to) + r * pitch, value, width);
    });
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
    std::memmove(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
    enqueue([=] { std::memmove(to, from, bytes); });
    return cudaSuccess;
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t rows, cudaMemcpyKind) {
    copy_rows(to, to_pitch, from, from_pitch, width, rows);
    return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind, cudaStream_t) {
    enqueue([=] { copy_rows(to, to_pitch, from, from_pitch, width, rows); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
    *stream = handle<cudaStream_t>(new int(0));
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete reinterpret_cast<int*>(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return captures() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = handle<cudaEvent_t>(new EventState);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete reinterpret_cast<EventState*>(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    enqueue([=] { *reinterpret_cast<EventState*>(event) = {}; });
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
    const auto time = [](cudaEvent_t event) { return reinterpret_cast<EventState*>(event)->time; };
    *ms = std::chrono::duration<float, std::milli>(time(to) - time(from)).count();
    return cudaSuccess;
}

}  // extern "C"
