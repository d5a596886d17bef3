// The committed corpora without libFuzzer: each file of the folders named, once. Options are libFuzzer's.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "core/files/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** words) {
    int files = 0;
    for (int i = 1; i < count; ++i) {
        if (std::string_view(words[i]).starts_with('-')) continue;
        for (const auto& entry : std::filesystem::directory_iterator(words[i])) {
            const auto bytes = fp8lab::read_bytes(entry.path());
            std::printf("%s\n", entry.path().c_str());
            std::fflush(stdout);
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
            ++files;
        }
    }
    return files == 0 ? 1 : 0;
}
