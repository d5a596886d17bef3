// Any text is either refused with an input error or a map to files of the index's own folder.
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/tensors/weight_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    try {
        const WeightMap map = parse_weight_map({reinterpret_cast<const char*>(data), size}, "fuzz");
        for (const auto& [tensor, entry] : map.tensors) {
            if (entry.place > size || !map.files.contains(entry.file)) std::abort();
            const std::filesystem::path file = entry.file;
            if (file.is_absolute() || file.has_parent_path() || file.filename() != file) std::abort();
        }
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
    return 0;
}
