#include "app/desk/probe_json.h"

#include <nlohmann/json.hpp>

namespace fp8lab {

std::string probe_json(Session& session, long frames, long heard) {
    const ui::Context& context = session.context();
    Shell& shell = session.shell();
    const auto object = nlohmann::json::object();
    nlohmann::json json = {{"frames", frames}, {"heard", heard}, {"lab", ""},
                           {"probes", object}, {"axes", object}, {"metrics", object}};
    for (const auto& [name, item] : context.probes.items) {
        json["probes"][name] = {item.rect.x0, item.rect.y0, item.rect.x1, item.rect.y1};
        if (!item.words.empty()) json["words"][name] = item.words;
        if (item.axes) {
            const auto& [x, y] = *item.axes;
            json["axes"][name] = {x.lo, x.hi, y.lo, y.hi};
        }
    }
    json["theme"] = to_string(context.theme);
    json["notes"] = shell.presentation().wants_notes();
    json["types"] = ImGui::GetIO().WantTextInput;
    json["pointer"] = {ImGui::GetIO().MousePos.x, ImGui::GetIO().MousePos.y};
    json["ring"] = context.focus.visible ? context.focus.name : "";
    if (const Lab* lab = shell.lab()) {
        json["lab"] = lab->info().id;
        for (const Metric& metric : lab->metrics()) {
            json["metrics"][metric.name] =
                metric.text.empty() ? nlohmann::json(metric.value) : nlohmann::json(metric.text);
        }
    }
    return json.dump(1) + "\n";
}

}  // namespace fp8lab
