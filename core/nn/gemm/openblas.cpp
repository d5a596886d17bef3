#include <cblas.h>
#include <sys/mman.h>

#include <new>
#include <semaphore>
#include <vector>

#include "core/nn/gemm.h"
#include "core/threads/parallel.h"

// Symbols of every version of OpenBLAS, which no header declares.
extern "C" {
void* blas_memory_alloc(int);
void blas_memory_free(void*);
// What OPENBLAS_NUM_THREADS says, asked when the library is loaded. This definition takes the place of the library's: it
// starts no threads of its own, each of which would ask for a buffer at once. parallel_for() has the threads.
int openblas_num_threads_env() { return 1; }
}

namespace fp8lab {
namespace {

// The buffer, and what else a thread takes meanwhile.
constexpr std::size_t kBuffer = (std::size_t{128} + 16) << 20;

bool has_room() {
    void* const at = ::mmap(nullptr, kBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED && ::munmap(at, kBuffer) == 0;
}

// Returns how many there are.
std::ptrdiff_t take_buffers() {
    openblas_set_num_threads(1);
    std::vector<void*> taken;
    taken.reserve(static_cast<std::size_t>(threads()));
    while (taken.size() < taken.capacity() && has_room()) taken.push_back(blas_memory_alloc(0));
    for (void* buffer : taken) blas_memory_free(buffer);  // back to OpenBLAS, which keeps it
    if (taken.empty()) throw std::bad_alloc();
    return static_cast<std::ptrdiff_t>(taken.size());
}

std::counting_semaphore<>& buffers() {
    static std::counting_semaphore<> free{take_buffers()};
    return free;
}

CBLAS_TRANSPOSE transposed(bool is) { return is ? CblasTrans : CblasNoTrans; }
int number(std::size_t value) { return static_cast<int>(value); }

}  // namespace

BlasUse::BlasUse() { buffers().acquire(); }
BlasUse::~BlasUse() { buffers().release(); }

void gemm(std::size_t rows, std::size_t cols, std::size_t depth, float factor, GemmSide<float> left,
          GemmSide<float> right, float keep, MatrixPart<float> out) {
    const BlasUse use;
    cblas_sgemm(CblasRowMajor, transposed(left.transposed), transposed(right.transposed), number(rows),
                number(cols), number(depth), factor, left.part.values, number(left.part.stride),
                right.part.values, number(right.part.stride), keep, out.values, number(out.stride));
}
void gemm(std::size_t rows, std::size_t cols, std::size_t depth, double factor, GemmSide<double> left,
          GemmSide<double> right, double keep, MatrixPart<double> out) {
    const BlasUse use;
    cblas_dgemm(CblasRowMajor, transposed(left.transposed), transposed(right.transposed), number(rows),
                number(cols), number(depth), factor, left.part.values, number(left.part.stride),
                right.part.values, number(right.part.stride), keep, out.values, number(out.stride));
}

}  // namespace fp8lab
