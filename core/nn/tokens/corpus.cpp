#include "core/nn/tokens/corpus.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"

namespace fp8lab {
namespace {

Error corpus_error(const std::string& where, std::size_t byte, const std::string& why) {
    return input_error(where, "byte " + std::to_string(byte) + ": " + why);
}

struct Replacement {
    char32_t from;
    std::string_view to;
};
// The signs that the texts of this program use, and the two letters outside ASCII whose lower case is in it.
constexpr Replacement kReplacements[] = {
    {U'\u00A0', " "},  {U'\u00B1', "+-"},  {U'\u00B2', "2"},  {U'\u00D7', "x"}, {U'\u0130', "i"},
    {U'\u2013', "-"},  {U'\u2014', "-"},   {U'\u2018', "'"},  {U'\u2019', "'"}, {U'\u201C', "\""},
    {U'\u201D', "\""}, {U'\u2026', "..."}, {U'\u2192', "->"}, {U'\u212A', "k"}, {U'\u2212', "-"},
    {U'\u2264', "<="}, {U'\u2265', ">="},
};

// The character of `text` whose first byte is number `at`, and its length in bytes; none where the bytes are not
// UTF-8 (The Unicode Standard, table 3-7).
struct Decoded {
    char32_t value;
    std::size_t length;
};
std::optional<Decoded> decode(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(at);
    if (lead < 0x80) return Decoded{lead, 1};
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || length > text.size() - at) return {};
    char32_t value = lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0U) != 0x80) return {};
        value = value << 6 | (byte(at + i) & 0x3FU);
    }
    constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
    if (value < kLeast[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return {};
    return Decoded{value, length};
}

// Adds what one ASCII character folds to.
void append_folded(char c, std::string& out) {
    if (c == '\t') c = ' ';
    if (c == '\r') c = '\n';
    if ((c == ' ' || c == '\n') && out.ends_with(c)) return;
    if (c != '\n' && (c < ' ' || c > '~')) return;
    if (c == '*' || c == '`' || c == '#') return;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string fold_text(std::string_view utf8, const std::string& where) {
    std::string out;
    out.reserve(utf8.size());
    for (std::size_t at = 0; at < utf8.size();) {
        const std::optional<Decoded> next = decode(utf8, at);
        if (!next) throw corpus_error(where, at, "not UTF-8; convert the text to UTF-8 first");
        at += next->length;
        if (next->value < 0x80) {
            append_folded(static_cast<char>(next->value), out);
            continue;
        }
        const auto found = std::ranges::find(kReplacements, next->value, &Replacement::from);
        if (found == std::ranges::end(kReplacements)) continue;
        for (const char c : found->to) append_folded(c, out);
    }
    return out;
}

Corpus make_corpus(std::string_view utf8, const std::string& where) {
    const std::string least = "a corpus has at least " + std::to_string(kShortestCorpus) + " bytes";
    if (utf8.size() < kShortestCorpus) throw corpus_error(where, utf8.size(), "the text ends here; " + least);
    if (utf8.size() > kLongestCorpus)
        throw corpus_error(
            where, kLongestCorpus,
            "the text goes on; a corpus has at most " + std::to_string(kLongestCorpus) + " bytes (16 MiB)");
    Corpus corpus;
    corpus.text = fold_text(utf8, where);
    const std::string folded = "the text ends here; folded to ASCII in lower case it has ";
    if (corpus.text.size() < kShortestCorpus)
        throw corpus_error(where, utf8.size(),
                           folded + std::to_string(corpus.text.size()) + " bytes; " + least);
    std::array<int, 128> code;
    code.fill(-1);
    for (const char c : corpus.text) code[static_cast<unsigned char>(c)] = 0;
    for (std::size_t c = 0; c < code.size(); ++c)
        if (code[c] == 0) {
            code[c] = static_cast<int>(corpus.symbols.size());
            corpus.symbols += static_cast<char>(c);
        }
    if (corpus.symbols.size() < kFewestSymbols || corpus.symbols.size() > kMostSymbols)
        throw corpus_error(where, utf8.size(),
                           folded + std::to_string(corpus.symbols.size()) +
                               (corpus.symbols.size() == 1 ? " symbol" : " symbols") + "; a corpus has " +
                               std::to_string(kFewestSymbols) + " to " + std::to_string(kMostSymbols));
    corpus.codes.reserve(corpus.text.size());
    for (const char c : corpus.text) corpus.codes.push_back(code[static_cast<unsigned char>(c)]);
    corpus.train = corpus.codes.size() * 9 / 10;
    return corpus;
}

Corpus load_corpus(const std::string& path) { return make_corpus(read_bounded(path, kLongestCorpus), path); }

Corpus shipped_corpus() { return load_corpus(asset("text/corpus.txt").string()); }

std::vector<int> encode(const Corpus& corpus, std::string_view utf8) {
    const std::string text = fold_text(utf8, "--prompt");
    if (text.empty()) throw usage_error("--prompt", "has no character of the corpus; give at least one");
    std::vector<int> codes;
    for (const char c : text) {
        const std::size_t code = corpus.symbols.find(c);
        if (code == std::string::npos)
            throw usage_error("--prompt",
                              std::string("'") + c + "' is not in the corpus; valid: " + corpus.symbols);
        codes.push_back(static_cast<int>(code));
    }
    return codes;
}

Corpus corpus_of(const std::string& path) { return path.empty() ? shipped_corpus() : load_corpus(path); }

}  // namespace fp8lab
