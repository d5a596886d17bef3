// Graphs of the stand-in: a chain of nodes, in the order in which they were captured, whatever the streams were.
#include <cuda_runtime_api.h>
#if CUDART_VERSION < 13000  // the names of functions that know the types of edges
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#endif

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simulator/runtime.h"

namespace fp8lab::simulator {
namespace {

struct Chain;
struct Node {
    Chain* chain;
    std::function<void()> work;
    cudaGraphNodeType type = cudaGraphNodeTypeKernel;
    cudaMemsetParams memset{};
};
struct Chain {
    std::vector<std::unique_ptr<Node>> nodes;
    std::size_t place_of(const Node* node) const {
        std::size_t at = 0;
        while (nodes[at].get() != node) ++at;
        return at;
    }
};
using Work = std::vector<std::function<void()>>;

Chain* captured = nullptr;

Node* node_of(cudaGraphNode_t node) { return reinterpret_cast<Node*>(node); }
Chain* chain_of(cudaGraph_t graph) { return reinterpret_cast<Chain*>(graph); }
// The node at this place of its chain, if there is one.
cudaError_t neighbour(const Chain& chain, std::size_t at, cudaGraphNode_t* to, std::size_t* count) {
    *count = at < chain.nodes.size();
    if (to && *count) *to = handle<cudaGraphNode_t>(chain.nodes[at].get());
    return cudaSuccess;
}

}  // namespace

void enqueue(std::function<void()> work, const cudaMemsetParams* memset) {
    if (!captured) return work();
    Node& node = *captured->nodes.emplace_back(std::make_unique<Node>());
    node.chain = captured;
    node.work = std::move(work);
    if (!memset) return;
    node.type = cudaGraphNodeTypeMemset;
    node.memset = *memset;
}
bool captures() { return captured != nullptr; }

}  // namespace fp8lab::simulator

using namespace fp8lab::simulator;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    if (captured) return cudaErrorIllegalState;
    captured = new Chain;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = handle<cudaGraph_t>(std::exchange(captured, nullptr));
    return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t*, const cudaGraphNode_t** last, const cudaGraphEdgeData**,
                                     std::size_t* count) {
    static cudaGraphNode_t newest;
    *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    *count = captured && !captured->nodes.empty();
    if (*count) newest = handle<cudaGraphNode_t>(captured->nodes.back().get());
    *last = &newest;
    return cudaSuccess;
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*,
                                                std::size_t, unsigned) {
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
    auto* const work = new Work;
    for (const auto& node : chain_of(graph)->nodes) work->push_back(node->work);
    *exec = handle<cudaGraphExec_t>(work);
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
    for (const auto& work : *reinterpret_cast<Work*>(exec)) work();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete chain_of(graph);
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete reinterpret_cast<Work*>(exec);
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* to, std::size_t* count) {
    const auto& nodes = chain_of(graph)->nodes;
    *count = nodes.size();
    for (std::size_t i = 0; to && i < nodes.size(); ++i) to[i] = handle<cudaGraphNode_t>(nodes[i].get());
    return cudaSuccess;
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* to, std::size_t* count) {
    return neighbour(*chain_of(graph), 0, to, count);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    *type = node_of(node)->type;
    return cudaSuccess;
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
    *params = node_of(node)->memset;
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* to, cudaGraphEdgeData*,
                                         std::size_t* count) {
    const Chain& chain = *node_of(node)->chain;
    return neighbour(chain, chain.place_of(node_of(node)) - 1, to, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* to, cudaGraphEdgeData*,
                                           std::size_t* count) {
    const Chain& chain = *node_of(node)->chain;
    return neighbour(chain, chain.place_of(node_of(node)) + 1, to, count);
}
// They are a chain already.
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                     const cudaGraphEdgeData*, std::size_t) {
    return cudaSuccess;
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t*,
                                   std::size_t dependencies, const cudaMemsetParams* params) {
    if (dependencies > 0) return cudaErrorNotSupported;
    Chain& chain = *chain_of(graph);
    Node& node = **chain.nodes.insert(chain.nodes.begin(), std::make_unique<Node>());
    node.chain = &chain;
    node.type = cudaGraphNodeTypeMemset;
    node.memset = *params;
    node.work = [m = *params] { std::memset(m.dst, static_cast<int>(m.value), m.width); };
    *added = handle<cudaGraphNode_t>(&node);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    Chain& chain = *node_of(node)->chain;
    chain.nodes.erase(chain.nodes.begin() + static_cast<std::ptrdiff_t>(chain.place_of(node_of(node))));
    return cudaSuccess;
}

}  // extern "C"
