// What the window shows, kept against a crash: the journal, and after a crash the one question.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/folders.h"
#include "core/lesson/journal.h"
#include "labs/ui/context.h"

namespace fp8lab {

class Recovery {
  public:
    // say: a toast. A profile that is only read has no journal, and its question is another window's.
    Recovery(const ProfileFolders& folders, std::function<void(std::string, std::string)> say);

    bool asking() const { return left_.has_value(); }
    // The question, over everything else; takes every key. True when it was answered in this frame: then
    // restoring() has what is to be brought back, or nothing.
    bool draw(ui::Context& context);
    std::optional<Journal::Left> restoring();

    bool keeps() const { return keeps_ && !asking(); }
    Journal& journal() { return journal_; }
    // Calls `note` with the journal; what the disk refuses is said once.
    void note(const std::function<void(Journal&)>& note);
    // To the disk, at most every few seconds; returns in how many it is due, infinity: nothing is.
    double sync(double now_s);
    void close();  // the window was closed: nothing is to be brought back. An open question stays open.

  private:
    void attempt(const std::function<void()>& write);

    bool keeps_;
    std::function<void(std::string, std::string)> say_;
    Journal journal_;
    std::optional<Journal::Left> left_, restoring_;
    double synced_s_ = 0;
    std::string said_;
};

}  // namespace fp8lab
