#include "core/trainer/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ranges>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/files/files.h"
#include "core/json/read_json.h"
#include "core/nn/model.h"

namespace fp8lab {
namespace {

// What stands before the names of a rank's scaling state.
std::string of_rank(std::optional<int> rank) { return rank ? fmt::format("rank{}/", *rank) : ""; }

std::string scale_name(const ModelPlan& plan, TensorId id, std::optional<Gemm> gemm) {
    const std::string& name = plan.tensor(id).name;
    return gemm ? fmt::format("{}.{}", name, to_string(*gemm)) : name;
}

std::string kept_name(const ModelPlan& plan, TensorId id, Gemm gemm) {
    return "cast." + scale_name(plan, id, gemm);
}

const std::vector<std::size_t>& shape_of_weight(const ModelPlan& plan, TensorId id) {
    return std::ranges::find(plan.parameters, std::optional(id), &ParameterSpec::operand)->shape;
}

constexpr std::size_t kLongestHistory = 4096;  // of a recipe

// "blocks.1.qkv.weight" of "1.qkv.w", "adam.m.norm.weight" of "m.norm": a tensor of a transformer by the name that
// published models have for it.
std::string published_name(std::string name) {
    std::string out;
    if (name.starts_with("m.") || name.starts_with("v.")) out = "adam." + name.substr(0, 2), name.erase(0, 2);
    if (!name.empty() && name.front() >= '0' && name.front() <= '9') out += "blocks.";
    if (name.ends_with(".w")) name.resize(name.size() - 2);
    return out + name + ".weight";
}

// Reads what it is asked for and names what does not fit, before it reads it.
class Source {
  public:
    Source(const RandomFile& file, const SafeTensorsIndex& index, bool published)
        : file_(file), index_(index), where_(file.where()), published_(published) {
        for (const auto& [name, info] : index.tensors) {
            require_float(info, where_);
            if (is_code_dtype(info.dtype))
                throw input_error(where_,
                                  fmt::format("byte {}: tensor '{}' holds {} codes; a checkpoint has values",
                                              info.begin, quote_from(name), info.dtype));
        }
    }

    const SafeTensorInfo* find(const std::string& name) const {
        const auto hit = index_.tensors.find(published_ ? published_name(name) : name);
        return hit == index_.tensors.end() ? nullptr : &hit->second;
    }
    void read(const std::string& name, const std::vector<std::size_t>& shape,
              std::vector<float>& values) const {
        const SafeTensorInfo* tensor = find(name);
        if (!tensor) throw input_error(where_, "tensor '" + name + "' is missing");
        if (tensor->shape != shape)
            throw input_error(where_,
                              "tensor '" + name + "' does not have the shape that the options ask for");
        values = read_safetensor(file_, *tensor);
    }
    // Moments are optional: a run under SGD has none.
    void read_moments(const std::string& name, const std::vector<std::size_t>& shape,
                      Moments& moments) const {
        if (!find("m." + name) && !find("v." + name)) return;
        read("m." + name, shape, moments.m);
        read("v." + name, shape, moments.v);
    }
    // One number of the scaling state: finite, not negative.
    std::optional<float> scalar(const std::string& name) const {
        const SafeTensorInfo* tensor = find(name);
        if (!tensor) return std::nullopt;
        const std::vector<float> values =
            count(*tensor) == 1 ? read_safetensor(file_, *tensor) : std::vector<float>{};
        if (values.size() != 1 || !std::isfinite(values[0]) || values[0] < 0)
            throw input_error(where_, "tensor '" + name + "' is not one finite number of at least 0");
        return values[0];
    }
    std::optional<ScaleCheckpoint> delayed(TensorId id, const std::string& name,
                                           const std::string& rank) const {
        constexpr float kLongestRun = 1e9F;  // steps
        const auto scale = scalar(rank + "scale." + name), age = scalar(rank + "scale_age." + name);
        const SafeTensorInfo* history = find(rank + "history." + name);
        if (!scale || !age || !history || count(*history) == 0) return std::nullopt;
        if (count(*history) > kLongestHistory)
            throw input_error(where_, fmt::format("tensor '{}history.{}' has more than {} values", rank, name,
                                                  kLongestHistory));
        return ScaleCheckpoint{
            id, *scale, static_cast<int>(std::min(*age, kLongestRun)), read_safetensor(file_, *history),
            {}, {}};
    }

    std::optional<LossScalerState> loss_scaler() const {
        constexpr float kMost = 1e9F;  // steps
        if (!find("loss_scale")) return std::nullopt;
        std::vector<float> values;
        read("loss_scale", {3}, values);
        const bool counts = std::ranges::all_of(
            std::span(values).last(2), [](float v) { return v >= 0 && v <= kMost && v == std::floor(v); });
        if (!(values[0] > 0) || !std::isfinite(values[0]) || !counts)
            throw input_error(where_, "tensor 'loss_scale' is not a scale above 0 and two counts");
        return LossScalerState{values[0], static_cast<int>(values[1]), static_cast<int>(values[2])};
    }

  private:
    static std::size_t count(const SafeTensorInfo& tensor) {
        return elements_in(tensor.dtype, tensor.end - tensor.begin);
    }

    const RandomFile& file_;
    const SafeTensorsIndex& index_;
    const std::string where_;
    const bool published_;  // its tensors have published_name()
};

// A GPU of earlier versions wrote "delayed:fwd=:bwd=": the formats are not said, and so the recipe is not.
bool lacks_formats(const std::string& text) {
    return text.find(":fwd=:") != text.npos || text.ends_with(":fwd=") || text.ends_with(":bwd=");
}

std::string known_recipe(const std::string& text, const std::string& where) {
    if (lacks_formats(text)) return "";
    try {
        parse_recipe(text, {}, "recipe");
    } catch (const Error& error) {
        throw input_error(where, "its metadata name a recipe that is not known here: " + error.why());
    }
    return text;
}

// The value of --seed in a command line; none: it has no such option.
std::optional<std::uint64_t> seed_in(const std::string& command_line, const std::string& where) {
    constexpr std::string_view kOption = "--seed ";
    const std::size_t at = command_line.rfind(kOption);
    if (at == command_line.npos) return std::nullopt;
    const std::size_t from = at + kOption.size();
    const std::string text = command_line.substr(from, command_line.find(' ', from) - from);
    std::uint64_t seed = 0;
    if (!read_number(text, seed))
        throw input_error(where, "the command line in its metadata has the seed '" + quote_from(text) +
                                     "', which is not a number of 64 bits");
    return seed;
}

constexpr std::string_view kFormat = "fp8lab-checkpoint-1";

// What a checkpoint says besides its tensors.
struct Metadata {
    int step = 0;
    std::string recipe, command_line;  // empty: not said
    std::optional<std::uint64_t> seed;
    bool published = false;
};

// A format or a name that this version does not know may change what the tensors mean: it is refused.
Metadata metadata_of(const std::map<std::string, std::string>& texts, const std::string& where) {
    constexpr std::array<std::string_view, 4> kKnown = {"format", "step", "recipe", "command_line"};
    constexpr std::array<std::string_view, 3> kSample = {"command_line", "loss", "step"};
    const bool sample = std::ranges::equal(std::views::keys(texts), kSample);
    const auto text_of = [&](const char* name) {
        const auto found = texts.find(name);
        return found == texts.end() ? std::string() : found->second;
    };
    const std::string format = text_of("format");
    if (format.empty() && !sample)
        throw input_error(where, "no checkpoint of this program: the metadata have no 'format'");
    if (!sample && format != kFormat)
        throw input_error(where,
                          fmt::format("has format '{}'; this version reads {}", quote_from(format), kFormat));
    for (const auto& [name, text] : texts)
        if (!sample && std::ranges::find(kKnown, name) == kKnown.end())
            throw input_error(where, fmt::format("metadata '{}' is not known here; known: {}",
                                                 quote_from(name), fmt::join(kKnown, ", ")));
    Metadata out;
    out.published = sample;
    const std::string step = text_of("step");
    if (!read_number(step, out.step) || out.step < 0)
        throw input_error(where, "no checkpoint of this program: the metadata have no 'step'");
    if (texts.contains("recipe")) out.recipe = known_recipe(text_of("recipe"), where);
    out.command_line = text_of("command_line");
    out.seed = seed_in(out.command_line, where);
    return out;
}

// The file of each arm: one file for all, or the files of a folder.
std::vector<std::filesystem::path> arm_files(const std::filesystem::path& path, const TrainSpec& spec) {
    std::vector<std::filesystem::path> paths(spec.arms.size(), path);
    if (std::filesystem::is_directory(path)) paths = checkpoints_to_load(path);
    if (paths.size() != spec.arms.size())
        throw input_error(path.string(), fmt::format("has {} checkpoints, the run has {} arms", paths.size(),
                                                     spec.arms.size()));
    return paths;
}

}  // namespace

SafeTensors to_safetensors(ArmCheckpoint arm, const TrainSpec& spec, int steps_done) {
    SafeTensors file;
    file.metadata = {{"format", std::string(kFormat)},
                     {"step", std::to_string(steps_done)},
                     {"recipe", arm.recipe},
                     {"command_line", command_line(spec)}};
    const auto put = [&](std::string name, std::vector<std::size_t> shape, std::vector<float> values) {
        if (!values.empty()) file.tensors[std::move(name)] = {std::move(shape), std::move(values)};
    };
    const ModelPlan plan = model_plan(spec);
    for (std::size_t i = 0; i < arm.parameters.size(); ++i) {
        const auto& [name, shape, operand, optimised] = plan.parameters[i];
        ParameterCheckpoint& parameter = arm.parameters[i];
        put(name, shape, std::move(parameter.values));
        put("m." + name, shape, std::move(parameter.moments.m));
        put("v." + name, shape, std::move(parameter.moments.v));
        if (parameter.storage_scale) put("storage_scale." + name, {1}, {*parameter.storage_scale});
    }
    for (const ScaleCheckpoint& s : arm.scales) {
        const std::string name = scale_name(plan, s.id, s.gemm);
        const std::string rank = of_rank(s.rank);
        put(rank + "scale." + name, {1}, {s.scale});
        put(rank + "scale_age." + name, {1}, {static_cast<float>(s.scale_age)});
        put(rank + "history." + name, {s.history.size()}, s.history);
    }
    for (KeptCheckpoint& k : arm.kept)
        put(kept_name(plan, k.id, k.gemm), shape_of_weight(plan, k.id), std::move(k.values));
    if (const auto& s = arm.scaler)
        put("loss_scale", {3}, {s->scale, static_cast<float>(s->good), static_cast<float>(s->skipped)});
    return file;
}

namespace {

// The delayed scales that stand under `rank`.
std::vector<ScaleCheckpoint> scales_of(const Source& source, const ModelPlan& plan, std::optional<int> rank) {
    std::vector<ScaleCheckpoint> out;
    for (const std::optional<Gemm> gemm : {std::optional<Gemm>{}, std::optional(Gemm::fprop),
                                           std::optional(Gemm::dgrad), std::optional(Gemm::wgrad)})
        for (std::uint16_t i = 0; i < plan.tensors.size(); ++i)
            if (auto scale = source.delayed({i}, scale_name(plan, {i}, gemm), of_rank(rank))) {
                scale->gemm = gemm;
                out.push_back(std::move(*scale));
            }
    return out;
}

// For as many ranks as go on, whatever number has saved them.
std::vector<ScaleCheckpoint> read_scales(const Source& source, const ModelPlan& plan, int ranks) {
    std::vector<ScaleCheckpoint> common = scales_of(source, plan, {}), out;
    if (common.empty()) common = scales_of(source, plan, 0);
    if (ranks == 1) return common;
    for (int rank = 0; rank < ranks; ++rank) {
        std::vector<ScaleCheckpoint> own = scales_of(source, plan, rank);
        for (ScaleCheckpoint& scale : own.empty() ? std::vector(common) : std::move(own)) {
            scale.rank = rank;
            out.push_back(std::move(scale));
        }
    }
    return out;
}

struct ReadArm {
    ArmCheckpoint checkpoint;
    int step = 0;
};

ReadArm read_arm(const std::filesystem::path& path, const TrainSpec& spec) {
    const RandomFile file(path);
    const SafeTensorsIndex index = index_safetensors(file);
    Metadata said = metadata_of(index.metadata, file.where());
    const Source source(file, index, said.published);
    ArmCheckpoint arm;
    arm.recipe = std::move(said.recipe);
    arm.command_line = std::move(said.command_line);
    const ModelPlan plan = model_plan(spec);
    for (const auto& [name, shape, operand, optimised] : plan.parameters) {
        ParameterCheckpoint parameter;
        source.read(name, shape, parameter.values);
        source.read_moments(name, shape, parameter.moments);
        if (operand) parameter.storage_scale = source.scalar("storage_scale." + name);
        arm.parameters.push_back(std::move(parameter));
    }
    arm.scales = read_scales(source, plan, spec.ranks.count);
    for (const ParameterSpec& p : plan.parameters)
        for (const Gemm gemm : {Gemm::fprop, Gemm::dgrad})
            if (p.operand && source.find(kept_name(plan, *p.operand, gemm))) {
                KeptCheckpoint& kept = arm.kept.emplace_back(*p.operand, gemm);
                source.read(kept_name(plan, *p.operand, gemm), p.shape, kept.values);
            }
    arm.scaler = source.loss_scaler();
    return {std::move(arm), said.step};
}

}  // namespace

std::string command_line_of(const std::filesystem::path& path) {
    const std::string where = path.string();
    std::string line = metadata_of(index_safetensors(RandomFile(path)).metadata, where).command_line;
    if (line.empty()) throw input_error(where, "its metadata do not say what it was trained with");
    return line;
}

SwigluForm swiglu_of(const ArmCheckpoint& checkpoint) {
    return checkpoint.recipe.empty() ? SwigluForm::plain : parse_recipe(checkpoint.recipe).act;
}

void set_parameters(Model<float>& model, const ArmCheckpoint& checkpoint) {
    for (std::size_t i = 0; i < checkpoint.parameters.size(); ++i)
        std::ranges::copy(checkpoint.parameters[i].values, model.parameters()[i].value.begin());
}

ArmCheckpoint load_weights(const std::string& option, const std::filesystem::path& path,
                           const TrainSpec& spec) {
    std::error_code none;
    if (std::filesystem::is_directory(path, none))
        throw usage_error(option, "takes one checkpoint; " + path.string() + " is a folder");
    TrainSpec one = spec;
    one.arms.resize(1);
    return std::move(load_checkpoints(path, one).arms.front());
}

LoadedCheckpoints load_checkpoints(const std::filesystem::path& path, const TrainSpec& spec) {
    LoadedCheckpoints loaded{-1, {}};
    for (const auto& file_path : arm_files(path, spec)) {
        auto [arm, step] = read_arm(file_path, spec);
        if (loaded.steps_done >= 0 && step != loaded.steps_done)
            throw input_error(file_path.string(),
                              fmt::format("is at step {}, the arm before at {}", step, loaded.steps_done));
        loaded.steps_done = step;
        loaded.arms.push_back(std::move(arm));
    }
    return loaded;
}

std::vector<std::string> changes_on_resume(const std::filesystem::path& path, const TrainSpec& spec) {
    std::vector<Metadata> before;
    for (const auto& file : arm_files(path, spec)) {
        before.push_back(metadata_of(index_safetensors(RandomFile(file)).metadata, file.string()));
    }
    std::vector<std::string> changes;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const std::string& recipe = before[i].recipe;
        const std::string now = recipe_text(spec.arms[i]);
        if (!recipe.empty() && recipe != now)
            changes.push_back(fmt::format("arm {} was trained as {} and goes on as {}", i + 1, recipe, now));
    }
    const bool one_seed =
        std::ranges::all_of(before, [&](const Metadata& said) { return said.seed == before.front().seed; });
    for (std::size_t i = 0; i < before.size() && !(one_seed && i > 0); ++i) {
        const auto seed = before[i].seed;
        if (!seed || *seed == spec.seed) continue;
        const std::string of_arm = one_seed ? "" : fmt::format("in arm {} ", i + 1);
        changes.push_back(
            fmt::format("{}the seed was {} and is {} now: other batches", of_arm, *seed, spec.seed));
    }
    return changes;
}

}  // namespace fp8lab
