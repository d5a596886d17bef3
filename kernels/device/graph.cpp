#include "kernels/device/graph.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace fp8lab::cuda {
namespace {

using Nodes = std::vector<cudaGraphNode_t>;
// get(nodes, &count): the count alone where `nodes` is null.
template <class Get>
Nodes nodes_of(Get&& get, const char* what) {
    std::size_t count = 0;
    check(get(nullptr, &count), what);
    Nodes nodes(count);
    if (count > 0) check(get(nodes.data(), &count), what);
    return nodes;
}

// CUDA 13 gives these functions the type of an edge, which CUDA 12 has in other functions.
#if CUDART_VERSION >= 13000
constexpr auto dependencies_of = cudaGraphNodeGetDependencies;
constexpr auto dependents_of = cudaGraphNodeGetDependentNodes;
constexpr auto add_dependencies = cudaGraphAddDependencies;
constexpr auto capture_of = cudaStreamGetCaptureInfo;
constexpr auto update_capture = cudaStreamUpdateCaptureDependencies;
#else
constexpr auto dependencies_of = cudaGraphNodeGetDependencies_v2;
constexpr auto dependents_of = cudaGraphNodeGetDependentNodes_v2;
constexpr auto add_dependencies = cudaGraphAddDependencies_v2;
constexpr auto capture_of = cudaStreamGetCaptureInfo_v3;
constexpr auto update_capture = cudaStreamUpdateCaptureDependencies_v2;
#endif

// `get` fails where an edge has a type, unless it gets memory for the types.
template <class Get>
Nodes linked(Get get, cudaGraphNode_t node, const char* what) {
    std::vector<cudaGraphEdgeData> types;
    return nodes_of(
        [&](cudaGraphNode_t* to, std::size_t* count) {
            types.resize(*count);
            return get(node, to, to ? types.data() : nullptr, count);
        },
        what);
}
Nodes before(cudaGraphNode_t node) { return linked(dependencies_of, node, "cudaGraphNodeGetDependencies"); }
Nodes behind(cudaGraphNode_t node) { return linked(dependents_of, node, "cudaGraphNodeGetDependentNodes"); }
void add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
    check(add_dependencies(graph, &from, &to, nullptr, 1), "cudaGraphAddDependencies");
}

// The last launches of a stream that is captured.
struct Captured {
    bool active = false;
    Nodes last;
};
Captured captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status{};
    const cudaGraphNode_t* last = nullptr;
    const cudaGraphEdgeData* types = nullptr;
    std::size_t count = 0;
    check(capture_of(stream, &status, nullptr, nullptr, &last, &types, &count), "cudaStreamGetCaptureInfo");
    if (status != cudaStreamCaptureStatusActive) return {};
    return {true, Nodes(last, last + count)};
}

// What this thread captures: the places that it got of Counters, and memsets of what is clear already.
struct Place {
    const Counters* owner = nullptr;
    int times = 0;  // that the graph got it
    cudaGraphNode_t memset = nullptr;
    int memsets = 0;
    const std::byte *first = nullptr, *last = nullptr;  // what the memset clears
};
struct Capture {
    std::map<const std::byte*, Place> places;
    Nodes clear_already;
};
thread_local std::optional<Capture> capture;

// The parameters of a memset of a counter.
std::optional<cudaMemsetParams> clears_a_counter(cudaGraphNode_t node) {
    constexpr std::size_t kMost = 32;
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    if (type != cudaGraphNodeTypeMemset) return std::nullopt;
    cudaMemsetParams memset{};
    check(cudaGraphMemsetNodeGetParams(node, &memset), "cudaGraphMemsetNodeGetParams");
    if (memset.value != 0 || memset.height != 1 || memset.width * memset.elementSize > kMost)
        return std::nullopt;
    return memset;
}

void find_memsets(cudaGraph_t graph, std::map<const std::byte*, Place>& places) {
    if (places.empty()) return;
    const Nodes nodes =
        nodes_of([&](cudaGraphNode_t* to, std::size_t* count) { return cudaGraphGetNodes(graph, to, count); },
                 "cudaGraphGetNodes");
    for (const cudaGraphNode_t node : nodes) {
        const auto memset = clears_a_counter(node);
        if (!memset) continue;
        const auto* const first = static_cast<const std::byte*>(memset->dst);
        const auto* const last = first + memset->width * memset->elementSize;
        const auto behind = places.upper_bound(first);
        if (behind == places.begin()) continue;
        auto& [begin, place] = *std::prev(behind);
        if (last > begin + Counters::kBytes) continue;
        ++place.memsets;
        place.memset = node, place.first = first, place.last = last;
    }
}

// Takes a node out; what waited for it waits for what it waited for.
void take_out(cudaGraph_t graph, cudaGraphNode_t node) {
    for (const cudaGraphNode_t from : before(node))
        for (const cudaGraphNode_t to : behind(node)) add_edge(graph, from, to);
    check(cudaGraphDestroyNode(node), "cudaGraphDestroyNode");
}

// Clears [first, last) before everything else.
void clear_first(cudaGraph_t graph, const std::byte* first, const std::byte* last) {
    const Nodes roots = nodes_of(
        [&](cudaGraphNode_t* to, std::size_t* count) { return cudaGraphGetRootNodes(graph, to, count); },
        "cudaGraphGetRootNodes");
    cudaMemsetParams memset{};
    memset.dst = const_cast<std::byte*>(first);
    memset.elementSize = 1;
    memset.width = static_cast<std::size_t>(last - first);
    memset.height = 1;
    cudaGraphNode_t node = nullptr;
    check(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &memset), "cudaGraphAddMemsetNode");
    for (const cudaGraphNode_t root : roots) add_edge(graph, node, root);
}

void take_out_memsets(cudaGraph_t graph, Capture& captured) {
    for (const cudaGraphNode_t node : captured.clear_already) take_out(graph, node);
    find_memsets(graph, captured.places);
    std::erase_if(captured.places,
                  [](const auto& one) { return one.second.times != 1 || one.second.memsets != 1; });
    if (captured.places.size() < 2) return;
    // Neighbouring places of one owner are cleared together. Those between them belong to other graphs, which clear their own.
    constexpr std::ptrdiff_t kNear = 64 * static_cast<std::ptrdiff_t>(Counters::kBytes);
    const Counters* owner = nullptr;
    std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
    for (const auto& [begin, place] : captured.places) {
        if (place.owner != owner || place.first - ranges.back().second > kNear)
            ranges.emplace_back(place.first, place.last);
        owner = place.owner;
        ranges.back().second = place.last;
        take_out(graph, place.memset);
    }
    for (const auto& [first, last] : ranges) clear_first(graph, first, last);
}

}  // namespace

void* Counters::next() const {
    auto* const place = static_cast<std::byte*>(memory_.get()) + taken_++ % kPlaces * kBytes;
    if (capture) {
        Place& known = capture->places[place];
        known.owner = this;
        ++known.times;
    }
    return place;
}

void launch_cleared(const void* workspace, cudaStream_t stream, const std::function<void()>& launch) {
    const Captured before_it = captured(stream);
    launch();
    if (!capture || !before_it.active || before_it.last.size() != 1) return;
    for (const cudaGraphNode_t node : behind(before_it.last.front()))
        if (const auto memset = clears_a_counter(node); memset && memset->dst == workspace)
            capture->clear_already.push_back(node);
}

void begin_beside_last(cudaStream_t side, cudaStream_t main, const Event& before_last) {
    const Captured now = captured(main);
    const bool joined = captured(side).active;
    if (!now.active || !joined) check(cudaStreamWaitEvent(side, before_last.get()), "cudaStreamWaitEvent");
    if (!now.active) return;
    Nodes waits_for;
    for (const cudaGraphNode_t node : now.last)
        for (const cudaGraphNode_t earlier : before(node)) waits_for.push_back(earlier);
    check(update_capture(side, waits_for.data(), nullptr, waits_for.size(),
                         joined ? cudaStreamAddCaptureDependencies : cudaStreamSetCaptureDependencies),
          "cudaStreamUpdateCaptureDependencies");
}

Graph::~Graph() {
    if (exec_) cudaGraphExecDestroy(exec_);
}
void Graph::launch(cudaStream_t stream) const { check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }
// Thread-local: other threads of the process may use CUDA meanwhile.
void Graph::begin(cudaStream_t stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    capture.emplace();
}
void Graph::abandon(cudaStream_t stream) {
    capture.reset();
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();  // the error on its way says more
}
void Graph::end(cudaStream_t stream) {
    Capture done = std::move(*capture);
    capture.reset();
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const struct Owned {
        cudaGraph_t graph;
        ~Owned() { cudaGraphDestroy(graph); }
    } owned{graph};
    take_out_memsets(graph, done);
    check(cudaGraphInstantiate(&exec_, graph, cudaGraphInstantiateFlagUseNodePriority),
          "cudaGraphInstantiate");
}

}  // namespace fp8lab::cuda
