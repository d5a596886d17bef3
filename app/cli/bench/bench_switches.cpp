#include "app/cli/bench/bench_switches.h"

#ifdef FP8LAB_GUI

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/window/window_loop.h"
#include "core/base/error.h"
#include "core/base/stop.h"

namespace fp8lab::cli {
namespace {

// Until the lab has nothing left to compute and the last of it is drawn, at the pace of the window: frames that nothing
// asks for would take the cores that compute.
double time_setting(WindowLoop& loop, const std::string& setting) {
    Lab& lab = *loop.shell().lab();
    return time_ms([&] {
        set_field(lab.fields(), setting);
        wait_until(loop, [&] { return !lab.busy() && !loop.woken(); });
        loop.window().finish();
    });
}

nlohmann::json of_field(std::map<std::string, std::vector<double>> by_choice) {
    std::vector<double> all;
    std::string slowest;
    double slowest_ms = 0;
    for (const auto& [choice, ms] : by_choice) {
        all.insert(all.end(), ms.begin(), ms.end());
        const double median = summarize(ms).median_ms;
        if (median > slowest_ms) slowest_ms = median, slowest = choice;
    }
    nlohmann::json out = to_json(summarize(all));
    out["largest_ms"] = *std::ranges::max_element(all);
    out["slowest"] = slowest;
    out["slowest_median_ms"] = slowest_ms;
    return out;
}

}  // namespace

void wait_until(WindowLoop& loop, const std::function<bool()>& done) {
    if (loop.run_until(done)) return;
    end_if_interrupted();
    throw Error{ErrorKind::failed, "bench ui", "the window was closed"};
}

nlohmann::json time_switches(WindowLoop& loop, int repeats) {
    constexpr std::string_view kOwn = "file";  // there is none to choose
    loop.shell().open("four");
    Lab& lab = *loop.shell().lab();
    const auto start_anew = [&] {
        lab.reset();
        time_setting(loop, "seed=1");
    };
    start_anew();
    const std::vector<Field> fields = lab.fields();
    nlohmann::json out = nlohmann::json::object();
    for (const Field& field : fields) {
        if (field.choices.empty()) continue;
        std::map<std::string, std::vector<double>> by_choice;
        for (int i = 0; i < repeats; ++i)
            for (const Choice& choice : field.choices) {
                if (choice.id == kOwn) continue;
                end_if_interrupted();
                by_choice[choice.id].push_back(time_setting(loop, field.info.name + "=" + choice.id));
            }
        out[field.info.name] = of_field(std::move(by_choice));
        start_anew();
    }
    std::map<std::string, std::vector<double>> seeds;
    for (int i = 0; i < repeats; ++i, end_if_interrupted())
        seeds["another"].push_back(time_setting(loop, fmt::format("seed={}", i + 2)));
    out["seed"] = of_field(std::move(seeds));
    lab.reset();
    return out;
}

}  // namespace fp8lab::cli

#endif
