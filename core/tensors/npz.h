// NumPy's .npz as numpy.savez and numpy.savez_compressed write it: a ZIP archive of .npy files. Format: PKWARE's
// APPNOTE.TXT 6.3, sections 4.3 and 4.5.3 (ZIP64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/files/random_file.h"
#include "core/tensors/npy.h"

namespace fp8lab {

inline constexpr std::uint64_t kMostInflated =
    (std::uint64_t{1} << 31) - 1;  // bytes of a compressed member (inflate.h)

// A deflated member: where it is in the archive, the bytes it takes there, the bytes it becomes, and their CRC-32.
struct PackedMember {
    std::uint64_t begin = 0, stored = 0, size = 0;  // size 0: not deflated
    std::uint32_t crc = 0;
};

struct NpzArray {
    NpyIndex index;  // begin and end are bytes of the archive; of a deflated member, of what unpack() returns
    PackedMember packed = {};
};

// The arrays by name ("weights" of weights.npy). Reads the archive's directory and the header of every member; the
// checksums of members that are not compressed are not verified, since that would read all data. Throws input_error with
// the byte: not a whole ZIP archive, members that overlap or lie outside, an encrypted member, one that is compressed in
// another way than deflate or becomes more than kMostInflated bytes, one that is no .npy, two of one name.
std::map<std::string, NpzArray> index_npz(const RandomFile& file);

// The whole member. Throws input_error where its data are damaged or its checksum is another one, and Error{failed} where
// there is not the memory.
std::vector<std::byte> unpack(const RandomFile& file, const PackedMember& member);

}  // namespace fp8lab
