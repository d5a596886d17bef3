#include "core/lesson/manual/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/files/files.h"
#include "core/json/read_json.h"
#include "core/lesson/runs.h"

namespace fp8lab {
namespace {

constexpr std::string_view kFolder = "docs/manual/";

ManualPage read_page(const std::string& part, const std::string& name, const std::string& machine) {
    const std::string file = fmt::format("{}{}/{}.md", kFolder, part, name);
    ManualPage page{.id = part + "/" + name, .title = {}, .text = with_runs(read_text(asset(file)))};
    const auto end = page.text.find('\n');
    if (!page.text.starts_with("# ") || end == page.text.npos)
        throw input_error(file, "does not begin with its heading");
    page.title = page.text.substr(2, end - 2);
    if (page.text.find("](seen:") != page.text.npos)
        page.text += fmt::format(
            "\n*Numbers* were printed by the commands above them, on one machine: {}. A test repeats the "
            "commands. Casts and scales are the same on every machine, losses of trainings nearly.\n",
            machine);
    return page;
}

}  // namespace

std::vector<ManualPart> written_manual() {
    const std::string index = std::string(kFolder) + "index.json";
    std::vector<ManualPart> parts;
    try {
        const auto json = parse_json(read_text(asset(index)), index);
        const auto machine = json.at("machine").get<std::string>();
        for (const auto& part : json.at("parts")) {
            parts.push_back({part.at("id"), part.at("title"), part.at("about"), {}});
            for (const auto& name : part.at("pages"))
                parts.back().pages.push_back(read_page(parts.back().id, name, machine));
        }
    } catch (const nlohmann::json::exception& error) {
        throw input_error(index, json_reason(error.what()));
    }
    return parts;
}

std::optional<SeenNumber> seen_number(std::string_view link) {
    if (!link.starts_with(kSeenLink)) return std::nullopt;
    link.remove_prefix(kSeenLink.size());
    const auto mark = std::min(link.find('~'), link.size());
    SeenNumber out{.path = std::string(link.substr(0, mark)), .tolerance = {}};
    if (mark == link.size()) return out;
    double tolerance = 0;
    const std::string_view text = link.substr(mark + 1);
    if (!read_number(text, tolerance))
        throw input_error(std::string(link), fmt::format("'{}' is no number", text));
    out.tolerance = tolerance;
    return out;
}

std::string code_note(std::string_view info) {
    if (info == "text") return "It prints, among other lines:";
    if (info == "sh needs=torch") return "Needs PyTorch.";
    if (info == "sh needs=model") return "Needs a model of yours.";
    if (info == "sh needs=exercises") return "Needs exercises that you have done.";
    constexpr std::string_view kExit = "exit=";
    if (const auto exit = info.find(kExit); exit != info.npos)
        return fmt::format("Ends with exit code {}.", info.substr(exit + kExit.size()));
    return {};
}

bool is_plain_link(std::string_view link) {
    return link.starts_with(kSeenLink) || link.starts_with(kPlaceLink) || link.starts_with(kPublishedLink);
}

}  // namespace fp8lab
