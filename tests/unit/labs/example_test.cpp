// The lab to copy. Oracle: the spacing of E4M3 and E5M2 by their mantissa bits.
#include <cmath>

#include "labs/example/model.h"
#include "tests/unit/labs/made.h"

using namespace fp8lab;
using Made = test::MadeOf<example::ExampleLab>;

TEST_CASE("the lab to copy: the gap around a number is 2^(exponent - mantissa bits)") {
    for (const double x : {1.0, 1.9, 17.0, 300.0}) {
        CAPTURE(x);
        CHECK(Made{"x=" + std::to_string(x)}("gap") == std::ldexp(1, std::ilogb(x) - 3));
        CHECK(Made{"format=e5m2", "x=" + std::to_string(x)}("gap") == std::ldexp(1, std::ilogb(x) - 2));
    }
    CHECK(Made{"x=448"}("below") == 448);
    CHECK(std::isnan(Made{"x=448"}("gap")));
}
