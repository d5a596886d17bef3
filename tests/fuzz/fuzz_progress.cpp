// A profile with any bytes for each of its files: the start says what it could not read, or what it read can
// be kept and is read back as the same.
#include <cstdlib>
#include <fstream>

#include "core/base/error.h"
#include "core/lesson/journal.h"
#include "core/lesson/progress.h"
#include "tests/fuzz/sealed_anew.h"
#include "tests/scratch.h"

namespace {

using namespace fp8lab;
namespace fs = std::filesystem;

void check(bool holds) {
    if (!holds) std::abort();
}

// Where fsync costs nothing.
fs::path memory() { return fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path(); }

void put(const fs::path& file, std::string_view text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
}

// Nothing: it is none, and says so.
std::optional<Evidence> evidence_of(const std::string& text) {
    try {
        return parse_evidence(text, "e");
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input || error.kind() == ErrorKind::failed);
        return {};
    }
}

void same(const Prediction* a, const Prediction* b) {
    check((a == nullptr) == (b == nullptr));
    if (a != nullptr) check(to_json(*a) == to_json(*b));
}

void read_pass(const fs::path& home, const std::string& text) {
    put(home / "exercises/L1.1.json", text);
    ProfileFolders folders{home};
    folders.access = Access::read_only;
    const Progress progress(folders);
    auto evidence = evidence_of(text);
    check(progress.problem().empty() == evidence.has_value());
    if (!evidence) return;
    check(progress.count(evidence->lab) == 1 && progress.passed(evidence->exercise) != nullptr);
    evidence->exercise = "L1.1";
    const Scratch other(memory());
    Progress(other.path).keep(*evidence);
    const Progress again(other.path);
    check(again.problem().empty() && again.passed("L1.1") != nullptr);
    check(evidence_text(*again.passed("L1.1")) == evidence_text(*evidence));
}

void read_predictions(const fs::path& home, const std::string& text) {
    put(home / "exercises/predictions.json", text);
    Progress progress(home);
    if (!progress.problem().empty()) {  // set aside: the next start has nothing to say
        check(fs::exists(home / "exercises/predictions.json.damaged") && Progress(home).problem().empty());
        return;
    }
    const Prediction more{.skipped = false, .values = {1, 2}, .at = "14:32"};
    progress.keep("L9.9", more);
    const Progress again(home);
    check(again.problem().empty());
    same(again.prediction("L9.9"), &more);
    same(again.prediction("L1.1"), progress.prediction("L1.1"));
}

void read_journal(const fs::path& home, const std::string& text) {
    const fs::path file = home / "journal.jsonl";
    put(file, text);
    const auto left = Journal::left_behind(file);
    if (!left) return;
    check(!left->values.empty());
    Journal journal(file);
    journal.take_over(*left);
    journal.note("key", text.size(), left->at);
    const auto again = Journal::left_behind(file);
    check(again && again->at == left->at && again->values.at("key") == text.size());
    for (const auto& [key, value] : left->values) check(key == "key" || again->values.at(key) == value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    std::string lines;  // of a journal
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines += test::sealed_anew(text.substr(at, end - at));
        at = end + 1;
    }
    for (const std::string& one : {text, test::sealed_anew(text)}) {
        const Scratch pass(memory()), predictions(memory());
        read_pass(pass.path, one);
        read_predictions(predictions.path, one);
    }
    for (const std::string& one : {text, lines}) {
        const Scratch journal(memory());
        read_journal(journal.path, one);
    }
    return 0;
}
