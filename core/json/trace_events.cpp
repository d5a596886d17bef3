#include "core/json/trace_events.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ratio>
#include <string>
#include <utility>

namespace fp8lab {
namespace {

using Clock = TraceTrack::Clock;

using Grains = std::chrono::duration<std::int64_t, std::ratio<1, 8'000'000>>;  // of 125 ns

// Binary fractions that are whole nanoseconds: the same sums in every reader.
double microseconds(Clock::duration time) {
    return static_cast<double>(std::chrono::duration_cast<Grains>(time).count()) / 8;
}

// "M" events name what the viewer shows on the left.
nlohmann::json named(const char* what, int process, const char* member, nlohmann::json value) {
    return {
        {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", 1}, {"args", {{member, std::move(value)}}}};
}

}  // namespace

nlohmann::json trace_events(const Trace& trace) {
    auto start = Clock::time_point::max();
    for (const TraceTrack& track : trace.tracks())
        if (!track.steps().empty()) start = std::min(start, track.steps().front().front().begin);
    nlohmann::json out = nlohmann::json::array();
    int process = 0;
    for (const TraceTrack& track : trace.tracks()) {
        ++process;
        out.push_back(named("process_name", process, "name", track.name()));
        out.push_back(named("process_sort_index", process, "sort_index", process));
        out.push_back(named("thread_name", process, "name", "steps"));
        for (const auto& step : track.steps())
            for (const TraceTrack::Span& span : step) {
                const double begin = microseconds(span.begin - start);
                nlohmann::json event = {{"ph", "X"},
                                        {"name", span.name},
                                        {"cat", span.category},
                                        {"pid", process},
                                        {"tid", 1},
                                        {"ts", begin},
                                        {"dur", microseconds(span.end - start) - begin}};
                if (!span.detail.empty()) event["args"] = {{"detail", span.detail}};
                out.push_back(std::move(event));
            }
    }
    return out;
}

}  // namespace fp8lab
