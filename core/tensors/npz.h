// NumPy's .npz as numpy.savez writes it: a ZIP archive of .npy files, not compressed. Format: PKWARE's APPNOTE.TXT 6.3,
// sections 4.3 and 4.5.3 (ZIP64).
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "core/tensors/npy.h"

namespace fp8lab {

// The arrays by name ("weights" of weights.npy); begin and end are bytes of the archive. Reads the archive's directory
// and the header of every member; checksums are not verified, since that would read all data. Throws input_error with
// the byte: not a whole ZIP archive, members that overlap or lie outside, a compressed or encrypted member, one that is
// no .npy, two of one name.
std::map<std::string, NpyIndex> index_npz(std::span<const std::byte> bytes, const std::string& where);

}  // namespace fp8lab
