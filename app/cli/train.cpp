// fp8lab train: one arm per recipe on the same batches. Progress goes to stderr, the data asked for to
// stdout.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/preparing.h"
#include "app/cli/train_report.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/files.h"

namespace fp8lab::cli {

namespace {

struct Options {
    TrainOptions train;
    std::string backend = "auto", algo = "max";
    std::string csv, json, save, resume;
    bool fail_on_nan = false;
};

// A run of hours must not end at a folder that is not there.
void check_writable(const std::string& option, const std::filesystem::path& file) {
    if (file.empty() || file == "-") return;
    const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    if (std::filesystem::is_directory(file))
        throw Error(ErrorKind::failed, option, file.string() + " is a folder");
    if (access(folder.c_str(), W_OK) != 0)
        throw Error(ErrorKind::failed, option,
                    fmt::format("cannot write into {}: {}", folder.string(), std::strerror(errno)));
}

void check_outputs(const Options& options) {
    if (!options.csv.empty() && options.csv == options.json)
        throw usage_error("--json",
                          "--csv and --json cannot both be " + (options.csv == "-" ? "stdout" : options.csv));
    check_writable("--csv", options.csv);
    check_writable("--json", options.json);
    if (options.save.empty()) return;
    std::error_code failure;
    std::filesystem::create_directories(options.save, failure);
    if (failure || access(options.save.c_str(), W_OK) != 0)
        throw Error(ErrorKind::failed, "--save",
                    fmt::format("cannot write into {}: {}", options.save,
                                failure ? failure.message() : std::strerror(errno)));
}

std::unique_ptr<Trainer> prepare(Backend& backend, const TrainSpec& spec, const std::string& resume) {
    auto trainer = backend.make_trainer(spec, told_on_stderr());
    if (resume.empty()) return trainer;
    trainer->load(resume);
    if (trainer->steps_done() >= spec.steps)
        throw usage_error(
            "--steps",
            fmt::format("{} has done {} steps; --steps counts from the very first and must be more", resume,
                        trainer->steps_done()));
    return trainer;
}

void train_all(Trainer& trainer, TrainReport& report) {
    auto told = std::chrono::steady_clock::now();
    while (trainer.steps_done() < trainer.spec().steps && !trainer.all_stopped() && !interrupted()) {
        trainer.step(std::min(trainer.steps_per_call(), trainer.spec().steps - trainer.steps_done()));
        const auto now = std::chrono::steady_clock::now();
        if (now - told < std::chrono::seconds(1)) continue;
        told = now;
        report.add(trainer.snapshot());
        fmt::print(stderr, "{}\n", report.progress());
    }
    report.add(trainer.snapshot());
}

void write_outputs(const Options& options, const Trainer& trainer, const TrainReport& report) {
    if (!options.csv.empty()) write_file(options.csv, report.csv());
    if (!options.json.empty()) write_file(options.json, report.json().dump(2) + "\n");
    if (options.csv != "-" && options.json != "-") fmt::print("{}", report.table());
    if (!options.save.empty()) trainer.save(options.save);
    if (!options.fail_on_nan) return;
    for (const ArmSummary& arm : report.summaries())
        if (arm.stopped)
            throw Error(ErrorKind::failed, "train",
                        fmt::format("{}: {} became non-finite at step {}", arm.recipe, arm.stopped->tensor,
                                    arm.stopped->step));
}

void run(Options options) {
    options.train.recipe_defaults.algo = parse_recipe("delayed:algo=" + options.algo, {}, "--algo").algo;
    const TrainSpec spec = make_train_spec(options.train);
    const ChosenBackend chosen = choose_backend(options.backend);
    check_outputs(options);
    const auto trainer = prepare(*chosen.backend, spec, options.resume);
    const DeviceInfo device = chosen.backend->device();
    fmt::print(stderr, "backend: {}, {}{}{}\n", to_string(device.provenance), device.name,
               chosen.reason.empty() ? "" : ". ", chosen.reason);
    if (const std::string note = trainer->note(); !note.empty()) fmt::print(stderr, "{}\n", note);
    TrainReport report(trainer->spec(), device);
    train_all(*trainer, report);
    write_outputs(options, *trainer, report);
}

}  // namespace

void add_train(CLI::App& app, Globals&) {
    const auto options = std::make_shared<Options>();
    TrainOptions& train = options->train;
    CLI::App* verb = app.add_subcommand("train", "Trains one arm per recipe on the same batches");
    verb->add_option("--recipe", train.recipes, "R[,R...]: one arm each, e.g. bf16,delayed:margin=1")
        ->capture_default_str();
    verb->add_option("--backend", options->backend, "auto, cpu or cuda")->capture_default_str();
    verb->add_option("--task", train.task, "teacher, noise, spiral or npy:X,Y")->capture_default_str();
    verb->add_option("--layers", train.layers, "d0,...,dn")->delimiter(',');
    verb->add_option("--activation", train.activation, "tanh, gelu or relu");
    verb->add_option("--batch", train.batch, "rows a step");
    verb->add_option("--steps", train.steps, "of the whole run, a resumed part included")
        ->capture_default_str();
    verb->add_option("--lr", train.lr, "learning rate");
    verb->add_option("--schedule", train.schedule, "constant or cosine")->capture_default_str();
    verb->add_option("--optimizer", train.optimizer, "adamw or sgd")->capture_default_str();
    verb->add_option("--weight-decay", train.weight_decay, "decoupled")->capture_default_str();
    verb->add_option("--loss", train.loss, "mse or cross-entropy");
    verb->add_option("--history", train.recipe_defaults.history, "amax history of arms that name none")
        ->capture_default_str();
    verb->add_option("--margin", train.recipe_defaults.margin, "of arms that name none")
        ->capture_default_str();
    verb->add_option("--algo", options->algo, "max or most_recent, of arms that name none")
        ->capture_default_str();
    verb->add_option("--seed", train.seed, "initial weights, batches and stochastic rounding")
        ->check(check_seed)
        ->capture_default_str();
    verb->add_option("--csv", options->csv, "every step of every arm");
    verb->add_option("--json", options->json, "summary");
    verb->add_option("--save", options->save, "folder for checkpoints at the end");
    verb->add_option("--resume", options->resume, "a checkpoint, or a folder with one per arm");
    verb->add_flag("--fail-on-nan", options->fail_on_nan, "exit 1 when an arm became non-finite");
    verb->callback([options] { run(*options); });
}

}  // namespace fp8lab::cli
