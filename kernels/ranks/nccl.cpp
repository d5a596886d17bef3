#include "kernels/ranks/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "kernels/device/library_folders.h"

namespace fp8lab::cuda {
namespace {

// ---- nccl.h
using Comm = void*;
enum Result : int { success = 0, in_progress = 7 };
enum Type : int { uint8 = 1, uint32 = 3, float32 = 7, bfloat16 = 9 };
enum Op : int { sum = 0, max = 2 };
struct Id {
    char internal[128];
};

struct Library {
    std::string why;  // it cannot be used; empty: it can
    int version = 0;
    const char* (*error_string)(Result) = nullptr;
    Result (*get_version)(int*) = nullptr;
    Result (*get_id)(Id*) = nullptr;
    Result (*init)(Comm*, int ranks, Id, int rank) = nullptr;
    Result (*destroy)(Comm) = nullptr;
    Result (*abort)(Comm) = nullptr;
    Result (*async_error)(Comm, Result*) = nullptr;
    Result (*group_start)() = nullptr;
    Result (*group_end)() = nullptr;
    Result (*reduce_scatter)(const void*, void*, std::size_t, Type, Op, Comm, cudaStream_t) = nullptr;
    Result (*all_gather)(const void*, void*, std::size_t, Type, Comm, cudaStream_t) = nullptr;
    Result (*all_reduce)(const void*, void*, std::size_t, Type, Op, Comm, cudaStream_t) = nullptr;
};

constexpr int kOldest = 21900;
std::string dotted(int version) {
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void* open_library() {
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    setenv("NCCL_ALGO", "Ring", 0);
    auto folders = library_folders("FP8LAB_NCCL_DIR", "nccl");
    std::error_code none;
    folders.push_back(std::filesystem::read_symlink("/proc/self/exe", none).parent_path());
    for (const auto& folder : folders)
        if (void* const handle = dlopen((folder / "libnccl.so.2").c_str(), RTLD_NOW | RTLD_LOCAL))
            return handle;
    return nullptr;
}

Library load() {
    Library library;
    void* const handle = open_library();
    if (!handle) {
        library.why =
            "libnccl.so.2 is not found; it is in the packages libnccl2 (NVIDIA) and nvidia-nccl-cu13 "
            "(Python), and "
            "FP8LAB_NCCL_DIR names its folder";
        return library;
    }
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
        if (!function && library.why.empty()) library.why = fmt::format("libnccl.so.2 has no {}", name);
    };
    find(library.get_version, "ncclGetVersion");
    find(library.error_string, "ncclGetErrorString");
    find(library.get_id, "ncclGetUniqueId");
    find(library.init, "ncclCommInitRank");
    find(library.destroy, "ncclCommDestroy");
    find(library.abort, "ncclCommAbort");
    find(library.async_error, "ncclCommGetAsyncError");
    find(library.group_start, "ncclGroupStart");
    find(library.group_end, "ncclGroupEnd");
    find(library.reduce_scatter, "ncclReduceScatter");
    find(library.all_gather, "ncclAllGather");
    find(library.all_reduce, "ncclAllReduce");
    if (!library.why.empty()) return library;
    library.get_version(&library.version);
    if (library.version < kOldest)
        library.why = fmt::format("libnccl.so.2 has version {}; {} is the oldest that serves",
                                  dotted(library.version), dotted(kOldest));
    return library;
}

const Library& nccl() {
    static const Library library = load();
    if (!library.why.empty()) throw Error(ErrorKind::backend, "NCCL", library.why);
    return library;
}

void check_nccl(Result result, const char* what) {
    if (result != success && result != in_progress)
        throw Error(ErrorKind::failed, what, fmt::format("NCCL says: {}", nccl().error_string(result)));
}

// ncclCommInitRank waits for the other ranks for ever, and no call ends it. A thread of its own makes it, which is left
// behind where another rank fails; what it returns then is given back.
struct Start {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<Result> result = {};
    Comm comm = nullptr;
    double free_gb = 0;  // of the GPU's memory, where the start failed: NCCL does not say that it needed more
    bool given_up = false;
};

void run_start(Start& start, const Id& id, int rank, int ranks, int device) {
    Comm comm = nullptr;
    std::size_t available = 0, total = 0;
    cudaSetDevice(device);
    const Result result = nccl().init(&comm, ranks, id, rank);
    if (result != success) cudaMemGetInfo(&available, &total);
    const std::lock_guard lock(start.mutex);
    if (start.given_up && result == success) nccl().abort(comm);
    start.comm = comm;
    start.free_gb = static_cast<double>(available) / 1e9;
    start.result = result;
    start.ended.notify_all();
}

void wait_for(Start& start, const RankPlace& place) {
    constexpr auto kNap = std::chrono::milliseconds(20);
    constexpr auto kPatience = std::chrono::seconds(2);
    const std::string what = "the start of NCCL";
    const auto until = std::chrono::steady_clock::now() + place.timeout;
    std::unique_lock lock(start.mutex);
    try {
        while (!start.ended.wait_for(lock, kNap, [&] { return start.result.has_value(); })) {
            place.link->check();
            if (std::chrono::steady_clock::now() < until) continue;
            // Ranks whose hosts answer wait as this one does; this names the others.
            place.link->all_gather({}, what + ", for which ranks wait,", kPatience);
            throw Error(ErrorKind::failed, fmt::format("rank {}", place.rank),
                        fmt::format("{} did not end within {} s", what,
                                    std::chrono::duration<double>(place.timeout).count()));
        }
    } catch (...) {
        if (!lock) lock.lock();
        start.given_up = true;
        throw;
    }
}

Comm started(const NcclId& id, const RankPlace& place) {
    Id shared;
    std::copy(id.begin(), id.end(), shared.internal);
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    const auto start = std::make_shared<Start>();
    std::thread([start, shared, device, rank = place.rank, ranks = place.count] {
        run_start(*start, shared, rank, ranks, device);
    }).detach();
    wait_for(*start, place);
    if (*start->result != success)
        throw Error(ErrorKind::failed, "ncclCommInitRank",
                    fmt::format("NCCL says: {}; {:.2f} GB of this GPU's memory are free",
                                nccl().error_string(*start->result), start->free_gb));
    return start->comm;
}

class Nccl final : public GpuCollective {
  public:
    Nccl(const NcclId& id, const RankPlace& place)
        : rank_(place.rank), ranks_(place.count), comm_(started(id, place)) {}
    ~Nccl() override { end(); }
    Nccl(const Nccl&) = delete;
    Nccl& operator=(const Nccl&) = delete;

    int ranks() const override { return ranks_; }
    void use(cudaStream_t stream) override { stream_ = stream; }

    // A thread has the group that it has begun until it ends it, also where a call throws.
    void together(const std::function<void()>& work) override {
        check_nccl(nccl().group_start(), "ncclGroupStart");
        try {
            work();
        } catch (...) {
            nccl().group_end();
            throw;
        }
        check_nccl(nccl().group_end(), "ncclGroupEnd");
    }

    void reduce_scatter(const RankSum& how, std::span<const RankBuffers> buffers, std::size_t n) override {
        const bool bf16 = how.format == "bf16";
        if (how.hops != Hops::ring || (!bf16 && how.format != "fp32"))
            throw usage_error("--sum", fmt::format("{} is not a sum of NCCL: bf16 or fp32", how.id));
        const RankBuffers& own = only(buffers);
        check_nccl(nccl().reduce_scatter(own.in, own.out, n, bf16 ? bfloat16 : float32, sum, comm(), stream_),
                   "ncclReduceScatter");
    }
    void all_gather(std::span<const RankBuffers> buffers, std::size_t bytes) override {
        const RankBuffers& own = only(buffers);
        check_nccl(nccl().all_gather(own.in, own.out, bytes, uint8, comm(), stream_), "ncclAllGather");
    }
    void all_reduce_max(std::span<const RankValues> values, std::size_t n) override {
        float* const own = only(values).values;
        check_nccl(nccl().all_reduce(own, own, n, uint32, max, comm(), stream_), "ncclAllReduce");
    }
    // The hosts meet through their link.
    void barrier(std::span<const int>, std::chrono::milliseconds) override {
        throw usage_error("barrier", "NCCL has none");
    }
    // Kernels of NCCL end at once. The call itself returns when no graph has any more of them: it has a thread, which the
    // destructor waits for.
    void abort() override { end(); }
    void check() override {
        const std::lock_guard lock(mutex_);
        Result state = success;
        if (comm_) check_nccl(nccl().async_error(comm_, &state), "ncclCommGetAsyncError");
        check_nccl(state, "NCCL");
    }

  private:
    void end() {
        const std::lock_guard lock(mutex_);
        if (comm_) ending_ = std::jthread([comm = std::exchange(comm_, nullptr)] { nccl().abort(comm); });
    }
    Comm comm() {
        const std::lock_guard lock(mutex_);
        if (!comm_) throw Error(ErrorKind::failed, "ranks", "another rank has failed");
        return comm_;
    }
    template <class T>
    const T& only(std::span<const T> buffers) const {
        if (buffers.size() != 1 || buffers.front().rank != rank_)
            throw usage_error("NCCL", fmt::format("this is the end of rank {} alone", rank_));
        return buffers.front();
    }

    const int rank_, ranks_;
    std::mutex mutex_;
    Comm comm_;
    cudaStream_t stream_ = nullptr;
    std::jthread ending_;
};

}  // namespace

std::string nccl_text() { return dotted(nccl().version); }

NcclId make_nccl_id() {
    Id id;
    check_nccl(nccl().get_id(&id), "ncclGetUniqueId");
    NcclId out;
    std::copy(std::begin(id.internal), std::end(id.internal), out.begin());
    return out;
}

std::shared_ptr<GpuCollective> make_nccl_collective(const NcclId& id, const RankPlace& place) {
    return std::make_shared<Nccl>(id, place);
}

}  // namespace fp8lab::cuda
