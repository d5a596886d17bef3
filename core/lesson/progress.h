// The progress of a learner: exercises/<id>.json in the profile's data folder, the evidence of each pass, and
// predictions.json. Damaged files and a full disk are handled by kept_file.h and unsaved().
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/files/folders.h"
#include "core/lesson/evidence.h"

namespace fp8lab {

class Progress {
  public:
    // Reads the folder; problem() says in one sentence what happened to files that could not be read.
    explicit Progress(const ProfileFolders& folders);

    const Evidence* passed(std::string_view exercise) const;  // null: not yet
    // The file of its evidence: the previous version where the newest is damaged and cannot be replaced.
    std::filesystem::path file(std::string_view exercise) const;
    int count(std::string_view lab) const;  // passes
    // The last prediction, also of an exercise that is not passed; null: none.
    const Prediction* prediction(std::string_view exercise) const;
    const std::string& problem() const { return problem_; }
    bool lost() const { return lost_; }  // problem() includes data that is in no file any more

    // Write a file at once, whole or not at all. Throw Error{failed}; the value is kept in memory, and
    // retry() writes it.
    void keep(const Evidence& evidence);
    void keep(std::string_view exercise, const Prediction& prediction);
    // Names of files whose contents are only in memory; empty for a profile that is read-only.
    const std::set<std::string, std::less<>>& unsaved() const { return unsaved_; }
    bool retry();  // true: everything is written

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
