#include "labs/grading/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace fp8lab {
namespace {

// Shorter lists are found by many without each other: three flips make 448. With the same words they tell.
constexpr std::size_t kTellingEvents = 8;
// Phrases of five words are shared by chance only where the question gave them.
constexpr std::size_t kPhrase = 5;
constexpr std::size_t kTellingPercent = 60;
constexpr std::size_t kMostWords = 5'000;

class WordHash {
  public:
    explicit WordHash(std::string_view first) { add(first); }
    void add(std::string_view text) {
        for (const char c : text) mix(static_cast<unsigned char>(c));
        mix(0x100);  // no byte: "ab", "c" and "a", "bc" differ
    }
    std::uint64_t value() const { return h_; }

  private:
    void mix(std::uint64_t x) { h_ = (h_ ^ x) * 0x100000001B3ULL; }
    std::uint64_t h_ = 0xCBF29CE484222325ULL;
};

// Lower case, letters and digits only; bytes beyond ASCII are letters.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> out(1);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x80 || std::isalnum(byte))
            out.back() += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
        else if (!out.back().empty() && out.size() < kMostWords)
            out.emplace_back();
    }
    if (out.back().empty()) out.pop_back();
    return out;
}

}  // namespace

Fingerprint fingerprint_of(const Evidence& evidence) {
    Fingerprint out;
    WordHash events(evidence.exercise);
    for (const Evidence::EventGroup& group : evidence.groups)
        for (const Event& event : group.events) {
            events.add(std::to_string(static_cast<int>(event.kind)));
            events.add(event.name);
            events.add(event.value);
            ++out.events;
        }
    out.events_hash = events.value();
    const std::vector<std::string> words = words_of(evidence.explanation);
    if (words.empty()) return out;
    WordHash all(evidence.exercise);
    for (const std::string& word : words) {
        events.add(word);
        all.add(word);
    }
    out.whole_hash = events.value();
    if (words.size() >= kPhrase) out.words_hash = all.value();
    for (std::size_t i = 0; i + kPhrase <= words.size(); ++i) {
        WordHash phrase(evidence.exercise);
        for (std::size_t k = i; k < i + kPhrase; ++k) phrase.add(words[k]);
        out.phrases.push_back(phrase.value());
    }
    return out;
}

Likeness Copies::compare(const Fingerprint& print, const std::string& path, const std::string& student) {
    const std::size_t self = files_.size();
    files_.push_back({path, student, print.events_hash});
    const auto first_of = [self](Seen& seen, std::uint64_t key) -> std::optional<std::size_t> {
        const std::size_t first = seen.try_emplace(key, self).first->second;
        return first == self ? std::nullopt : std::optional(first);
    };
    const auto same_events = first_of(events_, print.events_hash);
    const auto same_words = print.words_hash == 0 ? std::nullopt : first_of(words_, print.words_hash);
    const auto same_whole = print.whole_hash == 0 ? std::nullopt : first_of(whole_, print.whole_hash);
    std::map<std::size_t, std::size_t> shared;  // phrases, by the file that had them first
    for (const std::uint64_t phrase : print.phrases)
        if (const auto first = first_of(phrases_, phrase)) ++shared[*first];
    const auto most = std::ranges::max_element(shared, {}, [](const auto& entry) { return entry.second; });
    const std::size_t percent = most == shared.end() ? 0 : 100 * most->second / print.phrases.size();

    std::optional<std::size_t> like;
    std::string in;
    if (same_words || same_whole) {  // also where the phrases were first seen in several other files
        like = same_words ? same_words : same_whole;
        in = "explanation 100 %";
    } else if (percent >= kTellingPercent) {
        like = most->first;
        in = fmt::format("explanation {} %", percent);
    } else if (print.events >= kTellingEvents) {
        like = same_events;
    }
    if (!like) return {};
    if (print.events > 0 && files_[*like].events_hash == print.events_hash)
        in += fmt::format("{}{} event{}", in.empty() ? "" : ", ", print.events, print.events == 1 ? "" : "s");
    return {.path = files_[*like].path, .student = files_[*like].student, .in = std::move(in)};
}

}  // namespace fp8lab
