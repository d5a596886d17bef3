// Any bytes are either refused with an input error or an index whose tensors lie in the file; what of them
// can be read survives writing and reading.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/tensors/safetensors.h"

namespace {

using namespace fp8lab;

void check(bool holds) {
    if (!holds) std::abort();
}

SafeTensors readable(std::span<const std::byte> bytes, const SafeTensorsIndex& index) {
    SafeTensors file;
    file.metadata = index.metadata;
    for (const auto& [name, info] : index.tensors) {
        check(info.begin <= info.end && info.end <= bytes.size());
        try {
            file.tensors[name] = {info.shape, read_safetensor(bytes, info, "fuzz")};
        } catch (const Error& error) {  // a dtype that is not ours
            check(error.kind() == ErrorKind::input);
        }
    }
    return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    try {
        const SafeTensors file = readable(bytes, index_safetensors(bytes, "fuzz"));
        const SafeTensors again = parse_safetensors(to_safetensors(file), "fuzz");
        check(again.metadata == file.metadata && again.tensors.size() == file.tensors.size());
        for (const auto& [name, tensor] : file.tensors) {
            const SafeTensor& other = again.tensors.at(name);
            check(other.shape == tensor.shape && other.values.size() == tensor.values.size());
            check(tensor.values.empty() || std::memcmp(other.values.data(), tensor.values.data(),
                                                       tensor.values.size() * sizeof(float)) == 0);
        }
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input);
    }
    return 0;
}
