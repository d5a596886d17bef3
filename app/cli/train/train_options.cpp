#include "app/cli/train/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/cli/option_values.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/nn/streams.h"
#include "core/scaling/recipe_keys.h"

namespace fp8lab::cli {
namespace {

void add_recipe_options(CLI::App& verb, TrainFlags& flags) {
    TrainOptions& train = flags.train;
    CLI::Option* recipe =
        verb.add_option("--recipe", train.recipes, "R[,R...]: one arm each, e.g. bf16,delayed:margin=1")
            ->capture_default_str();
    verb.add_option("--fake", flags.fake,
                    "R[,R...]: quantization-aware training, R:fake=1:out=fp32 instead of --recipe")
        ->excludes(recipe);
    verb.add_option("--init-from", train.init_from,
                    "a checkpoint whose weights every arm starts from; moments and steps start at 0");
    verb.add_option(
        "--teacher", train.teacher,
        "a checkpoint of the same model in FP32: its softmax is the target instead of the labels");
}

void add_fault_options(CLI::App& verb, TrainOptions& train) {
    verb.add_option(
        "--poison", train.poison,
        "STEP:FACTOR[:ROWS]: x of one step times FACTOR, in the first ROWS rows of the batch or in all");
    verb.add_option("--init", train.init, "zero-last: the weights of the last layer start at 0 (mlp)");
}

void add_rank_options(CLI::App& verb, TrainFlags& flags) {
    TrainOptions& train = flags.train;
    verb.add_option(
        "--devices", flags.devices,
        "GPUs, e.g. 0,1 or all: data-parallel training with a rank on each; --batch is then that of a GPU");
    verb.add_option("--timeout", train.timeout_s, "seconds that a GPU waits for another; 60");
    verb.add_option("--ranks", train.ranks,
                    "virtual data-parallel ranks on the CPU, each with a part of the batch; 1")
        ->check(whole("--ranks", 1, kMostRanks));
    verb.add_option("--shard", train.shard,
                    "who updates the weights: every rank (none), or each its rows (zero1); none");
    verb.add_option("--gather", train.gather, "what weights are sent in with zero1: bf16 or e4m3; bf16");
    verb.add_option("--sum", train.sum,
                    "gradients of all ranks: fp32, bf16, bf16-tree, e4m3, e5m2 or e4m3-wire; bf16");
    verb.add_option("--wscale", train.weight_scale,
                    "scale of weights sent in e4m3: reduced, shard (one for each owner, sent too) or own "
                    "(each reader's, a fault); reduced");
    verb.add_option("--act-amax", train.act_amax,
                    "amaxes of x and dy for delayed scaling: reduced over the ranks, or local; reduced");
    verb.add_option("--bad", train.bad,
                    "RANK:nan:STEP or RANK:xFACTOR:STEP: a bad batch of one rank in one step");
}

}  // namespace

std::vector<int> parse_devices(const std::string& text, int gpus) {
    std::vector<int> out;
    if (text == "all") {
        for (int i = 0; i < gpus; ++i) out.push_back(i);
        return out;
    }
    const char *at = text.data(), *const end = at + text.size();
    for (;;) {
        const auto [next, failure] = std::from_chars(at, end, out.emplace_back());
        if (failure != std::errc{} || out.back() < 0 || (next != end && *next != ','))
            throw usage_error("--devices",
                              fmt::format("'{}' is neither all nor numbers of GPUs like 0,1", text));
        if (std::ranges::count(out, out.back()) > 1)
            throw usage_error("--devices", fmt::format("GPU {} is named twice", out.back()));
        if (next == end) return out;
        at = next + 1;
    }
}

ChosenBackend choose_for(const std::string& backend, const std::vector<int>& devices) {
    ChosenBackend chosen = choose_backend(backend, devices.empty() ? gpu() : devices.front());
    if (!devices.empty() && chosen.backend->devices() == 0)
        throw Error(
            ErrorKind::backend, "--devices",
            chosen.reason.empty() ? "are GPUs; the backend here is the CPU" : "are GPUs. " + chosen.reason);
    return chosen;
}

namespace {

std::string fake_recipes(const std::string& names) {
    std::string out;
    for (const std::string_view name : split(names, ','))
        out.append(out.empty() ? "" : ",").append(name).append(":fake=1:out=fp32");
    return out;
}

// Each as the model's own option has it; one that only other models have is left for make_train_spec() to refuse.
void read_sizes(const decltype(TrainFlags::sizes)& sizes, TrainOptions& options) {
    const auto read = [&](const ModelEntry& model) {
        for (const ModelOption& option : model.options)
            if (const auto given = sizes.find(option.name); given != sizes.end() && given->second)
                options.sizes[std::string(option.name)] = option.read(*given->second);
    };
    for (const ModelEntry& other : models()) read(other);
    read(find_model(options.model));
}

// One flag for all models that have the option: "transformer, moe: width of the feed-forward part; 192, 96".
std::string option_help(const ModelOption& option) {
    std::string with, fallbacks, last;
    for (const ModelEntry& model : models())
        for (const ModelOption& other : model.options) {
            if (other.name != option.name) continue;
            const std::string fallback = other.text(other.fallback);
            with += (with.empty() ? "" : ", ") + std::string(model.id);
            if (fallback != last) fallbacks += (fallbacks.empty() ? "" : ", ") + fallback;
            last = fallback;
        }
    return fmt::format("{}: {}; {}", with, option.help, fallbacks);
}

void add_model_options(CLI::App& verb, TrainFlags& flags) {
    for (const ModelEntry& model : models())
        for (const ModelOption& option : model.options) {
            const std::string flag = "--" + std::string(option.name);
            if (flags.sizes.contains(option.name)) continue;
            CLI::Option* added =
                verb.add_option(flag, flags.sizes[std::string(option.name)], option_help(option));
            if (option.names.empty() && option.parts == 1)
                added->type_name("INT")->check(whole(flag, option.low, option.high));
        }
}

std::string model_names() {
    std::string names;
    for (const ModelEntry& model : models())
        names += (names.empty() ? "" : &model == &models().back() ? " or " : ", ") + std::string(model.id);
    return names;
}

}  // namespace

TrainSpec TrainFlags::spec() const {
    TrainOptions options = train;
    options.recipe_defaults.algo = parse_recipe("delayed:algo=" + algo, {}, "--algo").algo;
    if (!layers.empty()) options.layers = parse_layers(layers);
    if (!fake.empty()) options.recipes = fake_recipes(fake);
    if (!devices.empty()) options.devices = parse_devices(devices, gpus);
    if (process) {
        if (!devices.empty())
            throw usage_error("--devices",
                              "RANK and WORLD_SIZE are set: each process has the GPU of its LOCAL_RANK");
        if (train.ranks) throw usage_error("--ranks", "WORLD_SIZE is set: each process is a rank");
        options.process = process->own;
        for (int rank = 0; rank < process->ranks; ++rank) options.devices.push_back(rank);
    }
    read_sizes(sizes, options);
    return make_train_spec(options);
}

void add_train_options(CLI::App& verb, TrainFlags& flags) {
    // The ranges of make_train_spec() and parse_recipe(): here a number that no int holds gets the same sentence.
    constexpr int kMostSteps = 1'000'000'000;
    TrainOptions& train = flags.train;
    add_recipe_options(verb, flags);
    verb.add_option("--model", train.model, model_names())->capture_default_str();
    verb.add_option(
        "--task", train.task,
        "mlp: teacher, noise, spiral, digits or npy:X,Y; transformer, moe: text, text:FILE, copying or "
        "zipf:V");
    add_model_options(verb, flags);
    verb.add_option("--layers", flags.layers, "d0,...,dn");
    verb.add_option("--activation", train.activation, "tanh, gelu or relu");
    verb.add_option("--batch", train.batch, "batch size: rows, or sequences, per step")
        ->check(whole("--batch", 1, 65536));
    verb.add_option("--steps", train.steps,
                    "of the whole run, a resumed part included; 2000 (transformer, moe: 600)")
        ->check(whole("--steps", 1, kMostSteps));
    verb.add_option("--lr", train.lr, "learning rate");
    verb.add_option("--schedule", train.schedule, "constant or cosine; constant (transformer, moe: cosine)");
    verb.add_option("--warmup", train.warmup, "steps of schedule cosine up to the learning rate; 100")
        ->check(whole("--warmup", 0, kMostSteps));
    verb.add_option("--optimizer", train.optimizer, "adamw or sgd")->capture_default_str();
    verb.add_option("--weight-decay", train.weight_decay, "decoupled")->capture_default_str();
    verb.add_option("--beta1", train.beta1, "of AdamW; 0.9");
    verb.add_option("--beta2", train.beta2, "of AdamW; 0.999 (transformer: 0.95)");
    verb.add_option("--eps", train.eps, "of AdamW; 1e-8");
    verb.add_option("--clip", train.clip,
                    "largest norm of all gradients together, 0 for any; 0 (transformer: 1)");
    verb.add_option("--loss", train.loss, "mse or cross-entropy");
    verb.add_option("--accumulate", train.accumulate, "micro-batches of a step, each a part of the batch; 1")
        ->check(whole("--accumulate", 1, kMostMicroBatches));
    verb.add_option("--accumulate-in", train.accumulate_in,
                    "format of the sums of their weight gradients: fp32, bf16, e4m3 or e5m2; fp32");
    verb.add_option("--weight-cache", train.weight_cache,
                    "when weights are cast: once a step, in each micro-batch, or never again (stale); once");
    verb.add_option("--amax-of", train.amax_of,
                    "of the micro-batches, for delayed scaling: max, last, or each of them; max");
    add_fault_options(verb, train);
    add_rank_options(verb, flags);
    verb.add_option("--history", train.recipe_defaults.history, "amax history length of arms that name none")
        ->check(whole("--history", 1, 4096))
        ->capture_default_str();
    verb.add_option("--margin", train.recipe_defaults.margin, "margin of arms that name none")
        ->check(whole("--margin", -8, 16))
        ->capture_default_str();
    verb.add_option("--algo", flags.algo, "amax reducer, max or most_recent, of arms that name none")
        ->capture_default_str();
    verb.add_option("--seed", train.seed, "seed of the initial weights, the batches and stochastic rounding")
        ->check(check_seed)
        ->capture_default_str();
}

TrainSpec parse_command_line(const std::string& command_line, const std::string& where) {
    CLI::App line;
    TrainFlags flags;
    add_train_options(line, flags);
    try {
        line.parse(command_line);
    } catch (const CLI::ParseError&) {
        throw input_error(where, "its metadata have no command line that this version can read");
    } catch (const Error& error) {  // whole(): its options are not those of this call
        throw input_error(where, std::string("its metadata have a command line with ") + error.what());
    }
    return flags.spec();
}

}  // namespace fp8lab::cli
