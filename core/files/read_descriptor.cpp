#include "core/files/read_descriptor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/files/console.h"

namespace fp8lab {

std::vector<std::byte> read_descriptor(int descriptor, const std::string& where, std::size_t most,
                                       std::size_t expected) {
    constexpr std::size_t kFirst = 1 << 16;
    std::vector<std::byte> bytes;
    std::size_t used = 0;
    while (used < most) {
        // One byte more than is expected, so that the end is found without growing.
        if (used == bytes.size())
            bytes.resize(std::min(most, std::max({kFirst, used * 2, used == 0 ? expected + 1 : 0})));
        wait_for_stream(descriptor, POLLIN);
        const ssize_t got = ::read(descriptor, bytes.data() + used, bytes.size() - used);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) throw input_error(where, system_reason(errno));
        if (got == 0) break;
        used += static_cast<std::size_t>(got);
    }
    bytes.resize(used);
    return bytes;
}

}  // namespace fp8lab
