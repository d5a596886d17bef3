// OpenBLAS and memory. It computes a product in a buffer of 128 MiB, takes one for each thread that is in it at the same
// time and keeps them. Where there is no memory for one it asks again without end; so the memory is taken here first.
#pragma once

namespace fp8lab {

// While an object of this class exists, its thread may call OpenBLAS. The first one takes the buffers of as many threads
// as threads() says, or as there is memory for; where more threads come than there are buffers, they wait. Throws
// std::bad_alloc where there is not the memory for one.
class BlasUse {
  public:
    BlasUse();
    ~BlasUse();
    BlasUse(const BlasUse&) = delete;
    BlasUse& operator=(const BlasUse&) = delete;
};

}  // namespace fp8lab
