#include "labs/gpus/model_recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/files/files.h"
#include "core/json/member.h"
#include "core/json/read_json.h"

namespace fp8lab::gpus {
namespace {

std::map<std::string, double> times_of(const JsonMember& result, std::string_view name, bool zero) {
    std::map<std::string, double> out;
    if (!result.has(name)) return out;
    for (const auto& [what, time] : result.at(name).members())
        out[what] = zero ? time.at_least_zero() : time.above_zero();
    return out;
}

RecordedComm comm_of(const JsonMember& result) {
    RecordedComm out;
    out.gpus = result.at("gpus").count();
    for (const JsonMember& op : result.at("ops").some_elements())
        out.ops.push_back({op.at("op").filled_text(), op.at("dtype").filled_text(),
                           op.at("bytes").above_zero(), op.at("median_ms").above_zero()});
    return out;
}

std::vector<RecordedDdp> ddp_of(const JsonMember& result) {
    RecordedDdp base;
    base.gpus = result.at("gpus").count();
    base.rows = result.at("rows").count();
    for (const JsonMember& width : result.at("layers").some_elements())
        base.layers += fmt::format("{}{}", base.layers.empty() ? "" : "-", width.count());
    std::vector<RecordedDdp> out;
    if (result.has("peer_ms")) {
        out.push_back(base);
        out.back().peer_ms = times_of(result, "peer_ms", false);
        if (!result.has("arms")) return out;
    }
    for (const JsonMember& arm : result.at("arms").some_elements()) {
        RecordedDdp& one = out.emplace_back(base);
        one.sum = result.at("sum").filled_text(), one.shard = result.at("shard").filled_text();
        one.recipe = arm.at("recipe").filled_text(), one.gather = arm.at("gather").filled_text();
        one.median_ms = arm.at("median_ms").above_zero(), one.one_gpu_ms = arm.at("one_gpu_ms").above_zero();
        one.parts_ms = times_of(arm, "parts_ms", true);
    }
    return out;
}

Recorded read_all() {
    Recorded out;
    std::vector<std::filesystem::path> paths;
    try {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(asset("recordings")))
            if (entry.path().extension() == ".json") paths.push_back(entry.path());
    } catch (const Error&) {  // the folder is not there
        return out;
    }
    std::ranges::sort(paths);
    for (const auto& path : paths) try {
            add_recorded(read_text(path), path.string(), out);
        } catch (const Error& error) {
            if (out.problem.empty()) out.problem = error.what();
        }
    return out;
}

}  // namespace

void add_recorded(std::string_view json, const std::string& where, Recorded& out) {
    const nlohmann::json parsed = parse_json(json, where);
    const JsonMember file(parsed, where);
    const std::string gpu = file.at("gpu").filled_text(), date = file.at("date").filled_text();
    Recorded read;
    for (const JsonMember& result : file.at("results").some_elements()) {
        const std::string kind = result.at("bench").filled_text();
        const std::string day = result.has("date") ? result.at("date").filled_text() : date;
        if (kind == "comm") {
            read.comm.push_back(comm_of(result));
            read.comm.back().gpu = gpu, read.comm.back().date = day;
        } else if (kind == "ddp") {
            for (RecordedDdp& one : ddp_of(result)) {
                one.gpu = gpu, one.date = day;
                read.ddp.push_back(std::move(one));
            }
        }
    }
    out.comm.insert(out.comm.end(), read.comm.begin(), read.comm.end());
    out.ddp.insert(out.ddp.end(), read.ddp.begin(), read.ddp.end());
    std::ranges::stable_sort(out.comm, {}, &RecordedComm::gpus);
    std::ranges::stable_sort(out.ddp, {}, &RecordedDdp::gpus);
}

std::shared_ptr<const Recorded> recorded() {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const Recorded>>
        by_folder;  // tests have assets of their own
    const std::lock_guard lock(mutex);
    const char* folder = environment("FP8LAB_ASSETS");
    auto& found = by_folder[folder ? folder : ""];
    if (!found) found = std::make_shared<const Recorded>(read_all());
    return found;
}

}  // namespace fp8lab::gpus
