#include "core/files/read_descriptor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/files/console.h"
#include "core/files/memory.h"

namespace fp8lab {
namespace {

constexpr std::size_t kFirst = 1 << 16, kAsked = std::size_t{32} << 20;  // less is not worth the question

// The next size of the buffer. For an input of unknown size it doubles while there is memory for it.
std::size_t next_size(std::size_t used, std::size_t most, std::uint64_t expected, const std::string& where) {
    const std::size_t known = expected > used ? static_cast<std::size_t>(expected) + 1 : 0;
    const std::size_t size = std::min(most, std::max({kFirst, used * 2, known}));
    if (size >= kAsked) require_memory(where, static_cast<double>(size));
    return size;
}

}  // namespace

bool read_descriptor(int descriptor, const std::string& where, std::size_t most,
                     std::vector<std::byte>& bytes, std::uint64_t expected) {
    std::size_t used = bytes.size();
    bool more = true;
    while (used < most) {
        // One byte more than is expected, so that the end is found without growing.
        if (used == bytes.size()) bytes.resize(next_size(used, most, expected, where));
        wait_for_stream(descriptor, POLLIN);
        const ssize_t got = ::read(descriptor, bytes.data() + used, bytes.size() - used);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) throw input_error(where, system_reason(errno));
        more = got > 0;
        if (!more) break;
        used += static_cast<std::size_t>(got);
    }
    bytes.resize(used);
    return more;
}

}  // namespace fp8lab
