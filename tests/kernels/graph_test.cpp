// Graphs: memsets of counters that are taken out, and what begins beside the last launch.
#include "kernels/device/graph.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::cuda;

namespace {

void clear(void* at, std::size_t bytes, int value, cudaStream_t stream) {
    check(cudaMemsetAsync(at, value, bytes, stream), "memset");
}
void copy_word(void* to, const void* from, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, sizeof(std::uint32_t), cudaMemcpyDeviceToDevice, stream), "copy");
}

void fill(void* at, int value, cudaStream_t stream) { clear(at, Counters::kBytes, value, stream); }

// What a library's launch does: it clears its counter, reads it (to `seen`) and leaves it changed.
struct Launches {
    const Buffer<std::uint32_t>& seen;
    cudaStream_t stream;
    std::size_t count = 0;
    void counted(void* place) {
        clear(place, sizeof(std::uint32_t), 0, stream);
        copy_word(seen.get() + count++, place, stream);
        fill(place, 0x55, stream);
    }
};

std::vector<std::uint32_t> words(const Graph& graph, Buffer<std::uint32_t>& seen, const Stream& stream) {
    seen.upload(std::vector<std::uint32_t>(seen.size(), 7));
    graph.launch(stream.get());
    stream.wait();
    return seen.download();
}

}  // namespace

TEST_CASE("every launch of a graph finds its counter cleared, each time that the graph runs") {
    NEEDS_GPU();
    const Stream stream;
    const Counters counters, more;
    Buffer<std::uint32_t> seen(7);
    const Memory other(Counters::kBytes);
    for (const bool again : {false, true}) {  // whether two launches of the graph count in the same place
        CAPTURE(again);
        const Graph graph(stream.get(), [&] {
            Launches launches{seen, stream.get()};
            void* const first = counters.next();
            launches.counted(first);
            for (int i = 0; i < 2; ++i) launches.counted(counters.next());
            for (int i = 0; i < 2; ++i) launches.counted(more.next());
            launches.counted(other.get());
            if (again) launches.counted(first);
        });
        for (int run = 0; run < 3; ++run) {
            std::vector<std::uint32_t> expected(seen.size(), 0);
            if (!again) expected.back() = 7;
            CHECK(words(graph, seen, stream) == expected);
        }
    }
}

TEST_CASE("counters are cleared at the beginning of a graph, where no other launch counts there") {
    NEEDS_GPU();
    const Stream stream;
    const Counters counters;
    Buffer<std::uint32_t> seen(3);
    const Memory other(Counters::kBytes);
    const Graph graph(stream.get(), [&] {
        Launches launches{seen, stream.get()};
        for (void* const place : {counters.next(), counters.next(), other.get()}) {
            fill(place, 0x33, stream.get());  // what comes before the memset shows where that is
            launches.counted(place);
        }
    });
    CHECK(words(graph, seen, stream) == std::vector<std::uint32_t>{0x33333333, 0x33333333, 0});
}

TEST_CASE("what a kernel has cleared before a library's launches is not cleared by their first memset") {
    NEEDS_GPU();
    const Stream stream;
    const Memory workspace(4 * Counters::kBytes);
    auto* const second = static_cast<std::byte*>(workspace.get()) + Counters::kBytes;
    Buffer<std::uint32_t> seen(3);
    const auto enqueue = [&](const void* cleared) {
        fill(workspace.get(), 0x33, stream.get());
        Launches launches{seen, stream.get()};
        launch_cleared(cleared, stream.get(), [&] {
            launches.counted(workspace.get());
            launches.counted(second);
            launches.counted(workspace.get());
        });
    };
    const auto run = [&](const void* cleared) {
        return words(Graph(stream.get(), [&] { enqueue(cleared); }), seen, stream);
    };
    CHECK(run(workspace.get()) == std::vector<std::uint32_t>{0x33333333, 0, 0});
    CHECK(run(second) == std::vector<std::uint32_t>{0, 0, 0});  // not the first of them
    enqueue(workspace.get());  // where nothing is captured, all are as they were
    stream.wait();
    CHECK(seen.download() == std::vector<std::uint32_t>{0, 0, 0});
}

namespace {

// What the next launch on a stream that is captured waits for.
[[maybe_unused]] std::vector<cudaGraphNode_t> last_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status{};
    const cudaGraphNode_t* last = nullptr;
    const cudaGraphEdgeData* types = nullptr;
    std::size_t count = 0;
#if CUDART_VERSION >= 13000
    check(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, &types, &count), "capture");
#else
    check(cudaStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &last, &types, &count), "capture");
#endif
    if (status != cudaStreamCaptureStatusActive) return {};
    return {last, last + count};
}

}  // namespace

TEST_CASE("what begins beside the last launch has waited for those before it") {
    NEEDS_GPU();
    constexpr std::size_t kBytes = 64 << 20;
    const Stream stream, side(Stream::Priority::high);
    const Memory large(kBytes), last(kBytes);
    const Buffer<std::uint32_t> found(4);
    Event before, done, again;
    const auto enqueue = [&] {
        clear(large.get(), kBytes, 0x11, stream.get());
        before.record(stream.get());
        clear(large.get(), kBytes, 0x22, stream.get());
        clear(last.get(), kBytes, 0x44, stream.get());
        begin_beside_last(side.get(), stream.get(), before);
#ifndef FP8LAB_SIMULATOR  // which has one chain for all streams
        if (const auto now = last_of(stream.get()); !now.empty()) CHECK(last_of(side.get()) != now);
#endif
        copy_word(found.get(), static_cast<std::byte*>(large.get()) + kBytes - 4, side.get());
        // Once more, with what the side has done meanwhile.
        clear(large.get(), kBytes, 0x66, stream.get());
        again.record(stream.get());
        clear(last.get(), kBytes, 0x77, stream.get());
        begin_beside_last(side.get(), stream.get(), again);
        copy_word(found.get() + 1, found.get(), side.get());
        copy_word(found.get() + 2, static_cast<std::byte*>(large.get()) + kBytes - 4, side.get());
        done.record(side.get());
        check(cudaStreamWaitEvent(stream.get(), done.get()), "wait");
        copy_word(found.get() + 3, static_cast<std::byte*>(last.get()) + kBytes - 4, stream.get());
    };
    const Graph graph(stream.get(), enqueue);
    for (int i = 0; i < 3; ++i) {
        graph.launch(stream.get());
        stream.wait();
        const std::vector<std::uint32_t> words = found.download();
        // The launch after those may have come before.
        CHECK((words[0] == 0x22222222 || words[0] == 0x66666666));
        CHECK(words[1] == words[0]);
        CHECK(words[2] == 0x66666666);
        CHECK(words[3] == 0x77777777);
    }
    // Where nothing is captured, behind the event.
    enqueue();
    stream.wait();
    const std::vector<std::uint32_t> words = found.download();
    CHECK(words[2] == 0x66666666);
    CHECK(words[3] == 0x77777777);
}
