// What a learner has done so far: exercises/<id>.json in the profile's data, the evidence of each pass, and
// predictions.json. Nothing here is lost by a file that is damaged or a disk that is full: see kept_file.h,
// and unsaved().
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/base/folders.h"
#include "core/lesson/evidence.h"

namespace fp8lab {

class Progress {
  public:
    // Reads the folder; what became of files that could not be read is in problem(), as one sentence.
    explicit Progress(const ProfileFolders& folders);

    const Evidence* passed(std::string_view exercise) const;  // null: not yet
    // Where its evidence was read from: the previous file where this one is damaged and cannot be replaced.
    std::filesystem::path file(std::string_view exercise) const;
    int count(std::string_view lab) const;  // passes
    // The last one committed, also of an exercise that is not passed; null: none.
    const Prediction* prediction(std::string_view exercise) const;
    const std::string& problem() const { return problem_; }
    bool lost() const { return lost_; }  // some of the work that problem() names is lost

    // Kept at once, whole or not at all. Throw Error{failed}; it then counts all the same, and retry() writes
    // it.
    void keep(const Evidence& evidence);
    void keep(std::string_view exercise, const Prediction& prediction);
    // What is only in memory: file names. Never of a profile that is only read.
    const std::set<std::string, std::less<>>& unsaved() const { return unsaved_; }
    bool retry();  // true: all is written

  private:
    void write(const std::string& name);
    std::string text_of(const std::string& name) const;

    std::filesystem::path folder_;
    Access access_;
    std::string why_read_only_;
    std::map<std::string, Evidence, std::less<>> passed_;
    std::map<std::string, Prediction, std::less<>> predictions_;
    std::set<std::string, std::less<>> unsaved_;
    std::string problem_;
    bool lost_ = false;
    std::set<std::string, std::less<>> from_previous_;  // files whose .bak was read instead
};

}  // namespace fp8lab
