#include "labs/grading/submission.h"

#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/files/files.h"
#include "core/formats/codec.h"
#include "core/lesson/progress.h"
#include "core/threads/parallel.h"
#include "labs/course/exercise_run.h"

namespace fp8lab {

std::vector<std::pair<std::string, std::string>> machine_card() {
    std::string targets;
    for (const char* target : vector_targets()) targets += (targets.empty() ? "" : " ") + std::string(target);
    const std::string obstacle = gpu_obstacle();
    utsname system{};
    ::uname(&system);
    return {{"processor", cpu_backend()->device().name},
            {"threads", std::to_string(threads())},
            {"vector units", targets},
            {"GPU", obstacle.empty() ? "one is there" : obstacle},
            {"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
            {"FP8 Lab", FP8LAB_VERSION}};
}

Bundle make_submission(ProfileFolders folders, std::string student,
                       const std::function<void(const std::string&)>& notice) {
    folders.access = Access::read_only;  // looking at it changes nothing
    const std::filesystem::path& profile_folder = folders.data;
    const Progress progress(folders);
    std::error_code none;
    if (!std::filesystem::is_directory(profile_folder, none))
        throw input_error(
            profile_folder.string(),
            std::filesystem::exists(profile_folder, none)
                ? "is a file, not the folder of a profile"
                : "does not exist, so no exercise was begun there; name the folder of your profile "
                  "with --profile");
    if (progress.lost()) throw input_error(profile_folder.string(), progress.problem());
    if (notice && !progress.problem().empty())
        notice("fp8lab: " + profile_folder.string() + ": " + progress.problem());
    Bundle out{.student = std::move(student),
               .version = FP8LAB_VERSION,
               .at = local_time(),
               .machine = machine_card(),
               .evidence = {},
               .predictions = {}};
    for (const ExerciseEntry& entry : all_exercises()) {
        const std::string& id = entry.exercise->id;
        if (const Prediction* prediction = progress.prediction(id)) out.predictions[id] = *prediction;
        if (progress.passed(id)) out.evidence.push_back(read_text(progress.file(id)));
    }
    if (out.evidence.empty() && out.predictions.empty())
        throw input_error(profile_folder.string(),
                          "holds no exercise that was begun; begin one in the window, or name the folder of "
                          "your profile with "
                          "--profile");
    return out;
}

}  // namespace fp8lab
