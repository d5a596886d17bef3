#include "labs/course/scene_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/files/folders.h"
#include "core/json/read_json.h"
#include "core/lesson/runs.h"
#include "core/tensors/npy.h"
#include "core/threads/worker.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The members of `fields` that the lab takes, each tried on its own so that a complaint has its place.
nlohmann::json fitting(Lab& lab, const Scene& scene, const Json& fields, const std::string& at,
                       std::vector<std::string>& notices) {
    nlohmann::json out = nlohmann::json::object();
    for (const auto& [name, value] : fields.items()) {
        const auto table = lab.fields();
        const bool known = find_field(table, name) != nullptr;
        const std::string place = place_text(scene.places, at + "/" + name);
        if (!known && scene.schema > kSceneSchema) {
            notices.push_back(
                fmt::format("Field '{}' ({}) is not known here and was left out.", name, place));
            continue;
        }
        out[name] = value;
        try {
            fields_from_json(table, {{name, value}});
        } catch (const Error& error) {
            throw input_error(scene.where, place + ": " + error.why());
        }
    }
    return out;
}

void check_names(Lab& lab, const Scene& scene, std::vector<std::string>& notices) {
    const auto table = lab.fields();
    const auto check = [&](const std::string& name, const std::string& at) {
        if (find_field(table, name) != nullptr) return;
        if (scene.schema > kSceneSchema) {
            notices.push_back(fmt::format("Field '{}' is not known here.", name));
            return;
        }
        const Error unknown =
            unknown_name(scene.where, "field", name, table, [](const Field& f) { return f.info.name; });
        throw input_error(scene.where, place_text(scene.places, at) + ": " + unknown.why());
    };
    for (std::size_t i = 0; i < scene.locked.size(); ++i)
        check(scene.locked[i], "/locked/" + std::to_string(i));
    for (std::size_t i = 0; i < scene.hidden.size(); ++i)
        check(scene.hidden[i], "/hidden/" + std::to_string(i));
    for (std::size_t i = 0; i < scene.tensors.size(); ++i)
        check(scene.tensors[i].field, "/tensors/" + std::to_string(i) + "/field");
    if (!scene.knob.empty()) check(scene.knob, "/knob");
}

// Words, and the name in braces behind them: "{a.saturated_steps} of {steps}".
struct Part {
    std::string_view words;
    std::optional<std::string> name = {};
};

std::vector<Part> parts_of(std::string_view text) {
    std::vector<Part> out;
    for (;;) {
        const auto open = text.find('{');
        const auto close = text.find('}', open == std::string_view::npos ? 0 : open);
        if (open == std::string_view::npos || close == std::string_view::npos) {
            out.push_back({text});
            return out;
        }
        out.push_back({text.substr(0, open), std::string(text.substr(open + 1, close - open - 1))});
        text.remove_prefix(close + 1);
    }
}

// What a scene names of its lab's results, each with its place in the file.
struct Named {
    std::string name, at;
};

std::vector<Named> metrics_named(const Scene& scene) {
    std::vector<Named> out;
    const auto add = [&](std::string_view text, const std::string& at) {
        for (Part& part : parts_of(text))
            if (part.name) out.push_back({std::move(*part.name), at});
    };
    add(scene.sentence, "/sentence");
    for (std::size_t i = 0; i < scene.numbers.size(); ++i) {
        const std::string at = "/numbers/" + std::to_string(i);
        out.push_back({scene.numbers[i].metric, at + "/metric"});
        add(scene.numbers[i].label, at + "/label");
    }
    if (scene.headline) out.push_back({scene.headline->metric, "/headline/metric"});
    return out;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
}

// What the lab can show in the states that it was in.
struct Shown {
    std::vector<std::string> metrics, figures;

    void take(Lab& lab) {
        lab.update();
        std::ranges::move(lab.metric_names(), std::back_inserter(metrics));
        for (const Field& field : lab.fields()) metrics.push_back(field.info.name);
        for (std::string& id : lab.figure_ids())
            if (!holds(figures, id)) figures.push_back(std::move(id));
    }
};

// A whole number's knob is tried at that many places, from its lowest to its highest.
constexpr int kKnobPlaces = 64;

std::vector<std::string> places_of(const Field& knob) {
    std::vector<std::string> out;
    const double range = knob.max - knob.min;
    if (std::holds_alternative<int*>(knob.value)) {
        const int places = static_cast<int>(std::min<double>(kKnobPlaces, range));
        for (int i = 0; i <= places; ++i)
            out.push_back(std::to_string(std::lround(knob.min + range * i / std::max(places, 1))));
    } else if (std::holds_alternative<double*>(knob.value)) {
        out = {shortest(knob.min), shortest(knob.min + range / 2), shortest(knob.max)};
    }
    for (const Choice& choice : knob.choices) out.push_back(choice.id);
    return out;
}

// Also what the lab has only where the knob of presentation was moved.
void take_knob(Lab& lab, const Scene& scene, Shown& shown) {
    for (const Field& field : lab.fields()) {
        if (field.info.name != scene.knob) continue;
        const std::string before = field_text(field);
        for (const std::string& place : places_of(field)) {
            try {
                set_field(lab.fields(), scene.knob + "=" + place);
                shown.take(lab);
            } catch (const Error&) {  // not possible with the other fields: the lab shows nothing there
            }
        }
        set_field(lab.fields(), scene.knob + "=" + before);
        lab.update();
        return;
    }
}

// What the lab can show in the scene's state, which it has, in the one that it is compared with, and, where
// `told` names more, with the knob moved.
Shown shown_by(Lab& lab, const Scene& scene, const std::vector<Named>& told) {
    Shown shown;
    shown.take(lab);
    const auto complete = [&] {
        return std::ranges::all_of(told, [&](const Named& n) { return holds(shown.metrics, n.name); }) &&
               (scene.figure.empty() || holds(shown.figures, scene.figure));
    };
    const auto with_knob = [&] {
        if (!complete()) take_knob(lab, scene, shown);
    };
    if (scene.compare.is_null()) {
        with_knob();
        return shown;
    }
    const nlohmann::json before = lab.state();
    lab.restore(nlohmann::json(scene.compare));
    shown.take(lab);
    with_knob();
    lab.restore(before);
    with_knob();
    return shown;
}

// Holds what the scene says against `lab`, which has the scene's state.
void check_told(Lab& lab, const Scene& scene, std::vector<std::string>& notices) {
    const std::vector<Named> told = metrics_named(scene);
    const Shown shown = shown_by(lab, scene, told);
    const auto refuse = [&](std::string_view what, const Named& named, const std::string& where_listed) {
        const std::string place = place_text(scene.places, named.at);
        if (scene.schema > kSceneSchema)
            notices.push_back(fmt::format("{} '{}' ({}) is not known here.", what, named.name, place));
        else
            throw input_error(scene.where,
                              fmt::format("{}: the lab has no {} '{}' in the states of this scene; {}", place,
                                          what, quote_from(named.name), where_listed));
    };
    const std::string listed = fmt::format("\"fp8lab run {}\" lists them", lab.info().id);
    for (const Named& named : told)
        if (!holds(shown.metrics, named.name)) refuse("metric", named, listed);
    if (!scene.figure.empty() && !holds(shown.figures, scene.figure))
        refuse("figure", {scene.figure, "/figure"}, fmt::format("valid: {}", fmt::join(shown.figures, " ")));
}

fs::path file_of(const Scene::Tensor& tensor, const Scene& scene, const fs::path& folder) {
    if (!tensor.path.empty()) return fs::absolute(scene.folder / tensor.path);
    // Named by its content, so that the same scene, opened twice, is one file.
    const auto bytes = to_npy(tensor.values, tensor.shape);
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001B3ULL;
    make_folder(folder);
    const fs::path file = folder / fmt::format("tensor-{:016x}.npy", hash);
    if (!fs::exists(file)) write_file(file, bytes);
    return file;
}

const Metric* find_metric(std::span<const Metric> metrics, std::string_view name) {
    const auto it = std::ranges::find_if(metrics, [&](const Metric& m) { return m.name == name; });
    return it == metrics.end() ? nullptr : &*it;
}

std::string text_of(const Metric& metric) {
    if (!metric.text.empty()) return metric.text;
    // Three digits are read across a hall, four are not; what has no unit is mostly a count.
    return metric.unit.empty() ? format_number(metric.value, 4, true)
                               : format_number(metric.value, 3, true) + " " + metric.unit;
}

void rest(Lab& lab) {
    lab.update();
    while (lab.busy() && !lab.live()) {
        wait_for_workers();
        lab.update();
    }
    lab.update();
}

}  // namespace

const LabEntry& lab_of(const Scene& scene) {
    try {
        return find_lab(scene.lab);
    } catch (const Error& error) {
        throw input_error(scene.where, place_text(scene.places, "/lab") + ": " + error.why());
    }
}

std::vector<std::string> apply_scene(Lab& lab, const Scene& scene, const fs::path& folder) {
    std::vector<std::string> notices = scene.notices;
    const LabEntry& entry = lab_of(scene);
    if (entry.id != lab.info().id) throw usage_error(scene.where, fmt::format("is a scene of {}", entry.id));
    const auto trial = entry.make();  // first on a lab of its own: nothing changes if it fails
    check_names(*trial, scene, notices);
    nlohmann::json state = fitting(*trial, scene, scene.state, "/state", notices);
    if (!scene.compare.is_null()) {
        std::vector<std::string> ignored;
        fitting(*trial, scene, scene.compare, "/compare", ignored);
    }
    for (const Scene::Tensor& tensor : scene.tensors)
        state[tensor.field] = file_of(tensor, scene, folder).string();
    trial->reset();
    trial->restore(state);
    check_told(*trial, scene, notices);
    lab.reset();
    lab.restore(state);
    return notices;
}

std::unique_ptr<Lab> run_scene(const Scene& scene, const fs::path& folder) {
    auto lab = lab_of(scene).make();
    apply_scene(*lab, scene, folder);
    rest(*lab);
    if (scene.steps > 0) lab->advance(scene.steps);
    rest(*lab);
    return lab;
}

std::string headline_problem(const Scene& scene, const Lab& lab) {
    if (!scene.headline) return {};
    const auto& [name, value, tolerance, word] = *scene.headline;
    const auto metrics = lab.metrics();
    const Metric* metric = find_metric(metrics, name);
    if (metric == nullptr) return fmt::format("the lab has no '{}' in this state", name);
    const bool agrees = word.empty() ? metric->text.empty() &&
                                           std::fabs(metric->value - value) <= tolerance * std::fabs(value)
                                     : metric->text == word;
    if (agrees) return {};
    return fmt::format("{} is {}, the scene says {}", name, text_of(*metric),
                       word.empty() ? shortest(value) : word);
}

Scene scene_of(Lab& lab, const std::string& title, const std::string& notes) {
    const nlohmann::json now = lab.state(), before = fields_to_json(lab.defaults());
    Json document;
    document["fp8lab_scene"] = kSceneSchema;
    document["version"] = FP8LAB_VERSION;
    document["lab"] = lab.info().id;
    document["title"] = title;
    if (!notes.empty()) document["notes"] = notes;
    document["state"] = Json::object();
    for (const auto& [name, value] : now.items())
        if (!before.contains(name) || before[name] != value) document["state"][name] = value;
    return parse_scene(document.dump(2) + "\n", title);
}

Link link_of(Lab& lab) {
    const nlohmann::json now = lab.state(), before = fields_to_json(lab.defaults());
    Link link{.lab = lab.info().number > 0 ? lab.info().mark() : std::string(lab.info().id)};
    for (const Field& field : lab.fields()) {
        const std::string name(field.info.name);
        if (!now.contains(name) || (before.contains(name) && before[name] == now[name])) continue;
        const std::string text = field_text(field);
        if (field.choices.empty() && text.starts_with('/'))
            throw input_error("link",
                              fmt::format("{} is a file of this machine, which a link cannot carry", name));
        link.fields.push_back(name + "=" + text);
    }
    return link;
}

namespace {
std::optional<std::string> known_text(Lab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    if (const Metric* metric = find_metric(metrics, name)) return text_of(*metric);
    const auto fields = lab.fields();
    if (const Field* const field = find_field(fields, name)) return field_text(*field);
    return std::nullopt;
}
}  // namespace

std::string number_text(Lab& lab, std::string_view name) {
    return known_text(lab, name).value_or(lab.live() ? "-" : "does not apply");
}

bool sentence_is_known(const Scene& scene, Lab& lab) {
    return std::ranges::all_of(parts_of(scene.sentence), [&](const Part& part) {
        return !part.name || known_text(lab, *part.name).has_value();
    });
}

std::string sentence_text(const Scene& scene, Lab& lab) { return filled_text(scene.sentence, lab); }

std::string notes_text(const Scene& scene) {
    try {
        return with_runs(scene.notes);
    } catch (const Error&) {
        return scene.notes;
    }
}

std::string filled_text(std::string_view text, Lab& lab) {
    std::string out;
    for (const Part& part : parts_of(text)) {
        out += part.words;
        if (part.name) out += number_text(lab, *part.name);
    }
    return out;
}

}  // namespace fp8lab
