#include "core/backend/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/files/files.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;

// One object of the file, with its place for messages: "results[2].arms[0]".
class Member {
  public:
    Member(const Json& value, std::string where, std::string path)
        : value_(value), where_(std::move(where)), path_(std::move(path)) {
        if (!value.is_object()) fail("is not an object");
    }
    std::string text(const char* name) const {
        const Json& value = at(name);
        if (!value.is_string() || value.get_ref<const std::string&>().empty()) fail(name, "is not a text");
        return value;
    }
    double above_zero(const char* name) const {
        const double number = at_least_zero(name);
        if (number == 0) fail(name, "is 0");
        return number;
    }
    double at_least_zero(const char* name) const {
        const Json& value = at(name);
        if (!value.is_number() || !(value.get<double>() >= 0)) fail(name, "is not a number from 0");
        return value;
    }
    double number(const char* name) const {
        const Json& value = at(name);
        if (!value.is_number()) fail(name, "is not a number");
        return value;
    }
    bool truth(const char* name) const {
        const Json& value = at(name);
        if (!value.is_boolean()) fail(name, "is not true or false");
        return value;
    }
    int count(const Json& value, const char* name) const {
        if (!value.is_number_integer() || value < 1 || value > (1 << 20))
            fail(name, "is not from 1 to 1048576");
        return value;
    }
    int count(const char* name) const { return count(at(name), name); }
    bool has(const char* name) const { return value_.contains(name); }
    const Json& list(const char* name) const {
        const Json& value = at(name);
        if (!value.is_array() || value.empty()) fail(name, "is not a list");
        return value;
    }
    Member element(const char* name, std::size_t i) const {
        return {list(name)[i], where_, fmt::format("{}{}[{}]", prefix(), name, i)};
    }
    [[noreturn]] void fail(const std::string& name, const std::string& why) const {
        throw input_error(where_, fmt::format("'{}{}' {}", prefix(), name, why));
    }

  private:
    std::string prefix() const { return path_.empty() ? "" : path_ + "."; }
    [[noreturn]] void fail(const std::string& why) const {
        throw input_error(where_, fmt::format("'{}' {}", path_.empty() ? "the file" : path_, why));
    }
    const Json& at(const char* name) const {
        const auto found = value_.find(name);
        if (found == value_.end()) fail(name, "is missing");
        return *found;
    }
    const Json& value_;
    std::string where_, path_;
};

RecordedStep step_of(const Member& result) {
    RecordedStep step;
    for (const Json& width : result.list("layers")) step.layers.push_back(result.count(width, "layers"));
    step.batch = result.count("batch");
    for (std::size_t i = 0; i < result.list("arms").size(); ++i) {
        const Member arm = result.element("arms", i);
        step.arms.push_back({arm.text("recipe"), arm.above_zero("median_ms"), arm.at_least_zero("iqr_ms"),
                             arm.above_zero("tflops"),
                             arm.has("memory_bytes") ? arm.above_zero("memory_bytes") : 0});
    }
    return step;
}

std::vector<AccumulationError> accumulation_of(const Member& result) {
    std::vector<AccumulationError> out;
    for (std::size_t i = 0; i < result.list("lines").size(); ++i) {
        const Member line = result.element("lines", i);
        out.push_back({line.text("data"), line.count("k"), line.truth("fast"), line.at_least_zero("rel_rms"),
                       line.number("rel_bias")});
    }
    return out;
}

}  // namespace

const RecordedArm* RecordedStep::find(std::string_view recipe) const {
    const auto arm = std::ranges::find(arms, recipe, &RecordedArm::recipe);
    return arm == arms.end() ? nullptr : &*arm;
}

double RecordedStep::speedup(std::string_view recipe) const {
    const RecordedArm *reference = find("bf16"), *own = find(recipe);
    return reference && own ? reference->median_ms / own->median_ms : 0;
}

Recording parse_recording(std::string_view json, const std::string& where) {
    constexpr std::array<std::string_view, 7> kKinds = {"step",       "step-sweep", "gemm", "cast",
                                                        "accumulate", "validate",   "ui"};
    Json parsed;
    try {
        parsed = Json::parse(json);
    } catch (const Json::parse_error& error) {
        throw input_error(where, json_reason(error.what()));
    }
    const Member file(parsed, where, "");
    Recording recording{file.text("gpu"),
                        file.text("driver"),
                        file.text("cuda"),
                        file.text("date"),
                        file.text("command"),
                        {},
                        {}};
    for (std::size_t i = 0; i < file.list("results").size(); ++i) {
        const Member result = file.element("results", i);
        const std::string kind = result.text("bench");
        if (std::ranges::find(kKinds, kind) == kKinds.end())
            result.fail("bench", fmt::format("is '{}'; valid: {}", kind, fmt::join(kKinds, " ")));
        if (kind == "step") recording.steps.push_back(step_of(result));
        if (kind == "accumulate") recording.accumulation = accumulation_of(result);
    }
    std::ranges::stable_sort(recording.steps, {},
                             [](const RecordedStep& step) { return std::pair(step.layers, step.batch); });
    return recording;
}

std::optional<Recording> load_recording() {
    std::filesystem::path path;
    try {
        path = asset("recordings/h200.json");
    } catch (const Error&) {  // not there
        return std::nullopt;
    }
    return parse_recording(read_text(path), path.string());
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
