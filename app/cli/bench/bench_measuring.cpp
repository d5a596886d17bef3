#include "app/cli/bench/bench_measuring.h"

#ifdef FP8LAB_GUI

#include <algorithm>
#include <chrono>
#include <cmath>

#include "app/cli/bench/bench_frames.h"
#include "core/backend/backends.h"
#include "core/base/error.h"
#include "core/base/stop.h"
#include "labs/lab.h"

namespace fp8lab::cli {
namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Whether L9 shows a time, or a refusal, of a product on this machine's GPU.
bool has_live_time(const Lab& lab) {
    if (lab.provenance() != Provenance::tensor_core) return false;
    const std::vector<Metric> metrics = lab.metrics();
    return std::ranges::any_of(metrics, [](const Metric& metric) {
        const std::string_view name = metric.name;
        const bool of_product =
            name.starts_with("fprop.") || name.starts_with("dgrad.") || name.starts_with("wgrad.");
        return of_product && ((name.ends_with("_ms") && std::isfinite(metric.value)) ||
                              (name.ends_with(".status") && metric.value > 0));
    });
}

}  // namespace

nlohmann::json time_measuring(WindowLoop& loop) {
    constexpr int kTimes = 3;
    if (!Backends().gpu_reason().empty()) return nullptr;
    std::vector<double> first, frames;
    for (int i = 0; i < kTimes; ++i) {
        loop.shell().open("");
        loop.draw();
        loop.shell().open("speed");
        Lab& lab = *loop.shell().lab();
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
        if (!has_live_time(lab))
            throw Error{ErrorKind::failed, "bench ui",
                        "L9 has measured nothing on this GPU; fp8lab bench gemm tells why"};
        if (first_ms > 0) first.push_back(first_ms);
    }
    return {{"first_number_ms", to_json(summarize(std::move(first)))},
            {"frames_to_pixels", frames_to_json(std::move(frames))}};
}

}  // namespace fp8lab::cli

#endif
