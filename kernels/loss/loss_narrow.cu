// The mean squared error of outputs whose columns do not come in eights, such as a single one.
#include "kernels/loss/loss.cuh"

namespace fp8lab::cuda {

void cast_narrow_gradient(const LossSource& source, Shape shape, const CastTarget& target, Pass pass,
                          cudaStream_t stream) {
    cast_squared_error<false>(source, shape, target, pass, stream);
}

}  // namespace fp8lab::cuda
