#include "core/base/console.h"

#include <doctest/doctest.h>

using namespace fp8lab;

TEST_CASE("what drives a terminal is shown as text; everything else stays as it is") {
    for (const char* text : {"", "plain", "2\u00b3\u00b2 \u2212 \u65e5\u672c \U0001F600", "\u00a0"})
        CHECK(printable(text) == text);
    CHECK(printable("a\x1b[31mred") == "a\\x1b[31mred");
    CHECK(printable("one\ntwo\tthree\x7f") == "one\\ntwo\\tthree\\x7f");
    CHECK(printable("\xc2\x9b"
                    "31m") == "\\xc2\\x9b31m");             // CSI as one character
    CHECK(printable("\xff\xfe") == "\\xff\\xfe");           // no UTF-8
    CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // overlong
    CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");  // overlong
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a surrogate pair
    CHECK(printable("cut \xe2\x88") == "cut \\xe2\\x88");
    CHECK(printable("\u202e"
                    "txt.exe") == "\\xe2\\x80\\xaetxt.exe");  // turns what follows round
    CHECK(printable(std::string("\0", 1)) == "\\x00");
}
