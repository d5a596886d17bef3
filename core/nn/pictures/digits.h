// The data of the task `digits`: pictures of 8x8 pixels of the digits 0 to 9, drawn here from strokes. A picture is a
// bitmap of 32x32 points; a pixel is the number of black points in 4x4 of them, 0 to 16, divided by 16, as in UCI's
// "Optical Recognition of Handwritten Digits", which these pictures can be exchanged for.
#pragma once

#include "core/nn/tasks.h"

namespace fp8lab {

inline constexpr int kDigitPictures = 1797, kDigitPixels = 64, kDigitClasses = 10;

// Picture i does not depend on a seed: the digit, the ends of its strokes, height, width, slant, turn, shift,
// thickness of the pen and single flipped points come from a stream of random numbers of its own. x (1, 64) in [0,
// 1], row by row from the top; y one-hot (1, 10).
DenseBatch digit_picture(std::size_t i);

// Pictures 0 to 1796. Rows i with i % 4 == 3 are kept for tests: 1,348 are trained on, 449 are not.
struct DigitData {
    DenseBatch train, test;
};
const DigitData& digit_data();

// Every fourth row of any data set, from row 3 on, as the test rows; the others as the training rows.
DigitData split_rows(const DenseBatch& data);

}  // namespace fp8lab
