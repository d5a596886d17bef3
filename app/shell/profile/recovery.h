// The journal of what the window shows, and the question that the window asks after a crash.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/files/folders.h"
#include "core/lesson/journal.h"
#include "labs/ui/context.h"

namespace fp8lab {

// The title of what is said when the disk takes no journal.
constexpr const char* kCrashWould = "A crash would lose your place";

class Recovery {
  public:
    // say: a toast. A profile that is only read has no journal, and its question is another window's. `asks`: there will be a
    // question, so that which lab was open is not worth one.
    Recovery(const ProfileFolders& folders, bool asks, std::function<void(std::string, std::string)> say);

    bool asking() const { return left_.has_value(); }
    // The question, over everything else; takes every key. True when it was answered in this frame: then
    // restoring() has what is to be brought back, or nothing.
    bool draw(ui::Context& context);
    std::optional<Journal::Left> restoring();
    void accept();  // as if the answer was "Restore"

    bool keeps() const { return keeps_ && !asking(); }
    Journal& journal() { return journal_; }
    // Calls `note` with the journal. A failure to write is reported once and is in problem() until a later call
    // succeeds.
    void note(const std::function<void(Journal&)>& note);
    // Writes to the disk, at most every few seconds. Returns in how many seconds the next write is due; infinity:
    // there is nothing to write.
    double sync(double now_s);
    const std::string& problem() const { return not_noted_.empty() ? not_synced_ : not_noted_; }
    void close();  // the window was closed: nothing is to be brought back. An open question stays open.

  private:
    void attempt(std::string& problem, const std::function<void()>& write);

    bool keeps_;
    std::function<void(std::string, std::string)> say_;
    Journal journal_;
    std::optional<Journal::Left> left_, restoring_;
    double synced_s_ = 0;
    std::string not_noted_, not_synced_;  // why
};

}  // namespace fp8lab
