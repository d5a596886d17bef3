#include "core/files/bounded_file.h"

#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/opened_input.h"

namespace fp8lab {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
    std::string text(bytes.size(), '\0');
    if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
    return text;
}

}  // namespace

std::vector<std::byte> read_bytes(const std::filesystem::path& path, std::size_t most, Pipes pipes) {
    const OpenedInput file(path, pipes);
    if (file.size() > most)
        throw input_error(file.where(), "is " + format_bytes(file.size()) + "; such a file has at most " +
                                            format_bytes(most));
    std::vector<std::byte> bytes;
    file.read_on(most + 1, bytes);
    if (bytes.size() > most)
        throw input_error(file.where(),
                          "is larger than " + format_bytes(most) + ", the most such a file has");
    return bytes;
}

std::string read_bounded(const std::filesystem::path& path, std::size_t most, Pipes pipes) {
    return text_of(read_bytes(path, most, pipes));
}

std::string read_head(const std::filesystem::path& path, std::size_t bytes) {
    const OpenedInput file(path, Pipes::refused);
    std::vector<std::byte> head;
    file.read_on(bytes, head);
    return text_of(head);
}

}  // namespace fp8lab
