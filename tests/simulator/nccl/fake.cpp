// A libnccl.so.2 whose start does what the first byte of the id says: 's' succeeds, 'f' fails, 'l' succeeds late, 'n' never ends.
#include <atomic>
#include <chrono>
#include <thread>

namespace {

using namespace std::chrono_literals;

struct Id {
    char internal[128];
};
constexpr int kSuccess = 0, kUnhandledCudaError = 1;
int one_comm = 0;
std::atomic<int> aborts = 0;

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
    *version = 22809;
    return kSuccess;
}
const char* ncclGetErrorString(int result) {
    return result == kUnhandledCudaError ? "unhandled cuda error" : "?";
}
int ncclGetUniqueId(Id* id) {
    *id = {};
    return kSuccess;
}
int ncclCommInitRank(void** comm, int, Id id, int) {
    if (id.internal[0] == 'f') return kUnhandledCudaError;
    if (id.internal[0] == 'l') std::this_thread::sleep_for(300ms);
    while (id.internal[0] == 'n') std::this_thread::sleep_for(1h);
    *comm = &one_comm;
    return kSuccess;
}
int ncclCommAbort(void*) {
    ++aborts;
    return kSuccess;
}
int fake_nccl_aborts() { return aborts; }
int ncclCommDestroy(void*) { return kSuccess; }
int ncclCommGetAsyncError(void*, int* result) {
    *result = kSuccess;
    return kSuccess;
}
int ncclGroupStart() { return kSuccess; }
int ncclGroupEnd() { return kSuccess; }
int ncclReduceScatter() { return kSuccess; }
int ncclAllGather() { return kSuccess; }
int ncclAllReduce() { return kSuccess; }

}  // extern "C"
