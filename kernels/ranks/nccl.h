// NCCL, opened at run time: what ranks on GPUs exchange. Nothing of a collective is written here.
//
// Types are those of nccl.h (NVIDIA, 2.19 and later). Gradients are added in BF16 or FP32; codes travel as bytes, so that NCCL
// never adds FP8. Amaxes are compared as the bits of FP32 that is not negative: their order is that of the numbers, and NaN is
// above all. NCCL_ALGO=Ring and NCCL_NVLS_ENABLE=0 are set where the environment does not say otherwise: the order of sums then
// depends on the number of GPUs alone, and multicast over NVLink is not used.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "kernels/ranks/place.h"

namespace fp8lab::cuda {

// What the ranks of one training share to find each other.
using NcclId = std::array<char, 128>;

// Throw Error{backend, "NCCL", ...}: libnccl.so.2 is not found (FP8LAB_NCCL_DIR, the packages of Python, the loader's places, the
// folder of the program), or is older than 2.19.
std::string nccl_text();  // "2.28.9"
NcclId make_nccl_id();

// One rank's end, on the current device. All ranks call it at the same time, each with its rank, count, link and timeout.
// Throws Error{failed} with NCCL's reason and what memory the GPU has left, where another rank has failed, or after the timeout.
std::shared_ptr<GpuCollective> make_nccl_collective(const NcclId& id, const RankPlace& place);

}  // namespace fp8lab::cuda
