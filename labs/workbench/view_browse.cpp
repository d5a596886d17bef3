// Opening a file from the panel: a path that is typed, and the names that begin so in its folder.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <system_error>

#include "labs/ui/draw.h"
#include "labs/ui/fit.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

constexpr float kRow = 24, kRows = 7;
constexpr std::array<std::string_view, 4> kReadable = {".safetensors", ".npy", ".npz", ".json"};
constexpr std::array<std::string_view, 3> kLogs = {".jsonl", ".csv", ".log"};

struct Parts {
    std::string folder, start;  // "/models/", "tra"
};
Parts parts_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return {"./", path};
    return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

// Folders with a slash, and files that the Workbench reads; hidden ones are left out.
std::vector<std::string> names_in(const std::string& folder, std::span<const std::string_view> readable,
                                  std::string& trouble) {
    std::vector<std::string> folders, files;
    std::error_code failed, ignored;
    for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (name.starts_with('.')) continue;
        if (at->is_directory(ignored))
            folders.push_back(name + "/");
        else if (std::ranges::find(readable, at->path().extension().string()) != readable.end())
            files.push_back(name);
    }
    trouble = failed ? folder + ": " + failed.message() : "";
    std::ranges::sort(folders);
    std::ranges::sort(files);
    folders.insert(folders.end(), files.begin(), files.end());
    return folders;
}

}  // namespace

void WorkbenchView::open(const std::filesystem::path& path) {
    set(browsing_ + "=" + path.lexically_normal().string());
    browsing_.clear();
}

void WorkbenchView::draw_browser(Context& c) {
    std::error_code ignored;
    if (ui::text_input(c, "workbench.path", path_, "a path", kMono13)) {
        if (std::filesystem::is_directory(path_, ignored) && !path_.ends_with('/')) path_ += '/';
        if (std::filesystem::is_regular_file(path_, ignored)) return open(path_);
    }
    const bool typing = c.typing.name == "workbench.path";
    const bool logs = browsing_ == "run";
    const Parts now = parts_of(typing ? c.typing.text : path_);
    if (listed_ != now.folder) {
        listed_ = now.folder;
        names_ = logs ? names_in(now.folder, kLogs, trouble_) : names_in(now.folder, kReadable, trouble_);
    }
    std::vector<std::string> rows = {"../"};
    if (logs) rows.emplace_back("./");  // the folder itself is a run
    for (const std::string& name : names_)
        if (name.starts_with(now.start)) rows.push_back(name);
    if (!trouble_.empty()) ui::warning(c, trouble_);
    const float height = c.px(kRow);
    const Rect all = ui::next_area(c, kRow * kRows);
    ui::stroke_rect(c, all, {Role::line}, 4);
    ImGui::BeginChild("workbench.names", {all.width(), all.height()}, false, ImGuiWindowFlags_NoScrollbar);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    std::string chosen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const float top = origin.y + height * static_cast<float>(i);
        const Rect line{all.x0, top, all.x1, top + height};
        const ui::Press press = ui::press(c, "workbench.name." + std::to_string(i), line, 4);
        if (press.hovered) ui::fill_rect(c, ui::inset(line, c.px(2)), {Role::field}, 4);
        const bool folder = rows[i].ends_with('/');
        ui::text_mid(c, {line.x0 + c.px(8), (line.y0 + line.y1) / 2},
                     ui::cut_middle(c, rows[i], kMono13, line.width() - c.px(20)),
                     {folder ? Role::muted : Role::text}, kMono13);
        if (press.clicked) chosen = rows[i];
    }
    ui::advance({origin.x, origin.y, origin.x + 1, origin.y + height * static_cast<float>(rows.size())});
    ui::scroll_thumbs(c);
    ImGui::EndChild();
    if (rows.size() == (logs ? 2 : 1) && trouble_.empty())
        ui::wrapped(c, logs ? "No folder and no .jsonl, .csv or .log begins so."
                            : "No folder and no .safetensors, .npy, .npz or .json begins so.");
    if (chosen.empty()) return;
    if (chosen == "./") {
        open(now.folder);
    } else if (chosen == "../") {
        const auto folder = std::filesystem::absolute(now.folder, ignored).lexically_normal().parent_path();
        path_ = folder.parent_path().string();
        if (!path_.ends_with('/')) path_ += '/';
    } else if (chosen.ends_with('/')) {
        path_ = now.folder + chosen;
    } else {
        open(now.folder + chosen);
    }
}

}  // namespace fp8lab::workbench
