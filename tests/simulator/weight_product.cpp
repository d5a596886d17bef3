// The weight gradient that the optimiser's kernel multiplies with the tensor cores: that kernel is not simulated.
#include "core/base/error.h"
#include "kernels/device/launch.h"

namespace fp8lab::cuda {

void update_weights(const UpdateSource&, const WeightProduct&, Shape, const CastTarget&, cudaStream_t) {
    throw Error(ErrorKind::backend, "simulator", "has no tensor cores: a batch above 64 needs none");
}

}  // namespace fp8lab::cuda
