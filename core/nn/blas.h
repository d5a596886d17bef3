// OpenBLAS and memory. OpenBLAS keeps a buffer of 128 MiB for each thread that computes at the same time. Where there is
// no memory for a buffer it asks again without end, so the memory is allocated here first.
#pragma once

namespace fp8lab {

// While an object of this class exists, its thread may call OpenBLAS. The first object allocates the buffers of
// threads() threads, or of as many as there is memory for; further threads wait for a buffer. Throws std::bad_alloc
// where there is not the memory for one.
class BlasUse {
  public:
    BlasUse();
    ~BlasUse();
    BlasUse(const BlasUse&) = delete;
    BlasUse& operator=(const BlasUse&) = delete;
};

}  // namespace fp8lab
