// Finds work that may have been copied. It is reported to the teacher and changes no verdict.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/lesson/evidence.h"

namespace fp8lab {

// The parts of evidence that are compared: the words of the explanation without case and punctuation, and the
// list of events without times. A changed name, checksum or time has no effect.
struct Fingerprint {
    std::size_t events = 0;
    std::uint64_t events_hash = 0;       // of exercise and events
    std::uint64_t words_hash = 0;        // of exercise and all words; 0: there are fewer than five
    std::uint64_t whole_hash = 0;        // of exercise, events and all words; 0: there is no word
    std::vector<std::uint64_t> phrases;  // every five words in sequence
};
Fingerprint fingerprint_of(const Evidence& evidence);

struct Likeness {
    std::string path;     // the first similar file; empty: none
    std::string student;  // the student of that file
    std::string in;       // "explanation 92 %", "17 events", "explanation 100 %, 3 events"
};

// Call compare() once per fingerprint, in the order of the files. Its time is proportional to the length of
// the fingerprint.
class Copies {
  public:
    Likeness compare(const Fingerprint& print, const std::string& path, const std::string& student);

  private:
    struct File {
        std::string path, student;
        std::uint64_t events_hash;
    };
    using Seen = std::unordered_map<std::uint64_t, std::size_t>;  // the first file with it

    std::vector<File> files_;
    Seen whole_, words_, events_, phrases_;
};

}  // namespace fp8lab
