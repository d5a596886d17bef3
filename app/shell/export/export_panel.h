// Ctrl+E: what of this goes into a file. Figures as PNG, SVG, CSV; the report; the submission to hand in.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/frame/host.h"
#include "core/files/folders.h"
#include "labs/lab.h"
#include "labs/ui/context.h"

namespace fp8lab {

class ExportPanel {
  public:
    enum class What { figures, report, submission };
    using Say = std::function<void(std::string title, std::string line)>;

    ExportPanel(ui::Context& context, ProfileFolders folders, const Host& host, Say say)
        : context_(context), folders_(std::move(folders)), host_(host), say_(std::move(say)) {}

    void open(What what, Lab* lab);  // null: home, which has no figures
    bool is_open() const { return open_; }
    void draw(Lab* lab);  // last in the frame: over everything

  private:
    struct File {
        std::filesystem::path path;
        std::vector<std::byte> bytes;
    };
    std::filesystem::path folder() const;
    std::vector<std::filesystem::path> paths(Lab* lab) const;  // what would be written
    std::vector<File> files(Lab* lab) const;
    bool has_table(const Lab& lab) const;
    void save(Lab* lab, bool replace);
    void draw_figure_choices(Lab& lab);
    void draw_files(Lab* lab);
    void draw_buttons(Lab* lab, Rect area);

    ui::Context& context_;
    ProfileFolders folders_;
    const Host& host_;
    Say say_;
    bool open_ = false, asking_ = false;  // asking: a file of that name is there
    int what_ = 0, figure_ = 0, format_ = 0, size_ = 1, theme_ = 0;
    std::string folder_, student_, at_, problem_;
};

}  // namespace fp8lab
