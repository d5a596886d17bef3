#include "core/python/notebook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/python/recipe_code.h"

namespace fp8lab {
namespace {

constexpr std::string_view kErrors = R"(import torch

x, exact = torch.randn(256, 64), torch.nn.Linear(64, 32)
for module in modules:
    layer = module.Linear(64, 32)
    layer.load_state_dict(exact.state_dict())
    for call in range(3):  # delayed scaling casts the first one with scale 1
        y = layer(x)
    print(f"{module.__name__}: y is off by {(y - exact(x)).norm() / exact(x).norm():.2%}"))";

constexpr std::string_view kCheck = R"(for module in modules:
    module.check()
print("The codes are FP8 Lab's:", *(module.__name__ for module in modules)))";

class Cells {
  public:
    void markdown(std::string_view text) { add("markdown", text); }
    void code(std::string_view text) {
        nlohmann::json& cell = add("code", text);
        cell["execution_count"] = nullptr;
        cell["outputs"] = nlohmann::json::array();
    }
    nlohmann::json take() { return std::move(cells_); }

  private:
    // Lines with their ends, as Jupyter writes them: one that changes is one in a diff.
    static nlohmann::json lines_of(std::string_view text) {
        nlohmann::json lines = nlohmann::json::array();
        while (!text.empty()) {
            const auto length = std::min(text.find('\n'), text.size() - 1) + 1;
            lines.push_back(text.substr(0, length));
            text.remove_prefix(length);
        }
        return lines;
    }
    nlohmann::json& add(std::string_view type, std::string_view text) {
        while (text.ends_with('\n')) text.remove_suffix(1);
        cells_.push_back({{"cell_type", type},
                          {"id", fmt::format("cell-{}", cells_.size() + 1)},
                          {"metadata", nlohmann::json::object()},
                          {"source", lines_of(text)}});
        return cells_.back();
    }

    nlohmann::json cells_ = nlohmann::json::array();
};

nlohmann::json metadata() {
    return {{"kernelspec", {{"display_name", "Python 3"}, {"language", "python"}, {"name", "python3"}}},
            {"language_info", {{"name", "python"}}}};
}

}  // namespace

std::string notebook_module(const Recipe& recipe) {
    std::string name = "fp8lab_" + recipe_text(recipe);
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

std::string notebook_json(const Notebook& notebook, std::string_view where) {
    const CodeTarget& target = find_code_target("pytorch");
    Cells cells;
    for (const std::string& text : notebook.opening) cells.markdown(text);
    std::vector<std::string> modules;
    std::string refused;
    for (const Recipe& recipe : notebook.recipes) {
        const std::string module = notebook_module(recipe), why = target.refusal(recipe);
        if (std::ranges::find(modules, module) != modules.end()) continue;
        if (!why.empty()) {
            refused = fmt::format("{} cannot express {}: {}", target.label, recipe_text(recipe), why);
            cells.markdown(fmt::format("Without code: {}.", refused));
            continue;
        }
        modules.push_back(module);
        cells.markdown(fmt::format("## `{}`\n\n{}.", recipe_text(recipe), recipe.summary));
        cells.code(fmt::format("%%writefile {}.py\n{}", module, target.code(recipe)));
    }
    if (modules.empty()) throw usage_error(std::string(where), refused);
    cells.markdown("## A layer of each, beside one in FP32\n\nThe inputs are drawn anew each time.");
    std::string imports;
    for (const std::string& module : modules) imports += "import " + module + "\n";
    cells.code(fmt::format("{}\nmodules = [{}]", imports, fmt::join(modules, ", ")));
    cells.code(kErrors);
    cells.markdown(
        "## The same codes\n\n256 numbers under every cast, and the values of all codes, compared with FP8 "
        "Lab's.");
    cells.code(kCheck);
    const nlohmann::json out = {
        {"cells", cells.take()}, {"metadata", metadata()}, {"nbformat", 4}, {"nbformat_minor", 5}};
    return out.dump(1) + "\n";
}

}  // namespace fp8lab
