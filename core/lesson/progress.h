// What a learner has done so far: profile/exercises/<id>.json, the evidence of each pass, and
// predictions.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/lesson/evidence.h"

namespace fp8lab {

class Progress {
  public:
    // Reads the folder; a file that cannot be read is renamed to .bak and named in problem().
    explicit Progress(std::filesystem::path profile_folder);

    const Evidence* passed(std::string_view exercise) const;  // null: not yet
    std::filesystem::path file(std::string_view exercise) const;
    int count(std::string_view lab) const;  // passes
    // The last one committed, also of an exercise that is not passed; null: none.
    const Prediction* prediction(std::string_view exercise) const;
    const std::string& problem() const { return problem_; }

    // Kept at once, whole or not at all. Throw Error{failed}; the pass then counts until the window closes.
    void keep(const Evidence& evidence);
    void keep(std::string_view exercise, const Prediction& prediction);

  private:
    void read(const std::filesystem::path& file);
    std::filesystem::path folder_;
    std::map<std::string, Evidence, std::less<>> passed_;
    std::map<std::string, Prediction, std::less<>> predictions_;
    std::string problem_;
};

}  // namespace fp8lab
