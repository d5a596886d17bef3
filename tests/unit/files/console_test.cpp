#include "core/files/console.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <thread>

using namespace fp8lab;

TEST_CASE("what drives a terminal is shown as text, everything else stays as it is") {
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

TEST_CASE("a long text goes through a pipe whole, after what was printed before") {
    int pipe[2] = {};
    REQUIRE(::pipe(pipe) == 0);
    std::fflush(stdout);
    const int before = ::dup(STDOUT_FILENO);
    ::dup2(pipe[1], STDOUT_FILENO);
    ::close(pipe[1]);
    std::string got;
    std::thread reader([&] {
        std::array<char, 5000> piece{};
        for (ssize_t size = 0; (size = ::read(pipe[0], piece.data(), piece.size())) > 0;)
            got.append(piece.data(), static_cast<std::size_t>(size));
    });
    std::string text;
    for (int i = 0; i < 100000; ++i) text += std::to_string(i) + "\n";
    std::printf("first\n");
    write_stdout(text);
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
    reader.join();
    ::close(pipe[0]);
    CHECK(got == "first\n" + text);
}
