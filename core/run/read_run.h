// Reads the logs of a run. Kinds of files, by their content:
//   JSONL of assets/hooks/fp8lab_hook.py   line 1 {"fp8lab":1,"kinds":"xwd","every":1,"recipe":"bf16"}, then
//       {"step":0,"tensor":"a.x","n":64,"nan":0,"inf":0,"zero":1,"amax":2.5,"amin":0.1,"top":1,"bins":[3,20,40]},
//       {"step":0,"loss":1.25} and, of its InspectLogger, {"step":0,"name":"a_activation_cur_amax","value":2.5}.
//       NaN, Infinity and -Infinity are numbers, as Python writes them. Members that are not known are skipped.
//   nvidia-dlfw-inspect 0.2, nvdlfw_inspect_globalrank-R.log   TIME - INFO - NAME_STAT  iteration=%06d  value=%.4f.
//       activation, weight and gradient become .x, .w and .dy; cur_amax, RECIPE_underflows% and scale_inv_min are kept.
//       An amax of 0.0000 is below 0.00005, not 0.
//   `train --csv`   one arm of it.
//
//   RunReader reader({"run.jsonl"});
//   reader.read();                       // to the end of the file
//   findings(reader.log(), recipe);
//   reader.read();                       // what was appended since
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/run/run_log.h"

namespace fp8lab {

struct RunSelection {
    std::string arm = {};  // of a CSV; empty: the first one with values of tensors
    // Of files named ...globalrank-R.log, or else the last number in the name of a log of the hook. -1: the lowest
    // globalrank that is there, and all logs of the hook.
    int rank = -1;
};

struct ReadProgress {
    std::uint64_t bytes_read = 0, bytes = 0;  // of all files
    double fraction() const {
        return bytes == 0 ? 1 : static_cast<double>(bytes_read) / static_cast<double>(bytes);
    }
};

class RunReader {
  public:
    // Files and folders; of a folder all files of these kinds, also of its subfolder nvdlfw_inspect_statistics_logs.
    // What several files say of the same tensor and step is joined; where two say different things the later file
    // wins, except of two logs of the hook: read() refuses them. Reads nothing yet but the names.
    // Throws input_error: no such file, a folder without logs; usage_error: a rank that is not there.
    explicit RunReader(const std::vector<std::filesystem::path>& paths, RunSelection selection = {});
    // A log in memory, under that name.
    RunReader(std::string text, std::string where, RunSelection selection = {});
    ~RunReader();
    RunReader(const RunReader&) = delete;
    RunReader& operator=(const RunReader&) = delete;

    // Reads to the end of what the files have now; the next call reads on from there. `report` is called between
    // blocks of some megabytes, on this thread, when log() can be read: 0.1 s after the start at the latest, and then
    // after each block. May be called on a worker thread: it calls ask_between() (core/threads/ask.h), so that whoever
    // waits for it can end it, and lines are read by all threads of parallel_for().
    // Throws input_error(file, "line 12 at byte 3456: WHY"); what was read before that line stays in log(). Throws
    // input_error(file, WHY) where two logs of the hook have the same tensor and step, or were trained in two recipes.
    // A last line without an end is left for the next call; notes say so, unless it is complete JSON.
    void read(const std::function<void(const ReadProgress&)>& report = {});

    const RunLog& log() const;
    RunLog take();  // moves the log out; the reader is then at its end
    ReadProgress progress() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// All of it at once.
RunLog read_run(const std::vector<std::filesystem::path>& paths, RunSelection selection = {});
RunLog read_run_text(std::string text, std::string where, RunSelection selection = {});

}  // namespace fp8lab
