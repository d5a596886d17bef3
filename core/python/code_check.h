// The end of every file: 256 numbers are cast and compared with the codes that our quantizer gave when the file was
// written, and the values of all codes of the format with ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/python/cast_code.h"

namespace fp8lab::python {

// The 256 numbers: 26 binades, two of three with a significand of more bits than any format of 8 bits has, the others
// with 5 or fewer, so that ties are among them. sample_function() is the same in Python; all of it is exact.
std::vector<float> check_sample();
constexpr std::size_t kSampleSize = 256;

// What a group is compared on: the sample as a matrix whose columns are K.
struct SampleShape {
    std::size_t rows, cols;
};
SampleShape sample_shape(const CastPlan& plan);

// Our codes of the sample, a byte or more each, little-endian. Of delayed scaling: the fourth cast, after casts of the
// sample times 4, 1 and 2.
std::vector<std::uint8_t> check_codes(const CastGroup& group, const Recipe& recipe);

// "def sample(rows, cols): ...", compare(), and check() for the groups whose codes are the same on every machine.
std::string check_functions(const std::vector<CastGroup>& groups, const Recipe& recipe);

}  // namespace fp8lab::python
