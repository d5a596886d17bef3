#include "app/cli/bench/bench_sliders.h"

#ifdef FP8LAB_GUI

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "app/window/window_loop.h"
#include "core/base/stop.h"
#include "labs/ui/input.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

// A lab with as much to compute as its sliders may meet.
struct SliderScene {
    std::string_view name, lab;
    std::vector<std::string> settings;
};
const std::vector<SliderScene>& slider_scenes() {
    static const std::vector<SliderScene> kScenes = {
        {"bits", "bits", {}},
        {"ruler", "ruler", {"tensor=lognormal", "elements=262144"}},
        {"error", "error", {"tensor=lognormal", "outliers=100", "cols=1048576"}},
        {"window", "window", {"tensor=lognormal", "outliers=100", "cols=1048576"}},
        {"window percentile", "window", {"tensor=lognormal", "source=percentile", "cols=1048576"}},
        {"delayed", "delayed", {"scenario=spike", "cols=1048576"}},
        {"blocks", "blocks", {"tensor=lognormal", "rows=1024", "cols=1024"}},
        {"adding sum", "adding", {"experiment=sum", "terms=65536"}},
        {"adding dice", "adding", {"experiment=dice", "draws=20000"}},
        {"adding dot", "adding", {"experiment=dot"}},
        {"adding weight", "adding", {"experiment=weight"}},
        {"train", "train", {}},
        {"memory", "memory", {}},
        {"four", "four", {}},
        {"four picture", "four", {"tensor=picture"}},
        {"transformer", "transformer", {}},
        {"wide attention", "wide", {"experiment=attention"}},
        {"wide swiglu", "wide", {"experiment=swiglu"}},
        {"wide optimiser", "wide", {"experiment=optimiser"}},
    };
    return kScenes;
}

std::vector<std::string> slider_names(const ui::Context& context) {
    constexpr std::string_view kValue = ".value";
    std::vector<std::string> out;
    for (const auto& [name, item] : context.probes.items) {
        if (!name.ends_with(kValue)) continue;
        std::string slider = name.substr(0, name.size() - kValue.size());
        if (context.probes.items.contains(slider)) out.push_back(std::move(slider));
    }
    return out;
}

Point center(const Rect& r) { return {(r.x0 + r.x1) / 2, (r.y0 + r.y1) / 2}; }

// Turns the wheel until the control can be seen; false: it cannot.
bool bring_into_sight(WindowLoop& loop, const std::string& name) {
    constexpr int kNotches = 40;
    for (int i = 0; i < kNotches; ++i) {
        const auto found = loop.context().probes.items.find(name);
        if (found == loop.context().probes.items.end()) return false;
        const Rect rect = found->second.rect, clip = found->second.clip;
        if (rect.y0 >= clip.y0 && rect.y1 <= clip.y1) return true;
        loop.draw([&] {
            ui::feed_mouse(center(clip).x, center(clip).y);
            ui::feed_wheel(rect.y0 < clip.y0 ? 1.0F : -1.0F);
        });
    }
    return false;
}

void click(WindowLoop& loop, const std::string& name) {
    const Point at = center(loop.context().probes.items.at(name).rect);
    for (const bool down : {false, true, false})
        loop.draw([&] {
            ui::feed_mouse(at.x, at.y);
            ui::feed_button(0, down);
        });
}

// A mouse that drags the knob from end to end: from its move to the pixels of the next frame, and of the
// recomputed figure where the lab computes it apart.
Json time_slider(WindowLoop& loop, const std::string& slider, int repeats) {
    const Rect track = loop.context().probes.items.at(slider).rect;
    const auto hand_at = [&](double t, bool down) {
        return [&track, t, down] {
            ui::feed_mouse(track.x0 + static_cast<float>(t) * track.width(), center(track).y);
            ui::feed_button(0, down);
        };
    };
    loop.draw(hand_at(0.5, false));
    loop.draw(hand_at(0.5, true));
    std::vector<double> ms, recomputed;
    for (int i = 0; i < repeats; ++i, end_if_interrupted()) {
        const double t = 0.5 + 0.45 * std::sin(0.3 * i);
        ms.push_back(time_ms([&] {
            loop.draw(hand_at(t, true));
            loop.window().finish();
        }));
        recomputed.push_back(ms.back() + time_ms([&] {
                                 if (!loop.shell().lab()->busy()) return;
                                 while (loop.shell().lab()->busy())  // the hand rests, and so does the window
                                     std::this_thread::sleep_for(std::chrono::microseconds(500));
                                 loop.draw(hand_at(t, true));
                                 loop.window().finish();
                             }));
    }
    loop.draw(hand_at(0.5, false));
    Json result = to_json(summarize(ms));
    result["largest_ms"] = *std::max_element(ms.begin(), ms.end());
    result["recomputed"] = to_json(summarize(recomputed));
    return result;
}

void settle(WindowLoop& loop) {
    do loop.draw();
    while (loop.shell().lab()->busy());
    loop.draw();
}

void set_up(WindowLoop& loop, const SliderScene& scene) {
    Lab& lab = *loop.shell().lab();
    lab.reset();
    for (const std::string& setting : scene.settings) {
        set_field(lab.fields(), setting);
        lab.update();
    }
    settle(loop);
}

}  // namespace

Json time_sliders(WindowLoop& loop, int repeats) {
    Json result = Json::object();
    for (const SliderScene& scene : slider_scenes()) {
        loop.shell().open(scene.lab);
        set_up(loop, scene);
        const std::string more = std::string(scene.lab) + ".more";
        const std::size_t first_tier = slider_names(loop.context()).size();
        if (loop.context().probes.items.contains(more) && bring_into_sight(loop, more)) {
            click(loop, more);
            if (slider_names(loop.context()).size() < first_tier) click(loop, more);  // it was open
        }
        Json& sliders = result[std::string(scene.name)] = Json::object();
        for (const std::string& slider : slider_names(loop.context())) {
            set_up(loop, scene);
            sliders[slider] = bring_into_sight(loop, slider) ? time_slider(loop, slider, repeats) : Json();
        }
        loop.shell().lab()->reset();
    }
    return result;
}

}  // namespace fp8lab::cli

#endif
