// fp8lab list labs|formats|recipes|scenes|exercises: what there is.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/formats/format.h"
#include "core/lesson/scene.h"
#include "core/scaling/recipe.h"
#include "labs/course/exercise_run.h"

namespace fp8lab::cli {

namespace {

struct Entry {
    std::string name, description;
};

std::vector<Entry> labs() {
    std::vector<Entry> out;
    for (const LabEntry& entry : lab_registry())
        out.push_back({std::string(entry.id),
                       fmt::format("{}{}", entry.number > 0 ? entry.mark() + "  " : "", entry.title)});
    return out;
}

std::vector<Entry> format_entries() {
    std::vector<Entry> out;
    for (const FormatInfo& format : formats())
        out.push_back({std::string(format.name),
                       fmt::format("{} bits, largest {}", bits(format), format_number(max_finite(format)))});
    return out;
}

std::vector<Entry> recipe_entries() {
    std::vector<Entry> out;
    for (const Recipe& recipe : recipes()) out.push_back({recipe.name, std::string(recipe.summary)});
    return out;
}

std::vector<Entry> exercise_entries() {
    std::vector<Entry> out;
    for (const ExerciseEntry& entry : all_exercises()) {
        const std::string& title = entry.exercise->title;
        out.push_back(
            {entry.exercise->id, title + (title.ends_with('?') ? " " : ". ") + entry.exercise->question});
    }
    return out;
}

std::vector<Entry> scene_entries() {
    std::vector<Entry> out;
    for (const auto& path : shipped_scenes()) {
        const Scene scene = read_scene(path);
        out.push_back({path.stem().string(), scene.title});
    }
    return out;
}

}  // namespace

void add_list(CLI::App& app, Globals&) {
    struct Options {
        std::string what;
        bool json = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* verb = app.add_subcommand("list", "Lists the labs, formats, recipes, scenes or exercises");
    verb->add_option("labs|formats|recipes|scenes|exercises", options->what, "what to list")->required();
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] {
        struct Kind {
            std::string_view name;
            std::vector<Entry> (*entries)();
        };
        static constexpr Kind kKinds[] = {{"labs", labs},
                                          {"formats", format_entries},
                                          {"recipes", recipe_entries},
                                          {"scenes", scene_entries},
                                          {"exercises", exercise_entries}};
        const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                       [&](const Kind& k) { return k.name == options->what; });
        if (kind == std::end(kKinds))
            throw unknown_name("list", "kind", options->what, kKinds, [](const Kind& k) { return k.name; });
        const auto entries = kind->entries();
        if (options->json) {
            nlohmann::json array = nlohmann::json::array();
            for (const Entry& e : entries)
                array.push_back({{"name", e.name}, {"description", e.description}});
            nlohmann::json out = json_header(cpu_backend()->device());
            out[kind->name] = array;
            print_json(out);
        } else {
            for (const Entry& e : entries) fmt::print("{:<14}{}\n", e.name, e.description);
        }
    });
}

}  // namespace fp8lab::cli
