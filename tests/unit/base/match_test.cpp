#include "core/base/match.h"

#include <doctest/doctest.h>

using fp8lab::match_score;

TEST_CASE("a query fits where each of its words is in the text, in any order and case") {
    CHECK(match_score("", "amax") > 0);
    CHECK(match_score("AMAX", "amax history") > 0);
    CHECK(match_score("history amax", "amax history") > 0);
    CHECK(match_score("amax scale", "amax history") == 0);
    CHECK(match_score("xyz", "amax") == 0);
}

TEST_CASE("lower case is of A to Z, whatever else is in the text") {
    CHECK(fp8lab::lower_case("E4M3 Fnuz-[@`{z") == "e4m3 fnuz-[@`{z");
    CHECK(fp8lab::lower_case("\u00C9t\u00C9") == "\u00C9t\u00C9");
    CHECK(fp8lab::lower_case("").empty());
}

TEST_CASE("letters with gaps fit from three on") {
    CHECK(match_score("dlscl", "delayed scaling") > 0);
    CHECK(match_score("dg", "delayed scaling") == 0);
    CHECK(match_score("gsd", "delayed scaling") == 0);
    CHECK(match_score("dlscl", "delayed scaling", false) == 0);
}

TEST_CASE(
    "the whole name comes before a word, a word before its start, a start before the middle, all before "
    "gaps") {
    CHECK(match_score("scale", "scale") > match_score("scale", "block scale"));
    CHECK(match_score("scale", "block scale") > match_score("scale", "scales of blocks"));
    CHECK(match_score("cal", "calibration") > match_score("cal", "scale"));
    CHECK(match_score("scl", "sclera") > match_score("scl", "scale"));
}
