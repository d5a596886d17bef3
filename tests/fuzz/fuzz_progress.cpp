// A profile with any bytes for each of its files: the start says what it could not read, or what it read can
// be kept and is read back as the same.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>

#include "core/base/error.h"
#include "core/lesson/journal.h"
#include "core/lesson/progress.h"
#include "tests/fuzz/with_new_checksum.h"
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

bool throws(const std::function<void()>& save) {
    try {
        save();
        return false;
    } catch (const Error& error) {
        return error.kind() == ErrorKind::failed;
    }
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
    const fs::path other = home / "other/exercises";
    put(other, "in the way");
    Progress late(home / "other");
    check(throws([&] { late.keep(*evidence); }) && late.unsaved().size() == 1 && !late.retry());
    fs::remove(other);
    put(late.file("L1.1"), "damaged");
    check(late.retry() && late.unsaved().empty() && fs::exists(other / "L1.1.json.damaged"));
    const Progress again(home / "other");
    check(again.problem().empty() && again.passed("L1.1") != nullptr);
    check(evidence_text(*again.passed("L1.1")) == evidence_text(*evidence));
}

// The one before takes the place of a damaged one.
void read_backup(const fs::path& home, const std::string& text) {
    put(home / "exercises/L1.1.json", "damaged");
    put(home / "exercises/L1.1.json.bak", text);
    const auto evidence = evidence_of(text);
    const Progress progress(home);
    check(!progress.problem().empty());
    if (!evidence) return;
    check(progress.passed(evidence->exercise) != nullptr && progress.unsaved().empty());
    check(fs::exists(home / "exercises/L1.1.json.damaged"));
    const Progress again(home);
    check(again.problem().empty() && again.count(evidence->lab) == 1);
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
    Journal fresh(home / "fresh.jsonl");
    for (const auto& [key, value] : left->values) fresh.note(key, value, left->at);
    fresh.sync();
    const auto noted = Journal::left_behind(home / "fresh.jsonl");
    check(noted && noted->at == left->at && noted->values == left->values);
    Journal nowhere(file / "journal.jsonl");
    nowhere.assume("key", 1);
    nowhere.note("key", 1, left->at);
    check(throws([&] { nowhere.note("key", 2, left->at); }));
    fresh.remove();
    check(!Journal::left_behind(home / "fresh.jsonl"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    std::string lines;  // of a journal
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines += test::with_new_checksum(text.substr(at, end - at));
        at = end + 1;
    }
    const Scratch home(memory());
    int i = 0;
    const auto folder = [&] { return home.path / std::to_string(i++); };
    for (const std::string& one : {text, test::with_new_checksum(text)}) {
        read_pass(folder(), one);
        read_backup(folder(), one);
        read_predictions(folder(), one);
    }
    for (const std::string& one : {text, lines}) read_journal(folder(), one);
    return 0;
}
