// cuDNN at run time: opened when a transformer first asks for it, never linked and never shipped.
#pragma once

#include <memory>
#include <string>

#include "kernels/layers/attention.h"

namespace fp8lab::cuda {

// Where libcudnn.so.9 was looked for, and what came of it: "cuDNN 9.15.1 (/usr/lib/x86_64-linux-gnu/libcudnn.so.9)", or
// why there is none. In this order: the folder FP8LAB_CUDNN_DIR or its lib, a Python package (nvidia-cudnn-cu13, in the
// active environment, the user's and the system's), the system's libraries.
std::string cudnn_text();

// Returns null and sets `why` where cuDNN is not found, this build has no headers of its frontend, or it has no plan
// for the shape. The backward pass is deterministic.
std::unique_ptr<Attention> make_cudnn_attention(const AttentionSizes& sizes, const AttentionPlaces& places,
                                                std::string& why);

}  // namespace fp8lab::cuda
