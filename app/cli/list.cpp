// fp8lab list KIND [NAME...] [--json]: what there is; with names, these in full.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/cli/list_entries.h"
#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/formats/format.h"
#include "core/lesson/scene.h"
#include "core/scaling/recipe.h"
#include "labs/course/exercise_run.h"

namespace fp8lab::cli {

namespace {

std::vector<ListEntry> lab_entries() {
    std::vector<ListEntry> out;
    for (const LabEntry& entry : lab_registry())
        out.push_back({std::string(entry.id),
                       fmt::format("{}{}", entry.number > 0 ? entry.mark() + "  " : "", entry.title)});
    return out;
}

std::vector<ListEntry> format_entries() {
    std::vector<ListEntry> out;
    for (const FormatInfo& format : formats())
        out.push_back({std::string(format.name), fmt::format("{} bits, largest {}", width_bits(format),
                                                             format_number(max_finite(format)))});
    return out;
}

std::vector<ListEntry> recipe_entries() {
    std::vector<ListEntry> out;
    for (const Recipe& recipe : recipes()) out.push_back({recipe.name, std::string(recipe.summary)});
    return out;
}

std::vector<ListEntry> exercise_entries() {
    std::vector<ListEntry> out;
    for (const ExerciseEntry& entry : all_exercises()) {
        const std::string& title = entry.exercise->title;
        out.push_back(
            {entry.exercise->id, title + (title.ends_with('?') ? " " : ". ") + entry.exercise->question});
    }
    return out;
}

std::vector<ListEntry> scene_entries() {
    std::vector<ListEntry> out;
    for (const auto& path : shipped_scenes()) {
        const Scene scene = read_scene(path);
        out.push_back({path.stem().string(), scene.title});
    }
    return out;
}

struct Kind {
    std::string_view name;
    std::vector<ListEntry> (*entries)();
};
constexpr Kind kKinds[] = {{"labs", lab_entries},           {"formats", format_entries},
                           {"recipes", recipe_entries},     {"scenes", scene_entries},
                           {"exercises", exercise_entries}, {"lessons", lesson_entries},
                           {"terms", term_entries},         {"claims", claim_entries}};

struct ListArguments {
    std::string kind;
    std::vector<std::string> names;
    bool json = false;
};

// The entries with these names, in their order. A lab is found by its number too.
std::vector<ListEntry> chosen(const Kind& kind, const std::vector<std::string>& names) {
    std::vector<ListEntry> all = kind.entries();
    if (names.empty()) return all;
    const bool by_lab = kind.name == "labs" || kind.name == "lessons";
    std::vector<ListEntry> out;
    for (const std::string& name : names) {
        const std::string id = by_lab ? std::string(find_lab(name, "list").id) : name;
        const auto entry = std::ranges::find(all, id, &ListEntry::name);
        if (entry == all.end())
            throw unknown_name("list", kind.name.substr(0, kind.name.size() - 1), name, all,
                               [](const ListEntry& e) { return e.name; });
        out.push_back(*entry);
    }
    return out;
}

void print_lines(const std::vector<ListEntry>& entries) {
    std::size_t width = 12;
    for (const ListEntry& entry : entries) width = std::max(width, entry.name.size());
    for (const ListEntry& entry : entries)
        write_stdout(fmt::format("{:<{}}  {}\n", entry.name, width, entry.description));
}

void run_list(const ListArguments& arguments) {
    const auto kind = std::ranges::find(kKinds, arguments.kind, &Kind::name);
    if (kind == std::end(kKinds))
        throw unknown_name("list", "kind", arguments.kind, kKinds, [](const Kind& k) { return k.name; });
    const std::vector<ListEntry> entries = chosen(*kind, arguments.names);
    if (arguments.json) {
        nlohmann::json out = json_header(cpu_backend()->device());
        out[kind->name] = nlohmann::json::array();
        for (const ListEntry& entry : entries) {
            nlohmann::json row = entry.more.is_null() ? nlohmann::json::object() : entry.more;
            row["name"] = entry.name, row["description"] = entry.description;
            out[kind->name].push_back(std::move(row));
        }
        return print_json(out);
    }
    const bool in_full = !arguments.names.empty() && !entries.front().text.empty();
    if (!in_full) return print_lines(entries);
    for (const ListEntry& entry : entries)
        write_stdout((&entry == &entries.front() ? "" : "\n") + entry.text);
}

}  // namespace

void add_list(CLI::App& app, Globals&) {
    const auto arguments = std::make_shared<ListArguments>();
    CLI::App* verb = app.add_subcommand(
        "list", "Lists the labs, formats, recipes, scenes, exercises, lessons, terms or claim cards");
    verb->add_option("labs|formats|recipes|scenes|exercises|lessons|terms|claims", arguments->kind,
                     "what to list")
        ->required();
    verb->add_option("name", arguments->names,
                     "only these; a lesson, a term or a claim card is printed in full");
    verb->add_flag("--json", arguments->json, "as JSON, with everything that is known of each");
    verb->callback([arguments] { run_list(*arguments); });
}

}  // namespace fp8lab::cli
