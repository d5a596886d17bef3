#include "kernels/device/device.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace fp8lab::cuda {

void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // a failed launch is reported once
    throw Error(ErrorKind::backend, what,
                fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)));
}

namespace {

int attribute(cudaDeviceAttr which) {  // of the current GPU
    int device = 0, value = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return value;
}

}  // namespace

int multiprocessors() {
    static const int known = attribute(cudaDevAttrMultiProcessorCount);
    return known;
}
int shared_memory() {
    static const int known = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return known;
}
bool launches_overlap() {
    static const bool known = attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
    return known;
}

Stream::Stream(Priority priority) {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                       priority == Priority::high ? greatest : least),
          "cudaStreamCreate");
}
Stream::~Stream() { cudaStreamDestroy(stream_); }
void Stream::wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

Event::Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
Event::~Event() {
    if (event_) cudaEventDestroy(event_);
}
void Event::record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
void Event::record_in_graph(cudaStream_t stream) {
    check(cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal), "cudaEventRecordWithFlags");
}
void Event::wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

float elapsed_ms(const Event& from, const Event& to) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from.get(), to.get()), "cudaEventElapsedTime");
    return ms;
}

Memory::Memory(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    const cudaError_t status = cudaMalloc(&pointer_, bytes);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        std::size_t available = 0, total = 0;
        cudaMemGetInfo(&available, &total);
        throw Error(ErrorKind::backend, "GPU memory",
                    fmt::format("{:.2f} GB were asked for, {:.2f} of {:.2f} GB are free",
                                static_cast<double>(bytes) / 1e9, static_cast<double>(available) / 1e9,
                                static_cast<double>(total) / 1e9));
    }
    check(status, "cudaMalloc");
}
Memory::~Memory() {
    if (pointer_ && owned_) cudaFree(pointer_);
}

namespace {
void wait_for_legacy_stream() { check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize"); }
}  // namespace

void fill_zeros(void* to, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemset(to, 0, bytes), "cudaMemset");
    wait_for_legacy_stream();
}
void copy_to_device(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy to the GPU");
    wait_for_legacy_stream();
}
void copy_rows_to_device(void* to, std::size_t to_stride, const void* from, std::size_t row_bytes,
                         std::size_t rows) {
    if (row_bytes == 0 || rows == 0) return;
    check(cudaMemcpy2D(to, to_stride, from, row_bytes, row_bytes, rows, cudaMemcpyHostToDevice),
          "copy to the GPU");
    wait_for_legacy_stream();
}

}  // namespace fp8lab::cuda
