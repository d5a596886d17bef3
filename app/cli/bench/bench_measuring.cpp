#include "app/cli/bench/bench_measuring.h"

#ifdef FP8LAB_GUI

#include <chrono>

#include "app/cli/bench/bench_frames.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "labs/speed/model.h"

namespace fp8lab::cli {
namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

bool has_live_time(const speed::SpeedLab& lab) {
    return lab.provenance() == Provenance::tensor_core && lab.outcome().any_time();
}

}  // namespace

nlohmann::json time_measuring(WindowLoop& loop) {
    constexpr int kTimes = 3;
    std::vector<double> first, frames;
    for (int i = 0; i < kTimes; ++i) {
        loop.shell().open("");
        loop.draw();
        loop.shell().open("speed");
        auto& lab = dynamic_cast<speed::SpeedLab&>(*loop.shell().lab());
        if (!lab.gpu_reason().empty()) return nullptr;
        for (const char* setting : {"n=4096", "k=4096", "m=4096"}) {
            set_field(lab.fields(), setting);
            lab.update();
        }
        for (int warm_up = 0; warm_up < 5; ++warm_up) loop.draw();
        const bool had_times = has_live_time(lab);
        const auto start = std::chrono::steady_clock::now();
        lab.act("measure");
        double first_ms = 0;
        do {
            frames.push_back(frame_to_pixels_ms(loop));
            if (first_ms == 0 && !had_times && has_live_time(lab)) first_ms = ms_since(start);
            end_if_interrupted();
        } while (lab.busy());
        if (!lab.measuring().problem().empty())
            throw Error{ErrorKind::failed, "bench ui", lab.measuring().problem()};
        if (first_ms > 0) first.push_back(first_ms);
    }
    return {{"first_number_ms", to_json(summarize(std::move(first)))},
            {"frames_to_pixels", frames_to_json(std::move(frames))}};
}

}  // namespace fp8lab::cli

#endif
