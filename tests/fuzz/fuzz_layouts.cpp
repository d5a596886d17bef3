// Any bytes are either refused with an input error or a model of which every tensor is read, row by row, or refused with
// a reason; a tensor with scales has as many as its grid asks for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "core/tensors/tensor_store.h"

namespace {

using namespace fp8lab;

void check(bool holds) {
    if (!holds) std::abort();
}

void read(const TensorStore& store, const StoredTensor& tensor) {
    check(tensor.role == TensorRole::values || tensor.scales.has_value() == false);
    check(tensor.role == TensorRole::values || !tensor.why.empty());
    const MatrixShape shape = tensor.matrix();
    constexpr std::size_t kMost = std::size_t{1} << 16;
    if (!tensor.is_float() || tensor.values() == 0 || shape.cols > kMost) return;
    const std::size_t rows = std::min<std::size_t>(shape.rows, 3);
    std::vector<float> values(rows * shape.cols);
    store.read_rows(tensor, 0, values);
    store.read_rows(tensor, shape.rows - rows, values);
    if (tensor.scales) {
        std::size_t count = 1;
        for (const std::size_t each : tensor.scales->grid.counts) count *= each;
        check(count == tensor.scales->count);
    }
    check(store.scale_health(tensor).scales >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    try {
        // In memory, in a folder that is not there: nothing stands beside it.
        const TensorStore store(RandomFile({bytes.begin(), bytes.end()}, "/none/fuzz.safetensors"));
        for (const StoredTensor& tensor : store.tensors()) read(store, tensor);
        check(store.notes().size() <= 2 * store.tensors().size());
        static_cast<void>(store.unscaled());
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input);
    }
    return 0;
}
