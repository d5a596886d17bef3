// saver FOLDER FIRST LAST: keeps what the window keeps, over and over, as the window does, and says on stdout
// what is saved once it is: "pass 7", "prediction 7", "settings 7", "journal 7". What the disk refuses it
// says on stderr, and goes on. "unsaved" at the end if the last retry did not help.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/files/kept_file.h"
#include "core/json/checksum.h"
#include "core/lesson/journal.h"
#include "core/lesson/progress.h"

using namespace fp8lab;

namespace {

void say(int descriptor, const std::string& line) {
    const std::string text = line + "\n";
    if (::write(descriptor, text.data(), text.size()) < 0) std::abort();
}

template <class Save>
void attempt(const std::string& what, Save&& save) {
    try {
        save();
        say(STDOUT_FILENO, what);
    } catch (const Error& error) {
        say(STDERR_FILENO, what + ": " + error.what());
    }
}

}  // namespace

int main(int, char** arguments) {
    ProfileFolders folders{std::filesystem::path(arguments[1])};
    const ProfileLock lock{folders};
    const int first = std::atoi(arguments[2]), last = std::atoi(arguments[3]);
    Progress progress{folders};
    Journal journal{folders.state / "journal.jsonl"};
    if (auto left = Journal::left_behind(folders.state / "journal.jsonl"))
        attempt("taken 0", [&] { journal.take_over(*left); });
    for (int i = first; i <= last; ++i) {
        const std::string number = std::to_string(i);
        attempt("journal " + number, [&] { journal.note("lab.bits", {{"code", i}}, "2026-11-21T14:32:00"); });
        attempt("prediction " + number, [&] {
            progress.keep("L1.1",
                          Prediction{.skipped = false, .values = {static_cast<double>(i)}, .at = number});
        });
        attempt("pass " + number, [&] {
            Evidence evidence;
            evidence.lab = "bits";
            evidence.exercise = "L1." + std::to_string(i % 3);
            evidence.seed = number;
            evidence.explanation = std::string(20000, 'x');  // several pages of a file system
            progress.keep(evidence);
        });
        attempt("settings " + number, [&] {
            make_folder(folders.config);
            save_kept(folders.config / "settings.json", with_checksum({{"number", i}}, 2));
        });
        attempt("synced " + number, [&] { journal.sync(); });
    }
    if (!progress.retry()) say(STDOUT_FILENO, "unsaved");
    return 0;
}
