// Text as training data: characters of a small alphabet, one token each.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fp8lab {

struct Corpus {
    std::string text;        // folded, ASCII
    std::string symbols;     // the distinct characters of the text, sorted: the vocabulary
    std::vector<int> codes;  // the text as indices into symbols
    std::size_t train = 0;   // codes[0, train) are for training, the rest is held out: 90 %, rounded down
};

// A UTF-8 text as ASCII in lower case, '\n' and ' ' the only blanks. Typographic quotes, dashes, and the signs
// of less or equal, greater or equal, plus-minus, times, minus, square, arrow and ellipsis become ASCII; *, `
// and # are removed, since texts are often Markdown; runs of blanks become one blank, and runs of line ends
// one '\n'; what is left outside ASCII, and other control characters, are removed. CR LF and CR are line ends.
// Folding a folded text changes nothing. Throws input_error(where, "byte N: ...") where the bytes are not UTF-8
// (overlong forms, surrogates, values above U+10FFFF and a cut last character included).
std::string fold_text(std::string_view utf8, const std::string& where);

// Bounds of a corpus, in bytes of the text. The lower one holds for the folded text too.
inline constexpr std::size_t kShortestCorpus = 4000, kLongestCorpus = std::size_t{16} << 20;
inline constexpr std::size_t kFewestSymbols = 2, kMostSymbols = 128;

// Folds the text and codes it. Throws input_error(where, "byte N: ..."): not UTF-8, too short, too long, too
// little or fewer than two symbols left after folding. N is the offset of the offending byte, counted from 0;
// where the whole text is to blame, it is the offset of the text's end.
Corpus make_corpus(std::string_view utf8, const std::string& where);

// make_corpus() of a file; "-" is stdin. Also throws what read_bounded() does.
Corpus load_corpus(const std::string& path);

// The corpus that comes with the program, assets/text/corpus.txt: lessons and glossary of an early version,
// folded once and then frozen, so that a changed lesson changes no training. 28,216 characters, 55 symbols.
Corpus shipped_corpus();

// load_corpus(path), or the shipped one where the path is empty.
Corpus corpus_of(const std::string& path);

// A prompt as codes. Folds it; throws usage_error("--prompt", ...) that names a character which the corpus does
// not have, and where nothing is left of it.
std::vector<int> encode(const Corpus& corpus, std::string_view utf8);

}  // namespace fp8lab
