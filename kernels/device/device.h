// RAII for the CUDA runtime. Errors become Error{backend} with the name of the call and CUDA's message.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fp8lab::cuda {

int multiprocessors();    // of the current GPU
int shared_memory();      // bytes that a block of threads can ask for
bool launches_overlap();  // the GPU has programmatic dependent launch: compute capability 9.0 and above

// Throws Error{backend, what, "..."} unless `status` is success.
void check(cudaError_t status, const char* what);

class Stream {
  public:
    // high: blocks of its kernels start before those of other streams that wait for a multiprocessor.
    enum class Priority { normal, high };
    explicit Stream(Priority priority = Priority::normal);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    cudaStream_t get() const { return stream_; }
    void wait() const;

  private:
    cudaStream_t stream_ = nullptr;
};

class Event {
  public:
    Event();
    ~Event();
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event& operator=(Event&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    void record(cudaStream_t stream);
    void record_in_graph(cudaStream_t stream);  // during a capture: every launch of the graph records it anew
    void wait() const;
    cudaEvent_t get() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};
float elapsed_ms(const Event& from, const Event& to);  // both done

// Device memory; the address is a multiple of 256. Throws Error{backend} with the requested and the free size
// where the memory of the GPU is too small.
class Memory {
  public:
    Memory() = default;
    explicit Memory(std::size_t bytes);
    // A part of another buffer, which must live longer.
    Memory(const Memory& whole, std::size_t offset, std::size_t bytes)
        : pointer_(static_cast<std::byte*>(whole.pointer_) + offset), bytes_(bytes), owned_(false) {}
    ~Memory();
    Memory(Memory&& other) noexcept
        : pointer_(std::exchange(other.pointer_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)),
          owned_(other.owned_) {}
    Memory& operator=(Memory&& other) noexcept {
        std::swap(pointer_, other.pointer_);
        std::swap(bytes_, other.bytes_);
        std::swap(owned_, other.owned_);
        return *this;
    }
    void* get() const { return pointer_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* pointer_ = nullptr;
    std::size_t bytes_ = 0;
    bool owned_ = true;
};

// The call is done when it returns. cudaMemset() and copies from pageable memory are not: they run on the legacy
// stream, with which our streams do not wait, and would land on what a kernel has written meanwhile.
void fill_zeros(void* to, std::size_t bytes);
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_rows_to_device(void* to, std::size_t to_stride, const void* from, std::size_t row_bytes,
                         std::size_t rows);

// `count` values of T, zeroed at the start.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t count) : memory_(count * sizeof(T)), count_(count) {
        fill_zeros(memory_.get(), count * sizeof(T));
    }
    explicit Buffer(std::span<const T> values) : Buffer(values.size()) { upload(values); }
    explicit Buffer(Memory memory)
        : memory_(std::move(memory)), count_(memory_.bytes() / sizeof(T)) {}  // as it is
    T* get() const { return static_cast<T*>(memory_.get()); }
    std::size_t size() const { return count_; }
    void upload(std::span<const T> values) { copy_to_device(get(), values.data(), values.size_bytes()); }
    std::vector<T> download() const {
        std::vector<T> values(count_);
        if (count_ > 0)
            check(cudaMemcpy(values.data(), get(), count_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
        return values;
    }

  private:
    Memory memory_;
    std::size_t count_ = 0;
};

// Page-locked host memory, so that copies to and from the GPU run at the same time as kernels.
template <class T>
class Pinned {
  public:
    explicit Pinned(std::size_t count) : count_(count) {
        check(cudaMallocHost(reinterpret_cast<void**>(&values_), count * sizeof(T)), "cudaMallocHost");
    }
    ~Pinned() { cudaFreeHost(values_); }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    std::span<T> values() const { return {values_, count_}; }

  private:
    T* values_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace fp8lab::cuda
