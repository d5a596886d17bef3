#include "core/backend/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/files/files.h"
#include "core/json/member.h"
#include "core/json/read_json.h"

namespace fp8lab {

namespace {

constexpr const char* kUsualRecording = "h200";

using Json = nlohmann::json;

std::vector<std::pair<std::string, double>> parts_of(const JsonMember& arm) {
    std::vector<std::pair<std::string, double>> out;
    for (const auto& [name, part] : arm.at("parts_ms").members())
        out.emplace_back(name, part.at_least_zero());
    return out;
}

RecordedArm arm_of(const JsonMember& arm) {
    RecordedArm out{.recipe = arm.at("recipe").filled_text(),
                    .median_ms = arm.at("median_ms").above_zero(),
                    .iqr_ms = arm.at("iqr_ms").at_least_zero()};
    if (arm.has("q1_ms")) out.q1_ms = arm.at("q1_ms").above_zero();
    if (arm.has("q3_ms")) out.q3_ms = arm.at("q3_ms").above_zero();
    if (arm.has("memory_bytes")) out.memory_bytes = arm.at("memory_bytes").at_least_zero();
    if (arm.has("parts_ms")) out.parts_ms = parts_of(arm);
    return out;
}

RecordedStep step_of(const JsonMember& result) {
    RecordedStep step;
    for (const JsonMember& width : result.at("layers").some_elements()) step.layers.push_back(width.count());
    step.batch = result.at("batch").count();
    for (const JsonMember& arm : result.at("arms").some_elements()) {
        step.arms.push_back(arm_of(arm));
        step.arms.back().tflops = arm.at("tflops").above_zero();
    }
    if (result.has("state")) step.state = result.at("state").filled_text();
    return step;
}

RecordedBlocks sized(const JsonMember& result) {
    RecordedBlocks out;
    const JsonMember sizes = result.at("sizes");
    for (const char* name : {"blocks", "d", "context"}) out.sizes[name] = sizes.at(name).count();
    for (const char* name : {"ffn", "heads"})
        if (sizes.has(name)) out.sizes[name] = sizes.at(name).count();
    out.step.batch = result.at("batch").count();
    if (result.has("state")) out.step.state = result.at("state").filled_text();
    out.date = result.at("date").filled_text();
    return out;
}

RecordedBlocks blocks_of(const JsonMember& result) {
    RecordedBlocks out = sized(result);
    for (const JsonMember& arm : result.at("arms").some_elements()) out.step.arms.push_back(arm_of(arm));
    out.attention = result.at("arms").at(0).at("attention").filled_text();
    return out;
}

RecordedBlocks training_of(const JsonMember& result) {
    RecordedBlocks out = sized(result);
    out.steps = result.at("steps_done").count();
    out.vocabulary = result.at("language").at("vocabulary").count();
    for (const JsonMember& arm : result.at("arms").some_elements()) {
        out.step.arms.push_back({.recipe = arm.at("recipe").filled_text(),
                                 .median_ms = arm.at("median_step_ms").above_zero(),
                                 .iqr_ms = arm.at("iqr_step_ms").at_least_zero(),
                                 .memory_bytes = arm.at("memory_bytes").at_least_zero(),
                                 .parts_ms = parts_of(arm)});
        out.held_out.push_back(arm.at("held_out").at("loss").above_zero());
    }
    return out;
}

RecordedInfer infer_of(const JsonMember& result) {
    RecordedInfer out;
    InferCase& of = out.of;
    const JsonMember shape = result.at("shape");
    constexpr std::array kSizes = {&InferCase::d,   &InferCase::heads,   &InferCase::kv_heads,
                                   &InferCase::ffn, &InferCase::context, &InferCase::layers};
    for (std::size_t i = 0; i < kSizes.size(); ++i) of.*kSizes[i] = shape.at(i).count();
    of.batch = result.at("batch").count();
    of.tokens = result.at("tokens").count();
    const auto named = [&](const char* member, auto find) {
        try {
            return find(result.at(member).filled_text());
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::usage) throw;
            result.at(member).fail(error.why());
        }
    };
    of.formats.weights = named("weights", find_served_weights);
    of.formats.cache = named("kv", find_served_cache);
    out.median_ms = result.at("median_ms").above_zero();
    out.iqr_ms = result.at("iqr_ms").at_least_zero();
    out.copy_bytes_per_ms = 1e6 * result.at("copy_gb_per_s").above_zero();
    out.date = result.at("date").filled_text();
    return out;
}

std::vector<AccumulationError> accumulation_of(const JsonMember& result) {
    std::vector<AccumulationError> out;
    for (const JsonMember& line : result.at("lines").some_elements()) {
        out.push_back({line.at("data").filled_text(), line.at("k").count(), line.at("fast").truth(),
                       line.at("rel_rms").at_least_zero(), line.at("rel_bias").number()});
    }
    return out;
}

// The usual one first, then by name.
std::vector<std::filesystem::path> recorded_files() {
    std::filesystem::path folder;
    try {
        folder = asset("recordings");
    } catch (const Error&) {  // not there
        return {};
    }
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".json") paths.push_back(entry.path());
    std::ranges::sort(paths, {}, [](const std::filesystem::path& path) {
        const std::string id = path.stem().string();
        return std::pair(id != kUsualRecording, id);
    });
    return paths;
}

}  // namespace

double RecordedArm::part_ms(std::string_view part) const {
    const auto found = std::ranges::find(parts_ms, part, &std::pair<std::string, double>::first);
    return found == parts_ms.end() ? 0 : found->second;
}

const RecordedArm* RecordedStep::find(std::string_view recipe) const {
    const auto arm = std::ranges::find(arms, recipe, &RecordedArm::recipe);
    return arm == arms.end() ? nullptr : &*arm;
}

double RecordedStep::speedup(std::string_view recipe) const {
    const RecordedArm *reference = find("bf16"), *own = find(recipe);
    return reference && own ? reference->median_ms / own->median_ms : 0;
}

std::string RecordedBlocks::name() const {
    const int count = sizes.at("blocks");
    return fmt::format("{} block{}, d {}", count, count == 1 ? "" : "s", sizes.at("d"));
}

Recording parse_recording(std::string_view json, const std::string& where) {
    constexpr std::array<std::string_view, 11> kKinds = {"step",   "step-sweep", "gemm",     "gemm-grid",
                                                         "cast",   "accumulate", "validate", "ui",
                                                         "blocks", "train",      "infer"};
    const nlohmann::json parsed = parse_json(json, where);
    const JsonMember file(parsed, where);
    Recording recording;
    recording.gpu = file.at("gpu").filled_text();
    recording.driver = file.at("driver").filled_text();
    recording.cuda = file.at("cuda").filled_text();
    recording.date = file.at("date").filled_text();
    recording.command = file.at("command").filled_text();
    recording.id = std::filesystem::path(where).stem().string();
    for (const JsonMember& result : file.at("results").some_elements()) {
        const std::string kind = result.at("bench").filled_text();
        if (std::ranges::find(kKinds, kind) == kKinds.end())
            result.at("bench").fail(fmt::format("is '{}'; valid: {}", kind, fmt::join(kKinds, " ")));
        if (kind == "step") recording.steps.push_back(step_of(result));
        if (kind == "accumulate") recording.accumulation = accumulation_of(result);
        if (kind == "blocks") recording.blocks.push_back(blocks_of(result));
        if (kind == "train") recording.blocks.push_back(training_of(result));
        if (kind == "infer") recording.infer.push_back(infer_of(result));
        if (kind == "gemm-grid") recording.grid = gemm_grid_of(result);
    }
    std::ranges::stable_sort(recording.steps, {},
                             [](const RecordedStep& step) { return std::pair(step.layers, step.batch); });
    std::ranges::stable_sort(recording.blocks, {},
                             [](const RecordedBlocks& b) { return std::pair(b.steps, b.sizes.at("d")); });
    std::ranges::stable_sort(recording.infer, {}, [](const RecordedInfer& r) { return r.of.batch; });
    return recording;
}

const RecordedStep* Recording::step(std::span<const int> layers, int batch) const {
    const auto found = std::ranges::find_if(steps, [&](const RecordedStep& s) {
        return s.batch == batch && std::ranges::equal(s.layers, layers);
    });
    return found == steps.end() ? nullptr : &*found;
}

std::vector<Recording> load_recordings() {
    std::vector<Recording> recordings;
    for (const auto& path : recorded_files())
        recordings.push_back(parse_recording(read_text(path), path.string()));
    return recordings;
}

std::optional<Recording> load_recording() {
    const auto paths = recorded_files();
    if (paths.empty()) return std::nullopt;
    return parse_recording(read_text(paths.front()), paths.front().string());
}

const Recording* Shipped::find(std::string_view id) const {
    const auto found = std::ranges::find(recordings, id, &Recording::id);
    return found == recordings.end() ? nullptr : &*found;
}

std::shared_ptr<const Shipped> shipped() {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const Shipped>> by_folder;  // tests have assets of their own
    const std::lock_guard lock(mutex);
    const char* folder = environment("FP8LAB_ASSETS");
    auto& found = by_folder[folder ? folder : ""];
    if (found) return found;
    Shipped read;
    try {
        read.recordings = load_recordings();
    } catch (const Error& error) {
        read.problem = error.what();
    }
    return found = std::make_shared<const Shipped>(std::move(read));
}

std::string short_gpu_name(std::string_view gpu) {
    constexpr std::string_view kMaker = "NVIDIA ";
    if (gpu.starts_with(kMaker)) gpu.remove_prefix(kMaker.size());
    return std::string(gpu.starts_with("GeForce") ? gpu : gpu.substr(0, gpu.find(' ')));
}

std::string why_fp8(const std::optional<Recording>& recording) {
    std::string out =
        "Why FP8: a number takes 1 byte instead of the 2 of BF16, and tensor cores multiply it faster.";
    const RecordedStep* best = nullptr;
    if (recording)
        for (const RecordedStep& step : recording->steps)
            if (step.speedup("delayed") > (best ? best->speedup("delayed") : 1)) best = &step;
    if (!best) return out;
    return out + fmt::format(
                     " On an {} ({}) a training step took {:#.3g} ms in FP8 and {:#.3g} ms in BF16 (layers "
                     "{}, batch {}).",
                     recording->gpu, recording->date, best->find("delayed")->median_ms,
                     best->find("bf16")->median_ms, fmt::join(best->layers, "-"), best->batch);
}

}  // namespace fp8lab
