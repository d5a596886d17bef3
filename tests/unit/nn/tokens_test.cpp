// Text folded and coded as a corpus, and the batches of both tasks of a transformer.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/nn/tokens/token_tasks.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

std::string repeated(const std::string& text, std::size_t bytes) {
    std::string out;
    while (out.size() < bytes) out += text;
    return out.substr(0, bytes);
}

std::string message_of(const std::string& bytes) {
    try {
        make_corpus(bytes, "a.txt");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "no error";
}

std::string decoded(const Corpus& corpus, const int* codes, std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += corpus.symbols[static_cast<std::size_t>(codes[i])];
    return out;
}

}  // namespace

TEST_CASE("folding: signs become ASCII, letters small, blanks single") {
    CHECK(fold_text("A \t  b\n\n\nC", "t") == "a b\nc");
    CHECK(fold_text("\xE2\x80\x9Cit\xE2\x80\x99s\xE2\x80\x9D \xE2\x80\x93 a\xE2\x80\xA6", "t") ==
          "\"it's\" - a...");
    CHECK(fold_text("\xE2\x88\x92"
                    "1 \xC3\x97 \xC2\xB1"
                    "2\xC2\xB2 \xE2\x89\xA4 3 \xE2\x89\xA5 4 \xE2\x86\x92 5",
                    "t") == "-1 x +-22 <= 3 >= 4 -> 5");
    CHECK(fold_text("**bold** `code` # head", "t") == "bold code head");
    CHECK(fold_text("caf\xC3\xA9 \xF0\x9F\x98\x80 na\xC3\xAFve\x01\x7F", "t") == "caf nave");
    CHECK(fold_text("\xEF\xBB\xBFone\r\n\r\ntwo\rthree\n", "t") == "one\ntwo\nthree\n");
    CHECK(fold_text("a\xC2\xA0 b", "t") == "a b");
    CHECK(fold_text("\xE2\x84\xAA \xC4\xB0", "t") == "k i");  // small they are in ASCII
    CHECK(fold_text("", "t").empty());
    const std::string once = fold_text("A # \xC3\xA9 b \t\n * \n", "t");
    CHECK(fold_text(once, "t") == once);
}

TEST_CASE("what is not UTF-8 is refused with its byte") {
    const std::string wrong[] = {
        "\x80",              // a continuation without a lead
        "\xC0\xAF",          // overlong
        "\xE0\x80\xAF",      // overlong
        "\xED\xA0\x80",      // a surrogate
        "\xF4\x90\x80\x80",  // above U+10FFFF
        "\xF8\x88\x80\x80\x80",
        "\xFF",
        "\xE2\x82",  // cut off
        "\xE2\x28\xA1",
    };
    for (const std::string& bytes : wrong) {
        CAPTURE(bytes);
        CHECK_THROWS_WITH(fold_text("ab\xC3\xA9" + bytes, "a.txt"),
                          "a.txt: byte 4: not UTF-8; convert the text to UTF-8 first");
        CHECK(message_of(repeated("words ", 4500) + bytes).starts_with("a.txt: byte 4500: not UTF-8"));
    }
}

TEST_CASE("a corpus has 4000 bytes to 16 MiB, also folded, and two symbols or more") {
    CHECK(message_of(repeated("ab ", 4000)) == "no error");
    CHECK(message_of(repeated("ab ", 3999)) ==
          "a.txt: byte 3999: the text ends here; a corpus has at least 4000 bytes");
    CHECK(message_of("") == "a.txt: byte 0: the text ends here; a corpus has at least 4000 bytes");
    CHECK(message_of(repeated("ab", (std::size_t{16} << 20) + 1)) ==
          "a.txt: byte 16777216: the text goes on; a corpus has at most 16777216 bytes (16 MiB)");
    CHECK(message_of(repeated("ab", std::size_t{16} << 20)) == "no error");
    CHECK(
        message_of(repeated("\xC3\xA9", 9000) + "ab") ==
        "a.txt: byte 9002: the text ends here; folded to ASCII in lower case it has 2 bytes; a corpus has at "
        "least 4000 bytes");
    CHECK(message_of(repeated("aA", 5000)) ==
          "a.txt: byte 5000: the text ends here; folded to ASCII in lower case it has 1 symbol; a "
          "corpus has 2 to 128");
}

TEST_CASE("a corpus from a file, whose codes spell its text") {
    const Scratch scratch;
    const std::string path = scratch / "own.txt";
    write_file(path, repeated("The quick brown fox.\n", 5000));
    const Corpus corpus = load_corpus(path);
    CHECK(corpus.symbols == "\n .bcefhiknoqrtuwx");
    CHECK(decoded(corpus, corpus.codes.data(), corpus.codes.size()) == corpus.text);
    CHECK(corpus.train == 4500);
    CHECK_THROWS_AS(load_corpus(scratch / "none.txt"), Error);
    CHECK(encode(corpus, "The Fox") == encode(corpus, "the fox"));
    CHECK(encode(corpus, "\n b") == std::vector<int>{0, 1, 3});
    CHECK_THROWS_WITH(encode(corpus, "foxy"),
                      "--prompt: 'y' is not in the corpus; valid: \n .bcefhiknoqrtuwx");
    CHECK_THROWS_AS(encode(corpus, "\xC3\xA9"), Error);
}

TEST_CASE("the corpus that comes with the program is frozen") {
    setenv("FP8LAB_ASSETS", FP8LAB_SOURCE "/assets", 1);
    const Corpus corpus = shipped_corpus();
    unsetenv("FP8LAB_ASSETS");
    CHECK(corpus.text.size() == 28216);
    CHECK(corpus.symbols.size() == 55);
    CHECK(corpus.train == 25394);
    CHECK(corpus.text == read_text(FP8LAB_SOURCE "/assets/text/corpus.txt"));  // folded before
    std::uint32_t hash = 2166136261U;                                          // FNV-1a
    for (const char c : corpus.text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    CHECK(hash == 2815656109U);
}

TEST_CASE("batches of text are pieces of the corpus, each target the next character") {
    setenv("FP8LAB_ASSETS", FP8LAB_SOURCE "/assets", 1);
    const Corpus corpus = shipped_corpus();
    unsetenv("FP8LAB_ASSETS");
    const TextSequences text(corpus, 1, 8, 64), other(corpus, 2, 8, 64);
    CHECK(text.vocabulary() == 55);
    const std::string train = corpus.text.substr(0, corpus.train), held = corpus.text.substr(corpus.train);
    TokenBatch batch, again;
    std::set<std::string> pieces;
    for (int step = 0; step < 50; ++step)
        for (const bool is_held_out : {false, true}) {
            if (is_held_out)
                text.held_out(step, batch);
            else
                text.draw(step, batch);
            REQUIRE(batch.tokens.size() == 512);
            REQUIRE(batch.scored.empty());
            for (std::size_t s = 0; s < 8; ++s) {
                const std::string tokens = decoded(corpus, &batch.tokens[s * 64], 64),
                                  targets = decoded(corpus, &batch.targets[s * 64], 64);
                CHECK((is_held_out ? held : train).find(tokens + targets.back()) != std::string::npos);
                CHECK(tokens.substr(1) == targets.substr(0, 63));
                pieces.insert(tokens);
            }
        }
    CHECK(pieces.size() > 750);  // of 800: starts are at random
    text.draw(7, batch);
    text.draw(7, again);
    CHECK(batch.tokens == again.tokens);
    other.draw(7, again);
    CHECK(batch.tokens != again.tokens);
    text.held_out(7, batch);
    other.held_out(7, again);
    CHECK(batch.tokens == again.tokens);  // the same for every seed
}

TEST_CASE("every start of the part is drawn, the first and the last too") {
    const Corpus corpus = make_corpus(repeated("abcdefghijklmnopqrstuvwxyz0123456789.", 4000), "t");
    const TextSequences text(corpus, 3, 100, 396);  // 400 held out: starts 0 to 3
    TokenBatch batch;
    text.held_out(0, batch);
    std::map<int, int> starts;
    for (std::size_t s = 0; s < 100; ++s) ++starts[batch.tokens[s * 396]];
    CHECK(starts.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(starts[corpus.codes[corpus.train + i]] > 10);
    CHECK_NOTHROW(TextSequences(corpus, 3, 1, 399));
    CHECK_THROWS_WITH(
        TextSequences(corpus, 3, 1, 400),
        "--context: 400 is too long for this text: it holds out 400 characters, and a sequence takes "
        "one more than the context");
}

TEST_CASE("copying: a period of different symbols, repeated and scored from its second time on") {
    const CopyingSequences task(5, 10, 40);
    CHECK(task.vocabulary() == 16);
    TokenBatch batch;
    std::map<std::size_t, int> periods;
    std::array<int, 16> first{};
    for (int step = 0; step < 100; ++step) {
        task.draw(step, batch);
        REQUIRE(batch.tokens.size() == 400);
        for (std::size_t s = 0; s < 10; ++s) {
            const int* const tokens = &batch.tokens[s * 40];
            const int* const targets = &batch.targets[s * 40];
            const std::uint8_t* const scored = &batch.scored[s * 40];
            std::size_t period = 1;  // where the first symbol is again
            while (tokens[period] != tokens[0]) ++period;
            CHECK(period >= 4);
            CHECK(period <= 16);
            CHECK(std::set<int>(tokens, tokens + period).size() == period);
            for (std::size_t t = 0; t < 40; ++t) {
                CHECK(tokens[t] >= 0);
                CHECK(tokens[t] < 16);
                CHECK(tokens[t] == tokens[t % period]);
                CHECK(targets[t] == tokens[(t + 1) % period]);
                CHECK(scored[t] == (t >= period ? 1 : 0));
            }
            ++periods[period];
            ++first[static_cast<std::size_t>(tokens[0])];
        }
    }
    // 1000 sequences: 77 of each period and 62.5 of each first symbol; 5 standard deviations are 42 and 38.
    CHECK(periods.size() == 13);
    for (const auto& [period, count] : periods) CHECK(std::abs(count - 77) <= 42);
    for (const int count : first) CHECK(std::abs(count - 62) <= 39);
    TokenBatch again;
    task.draw(99, again);
    CHECK(again.tokens == batch.tokens);
    CopyingSequences(6, 10, 40).draw(99, again);
    CHECK(again.tokens != batch.tokens);
    task.held_out(0, batch);
    CopyingSequences(6, 10, 40).held_out(0, again);
    CHECK(again.tokens == batch.tokens);
    CHECK_THROWS_WITH(
        CopyingSequences(1, 8, 31),
        "--context: 31 is too short for the task copying, whose periods are up to 16; the shortest is 32");
    CHECK_NOTHROW(CopyingSequences(1, 8, 32));
}
