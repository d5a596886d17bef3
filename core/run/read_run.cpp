#include "core/run/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/files/random_file.h"
#include "core/run/log_files.h"
#include "core/run/open_log.h"
#include "core/scaling/recipe.h"

namespace fp8lab {

struct RunReader::State {
    std::vector<OpenLog> files;
    RunSelection selection;
    LogBuilder built;
    std::vector<std::string> file_notes;

    ReadProgress progress() const {
        ReadProgress out;
        for (const OpenLog& file : files) {
            out.bytes_read += file.consumed;
            out.bytes += std::max(file.size, file.consumed);
        }
        return out;
    }

    // The log can be read after this.
    void finish() {
        built.settle();
        check_one_run();
        RunLog& log = built.log;
        log.notes = file_notes;
        for (const OpenLog& file : files) {
            if (file.kind == LogKind::csv && file.has_arm) {
                log.arm = file.arm;
                log.recipe = file.arm;
            }
            if (file.open_end)
                log.notes.push_back(
                    fmt::format("{}: its last line, line {} at byte {}, has no end and was not read",
                                file.where, file.lines + 1, file.consumed));
            if (file.skipped > 0)
                log.notes.push_back(fmt::format("{}: {} line{} no statistics that are read", file.where,
                                                file.skipped, file.skipped == 1 ? " is" : "s are"));
        }
        if (selection.arm.empty() && log.arms.size() > 1)
            log.notes.push_back(
                fmt::format("arm {} of {} is read; --arm chooses another", log.arm, log.arms.size()));
        note_recipe();
        note_order();
        note_rounding();
    }

    // Logs of the hook are of one run, and each says something else of it: other tensors or other steps.
    void check_one_run() const {
        const OpenLog* said = nullptr;
        for (const OpenLog& file : files) {
            if (file.source == 0 || file.recipe.empty()) continue;
            if (said && said->recipe != file.recipe)
                throw input_error(file.where, fmt::format("it was trained in {}, {} in {}: name one of them",
                                                          file.recipe, said->where, said->recipe));
            said = &file;
        }
        for (const TensorSeries& series : built.log.tensors)
            if (const auto& same = series.same_record())
                throw input_error(
                    files[same->second - std::size_t{1}].where,
                    fmt::format("{} in step {} is in {} too, so that these are two ranks or runs: name one "
                                "of them, or choose by --rank the last number of its name",
                                series.name(), same->step, files[same->first - std::size_t{1}].where));
    }

    // A recipe that this program does not know is no reason not to look at the tensors.
    void note_recipe() {
        try {
            if (!built.log.recipe.empty()) parse_recipe(built.log.recipe);
        } catch (const Error&) {
            built.log.notes.push_back(
                fmt::format("the log says recipe {}, which is none of this program's", built.log.recipe));
        }
    }

    void note_order() {
        std::uint64_t unsorted = 0, twice = 0;
        for (const TensorSeries& series : built.log.tensors) {
            unsorted += series.unsorted();
            twice += series.twice();
        }
        if (unsorted > 0)
            built.log.notes.push_back(
                fmt::format("{} record{} came after one of a later step: they were sorted", unsorted,
                            unsorted == 1 ? "" : "s"));
        if (twice > 0)
            built.log.notes.push_back(fmt::format(
                "{} records are of a tensor and a step that were there before: the later one is taken",
                twice));
    }

    void note_rounding() {
        std::uint64_t below = 0;
        for (const TensorSeries& series : built.log.tensors)
            if (series.resolution() > 0)
                below +=
                    static_cast<std::uint64_t>(std::ranges::count(series.points(), 0.0F, &TensorPoint::amax));
        if (below > 0)
            built.log.notes.push_back(
                fmt::format("{} amaxes read 0.0000: they are below 0.00005, not 0. InspectLogger of "
                            "fp8lab_hook.py logs all digits",
                            below));
    }
};

RunReader::RunReader(const std::vector<std::filesystem::path>& paths, RunSelection selection)
    : state_(std::make_unique<State>()) {
    LogFiles files = log_files(paths, selection.rank);
    state_->selection = std::move(selection);
    state_->file_notes = std::move(files.notes);
    if (files.paths.size() >= std::numeric_limits<std::uint16_t>::max())
        throw input_error(files.paths.front().string(), "more than 65,534 logs");
    for (const auto& path : files.paths) {
        OpenLog file;
        file.path = path;
        file.where = path.string();
        file.size = RandomFile(path).size();
        state_->files.push_back(std::move(file));
    }
}

RunReader::RunReader(std::string text, std::string where, RunSelection selection)
    : state_(std::make_unique<State>()) {
    state_->selection = std::move(selection);
    OpenLog file;
    file.where = std::move(where);
    file.size = text.size();
    file.text = std::move(text);
    state_->files.push_back(std::move(file));
}

RunReader::~RunReader() = default;

void RunReader::read(const std::function<void(const ReadProgress&)>& report) {
    State& state = *state_;
    for (std::size_t i = 0; i < state.files.size(); ++i)
        read_log(state.files[i], static_cast<std::uint16_t>(i + 1), state.selection.arm, state.built, [&] {
            state.finish();
            if (report) report(state.progress());
        });
    state.finish();
    const std::string& arm = state.selection.arm;
    const auto& arms = state.built.log.arms;
    const bool complete =
        std::ranges::all_of(state.files, [](const OpenLog& file) { return file.consumed > 0; });
    if (!arm.empty() && complete && std::ranges::find(arms, arm) == arms.end()) {
        if (arms.empty()) throw usage_error("--arm", "the log has no arms: it is no CSV of fp8lab train");
        throw unknown_name("--arm", "arm", arm, arms, [](const std::string& name) { return name; });
    }
}

const RunLog& RunReader::log() const { return state_->built.log; }
ReadProgress RunReader::progress() const { return state_->progress(); }

RunLog RunReader::take() { return std::exchange(state_->built, {}).log; }

RunLog read_run(const std::vector<std::filesystem::path>& paths, RunSelection selection) {
    RunReader reader(paths, std::move(selection));
    reader.read();
    return reader.take();
}

RunLog read_run_text(std::string text, std::string where, RunSelection selection) {
    RunReader reader(std::move(text), std::move(where), std::move(selection));
    reader.read();
    return reader.take();
}

}  // namespace fp8lab
