// fp8lab train: one arm per recipe on the same batches. Progress goes to stderr, the data asked for to
// stdout.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/option_values.h"
#include "app/cli/preparing.h"
#include "app/cli/train/process.h"
#include "app/cli/train/train_options.h"
#include "app/cli/train/train_report.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/memory.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/json/trace_events.h"
#include "core/nn/memory/cpu_memory.h"
#include "core/nn/model.h"
#include "core/threads/ask.h"
#include "core/trainer/checkpoint.h"

namespace fp8lab::cli {

namespace {

constexpr int kTraceSteps = 20;

struct TrainArguments {
    TrainFlags flags;
    std::string backend = "auto", csv, json, save, resume, trace;
    std::optional<int> trace_steps;
    bool fail_on_nan = false;
};

// A run of hours must not end at a folder that is not there.
void declare_train_files(const TrainArguments& arguments, const TrainSpec& spec) {
    Outputs files;
    if (arguments.csv != "-" && arguments.json != "-" && arguments.trace != "-")
        files.prints("stdout");  // the table of the arms
    for (const std::string& input : {spec.x_path, spec.y_path, spec.text_path, spec.init_from, spec.teacher})
        if (!input.empty()) files.reads(input);
    if (!arguments.resume.empty())
        for (const auto& input : checkpoints_to_load(arguments.resume)) files.reads(input);
    if (!arguments.csv.empty()) files.writes("--csv", arguments.csv, Holds::table);
    if (!arguments.json.empty()) files.writes("--json", arguments.json, Holds::json);
    if (!arguments.trace.empty()) files.writes("--trace", arguments.trace, Holds::json);
    if (arguments.save.empty()) return;
    files.writes_into("--save", arguments.save);
    check_replaceable_set("--save", arguments.save, spec);
    std::error_code none;
    for (const auto& output : checkpoints_to_save(arguments.save, spec))
        if (std::filesystem::exists(output, none)) files.writes("--save", output, Holds::tensors);
}

// The trainer asks for itself; it does not know that its checkpoints will be saved. Each rank on a GPU reads all that is saved.
void require_memory_for(const TrainArguments& options, const TrainSpec& spec, Backend& backend) {
    const int readers = spec.devices.empty() || spec.ranks.process ? 1 : spec.ranks.count;
    double bytes = options.save.empty() ? 0 : checkpoint_bytes(spec) * readers;
    if (backend.device().provenance == Provenance::cpu_emulated) bytes += cpu_training_bytes(spec);
    require_memory("train", bytes);
}

std::unique_ptr<Trainer> prepare(Backend& backend, const TrainSpec& spec, const std::string& resume) {
    ProgressLine progress(spec.ranks.reports());
    const AskBetween ask(progress.asker());
    progress.at(fmt::format("preparing {} arms", spec.arms.size()));
    auto trainer = backend.make_trainer(spec, told_on_stderr(spec.ranks.reports()));
    if (resume.empty()) return trainer;
    progress.at("reading " + resume);
    trainer->load(resume);
    if (trainer->steps_done() >= spec.steps)
        throw usage_error(
            "--steps",
            fmt::format("{} has done {} steps; --steps counts from the very first and must be more", resume,
                        trainer->steps_done()));
    for (const std::string& change : changes_on_resume(resume, spec))
        if (spec.ranks.reports()) tell(fmt::format("fp8lab: {}: {}", resume, change));
    return trainer;
}

// Trains to the end, or to a signal, which gives up the step at hand.
void train_all(Trainer& trainer, TrainReport& report) {
    ProgressLine progress(trainer.spec().ranks.reports());
    const int steps = trainer.spec().steps;
    progress.at(fmt::format("step {} of {}", trainer.steps_done(), steps));
    try {
        while (trainer.steps_done() < steps && !trainer.all_stopped()) {
            // Processes that are ranks of one training stop, and look at their records, at the same step.
            constexpr unsigned kStop = 1, kLook = 2;
            const unsigned flags =
                trainer.of_any_rank((interrupted() ? kStop : 0) | (progress.due() ? kLook : 0));
            if (flags & kLook) {
                report.add(trainer.snapshot());
                progress.at(report.progress());
            }
            if (flags & kStop) break;
            const AskBetween ask(progress.asker());
            trainer.step(std::min(trainer.steps_per_call(), steps - trainer.steps_done()));
        }
    } catch (const Interrupted&) {
    }
    report.add(trainer.snapshot());
}

// The checkpoints first: they take hours to make again, and a full disk may refuse what comes later.
void write_files(const TrainArguments& options, const Trainer& trainer, const TrainReport& report,
                 const std::string& trace) {
    if (!options.save.empty()) trainer.save(options.save);
    if (!trainer.spec().ranks.reports()) return;
    if (!options.csv.empty() && options.csv != "-") write_file(options.csv, report.csv());
    if (!options.json.empty() && options.json != "-") write_file(options.json, json_text(report.json()));
    if (!options.trace.empty() && options.trace != "-") write_file(options.trace, trace);
}

// Last, so that a reader of stdout who does not read keeps no file from being written.
void print_report(const TrainArguments& options, const TrainReport& report, const std::string& trace) {
    if (options.csv == "-")
        write_stdout(report.csv());
    else if (options.json == "-")
        print_json(report.json());
    else if (options.trace == "-")
        write_stdout(trace);
    else
        write_stdout(report.table());
}

void refuse_nan(const TrainReport& report) {
    for (const ArmSummary& arm : report.summaries())
        if (arm.stopped)
            throw Error(ErrorKind::failed, "train",
                        fmt::format("{}: {}", arm.recipe, to_string(*arm.stopped)));
}

// The trace of --trace: recorded while it exists.
class Recorded {
  public:
    Recorded(const TrainArguments& options, Trainer& trainer) {
        if (options.trace.empty()) return;
        std::vector<std::string> names;
        for (const Recipe& recipe : trainer.spec().arms) names.push_back(recipe.name);
        trace_.emplace(names, static_cast<std::size_t>(options.trace_steps.value_or(kTraceSteps)));
        trainer.record_spans(*trace_);
    }
    // Chrome's trace events, with what every JSON has. Empty: there is none.
    std::string text(const TrainSpec& spec, const DeviceInfo& device) const {
        if (!trace_) return {};
        nlohmann::json out = json_header(device, spec.seed);
        out["command_line"] = command_line(spec);
        out["displayTimeUnit"] = "ms";
        out["traceEvents"] = trace_events(*trace_);
        return json_text(out);
    }

  private:
    std::optional<Trace> trace_;
};

// Before any work: what only the CPU records is not found out after an hour on a GPU.
void check_trace(const TrainArguments& options, const DeviceInfo& device) {
    if (options.trace_steps && options.trace.empty())
        throw usage_error("--trace-steps", "has no effect without --trace");
    if (!options.trace.empty() && device.provenance != Provenance::cpu_emulated)
        throw Error(
            ErrorKind::backend, "--trace",
            "is recorded on the CPU (--backend cpu); a training on a GPU has NVTX ranges, which Nsight "
            "Systems shows");
}

void train_arms(TrainArguments options) {
    const auto choose = [&](const std::vector<int>& devices) { return choose_for(options.backend, devices); };
    ChosenBackend chosen;
    if (options.flags.devices == "all") {  // how many there are says the backend
        chosen = choose({});
        options.flags.gpus = chosen.backend->devices();
    }
    options.flags.process = process_of_environment();
    if (options.flags.process && options.backend == "cpu")
        throw Error(ErrorKind::backend, "WORLD_SIZE", "is set: ranks that are processes train on GPUs");
    const TrainSpec spec = options.flags.spec();
    if (const auto& own = spec.ranks.process) chosen = choose({own->device});
    if (!chosen.backend)
        chosen = choose(options.flags.devices.empty() ? std::vector<int>()
                                                      : parse_devices(options.flags.devices, 0));
    const bool reports = spec.ranks.reports();
    check_trace(options, chosen.backend->device());
    if (reports) declare_train_files(options, spec);
    require_memory_for(options, spec, *chosen.backend);
    const auto trainer = prepare(*chosen.backend, spec, options.resume);
    const DeviceInfo device = chosen.backend->device();
    if (reports) tell_backend(chosen);
    if (const std::string note = trainer->note(); reports && !note.empty()) tell(note);
    TrainReport report(trainer->spec(), device);
    const Recorded recorded(options, *trainer);
    std::string trace;
    {
        const Interruptible keeps;
        train_all(*trainer, report);
        trace = recorded.text(trainer->spec(), device);
        write_files(options, *trainer, report, trace);
    }
    if (reports) print_report(options, report, trace);
    end_if_interrupted(fmt::format("after {} of {} steps; what was measured is written",
                                   trainer->steps_done(), trainer->spec().steps));
    if (spec.ranks.process && trainer->steps_done() < spec.steps && !trainer->all_stopped())
        throw Error(ErrorKind::failed, "train",
                    fmt::format("another rank was ended by a signal after {} of {} steps",
                                trainer->steps_done(), spec.steps));
    if (options.fail_on_nan) refuse_nan(report);
}

}  // namespace

void add_train(CLI::App& app, Globals&) {
    const auto options = std::make_shared<TrainArguments>();
    CLI::App* verb = app.add_subcommand("train", "Trains one arm per recipe on the same batches");
    add_train_options(*verb, options->flags);
    verb->add_option("--backend", options->backend, "auto, cpu or cuda")->capture_default_str();
    verb->add_option("--csv", options->csv, "CSV with every step of every arm");
    verb->add_option("--json", options->json, "summary");
    verb->add_option("--save", options->save, "folder for checkpoints at the end");
    verb->add_option("--resume", options->resume, "a checkpoint, or a folder with one per arm");
    verb->add_option("--trace", options->trace,
                     "spans of the newest steps, by arm, as Chrome's trace events; on the CPU");
    verb->add_option("--trace-steps", options->trace_steps, "how many steps --trace keeps (20)")
        ->check(whole("--trace-steps", 1, 1000));
    verb->add_flag("--fail-on-nan", options->fail_on_nan, "exit 1 when an arm became non-finite");
    verb->callback([options] { train_arms(*options); });
}

}  // namespace fp8lab::cli
