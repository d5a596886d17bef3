#include "app/cli/bench/bench_frames.h"

#ifdef FP8LAB_GUI

#include <algorithm>
#include <cmath>

#include "app/cli/bench/bench.h"
#include "core/base/stop.h"

namespace fp8lab::cli {
namespace {

constexpr int kTurns = 7;
constexpr double kSettle_s = 0.3;  // a pause that is under way, and the pictures that come with either state

}  // namespace

double frame_to_pixels_ms(WindowLoop& loop) {
    return time_ms([&] {
        loop.draw();
        loop.window().finish();
    });
}

nlohmann::json frames_to_json(std::vector<double> ms) {
    std::ranges::sort(ms);
    const auto p99 = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(ms.size()))) - 1;
    const double p99_ms = ms[p99], largest_ms = ms.back();
    nlohmann::json result = to_json(summarize(std::move(ms)));
    result["p99_ms"] = p99_ms;
    result["largest_ms"] = largest_ms;
    return result;
}

nlohmann::json time_frames_beside(WindowLoop& loop, Lab& lab, int repeats) {
    std::vector<double> training, paused;
    for (int turn = 0; turn < kTurns; ++turn)
        for (const bool trains : {true, false}) {
            lab.act(trains ? "run" : "pause");
            loop.run_for(kSettle_s);
            for (int i = 0; i < repeats; ++i, end_if_interrupted()) {
                if (trains && !lab.busy()) lab.act("run");
                (trains ? training : paused).push_back(frame_to_pixels_ms(loop));
            }
        }
    const double ratio = summarize(training).median_ms / summarize(paused).median_ms;
    return {{"paused", frames_to_json(std::move(paused))},
            {"training", frames_to_json(std::move(training))},
            {"ratio", ratio}};
}

}  // namespace fp8lab::cli

#endif
