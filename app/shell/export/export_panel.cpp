#include "app/shell/export/export_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "app/shell/export/png.h"
#include "app/shell/sheets/sheet.h"
#include "core/base/error.h"
#include "core/figure/csv.h"
#include "core/figure/svg.h"
#include "core/files/files.h"
#include "labs/course/exercise_run.h"
#include "labs/course/export.h"
#include "labs/grading/report.h"
#include "labs/grading/submission.h"
#include "labs/ui/draw.h"
#include "labs/ui/raster.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
constexpr std::array<std::string_view, 3> kExtensions = {".png", ".svg", ".csv"};
constexpr std::array<float, 3> kScales = {1, 2, 4};

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

PngTexts texts_of(const Figure& figure) {
    PngTexts out = {{"Title", figure.title}, {"Software", std::string("FP8 Lab ") + FP8LAB_VERSION}};
    for (const auto& [name, value] : figure.parameters) out.emplace_back("fp8lab:" + name, value);
    return out;
}

void label(ui::Context& context, std::string_view words) { ui::text(context, words, Role::muted, kSans13); }

}  // namespace

void ExportPanel::open(What what, Lab* lab) {
    open_ = true;
    asking_ = false;
    problem_.clear();
    what_ = static_cast<int>(what);
    if (lab == nullptr && what == What::figures) what_ = static_cast<int>(What::report);
    figure_ = 0;
    at_ = local_time();
    if (folder_.empty()) folder_ = export_folder().string();
}

// What is relative lies among the documents, never where the program was started.
fs::path ExportPanel::folder() const { return export_folder() / folder_; }

std::vector<fs::path> ExportPanel::paths(Lab* lab) const {
    const fs::path folder = this->folder();
    if (what_ == static_cast<int>(What::report)) return {folder / "report.html"};
    if (what_ == static_cast<int>(What::submission)) {
        std::string name = student_.empty() ? "submission" : student_;
        std::ranges::replace_if(
            name, [](char c) { return c == '/' || static_cast<unsigned char>(c) <= 0x20; }, '-');
        if (name.starts_with('.')) name.insert(0, 1, '-');
        return {folder / (name + ".f8lab")};
    }
    std::vector<fs::path> out;
    if (lab == nullptr) return out;
    int index = 0;
    for (const Figure& figure : lab->figures()) {
        if (figure_ == 0 || figure_ == ++index)
            out.push_back(folder / (export_stem(lab->info(), figure.id, at_) +
                                    std::string(kExtensions[static_cast<std::size_t>(format_)])));
    }
    if (has_table(*lab)) out.push_back(folder / (export_stem(lab->info(), "table", at_) + ".csv"));
    return out;
}

// All figures as CSV: with them goes the table of a lab that has one.
bool ExportPanel::has_table(const Lab& lab) const {
    return figure_ == 0 && format_ == 2 && !lab.table_csv().empty();
}

std::vector<ExportPanel::File> ExportPanel::files(Lab* lab) const {
    std::vector<File> out;
    for (const fs::path& path : paths(lab)) out.push_back({path, {}});
    if (what_ == static_cast<int>(What::report)) {
        out.front().bytes = bytes_of(report_html(make_submission(folders_, student_)));
        return out;
    }
    if (what_ == static_cast<int>(What::submission)) {
        out.front().bytes = bytes_of(bundle_text(make_submission(folders_, student_)));
        return out;
    }
    std::size_t next = 0;
    int index = 0;
    const Theme theme = theme_ == 0 ? Theme::light : Theme::dark;
    for (const Figure& figure : described_figures(*lab)) {
        if (figure_ != 0 && figure_ != ++index) continue;
        auto& bytes = out.at(next++).bytes;
        if (format_ == 0) {
            const float scale = kScales[static_cast<std::size_t>(size_)];
            const ui::Picture picture = ui::paint_picture(figure, {.scale = scale, .theme = theme});
            bytes = encode_png(picture.width, picture.height, picture.rgb, texts_of(figure));
        } else {
            bytes = bytes_of(format_ == 1 ? to_svg(figure, {.theme = theme}) : to_csv(figure));
        }
    }
    if (has_table(*lab)) out.at(next).bytes = bytes_of(lab->table_csv());
    return out;
}

void ExportPanel::save(Lab* lab, bool replace) {
    problem_.clear();
    try {
        const auto all = paths(lab);
        if (host_.deliver) {
            const std::vector<File> made = files(lab);
            for (const File& file : made) host_.deliver(file.path, file.bytes);
            open_ = false;
            return say_(made.size() == 1 ? "Downloaded" : fmt::format("{} files downloaded", made.size()),
                        made.front().path.filename().string());
        }
        if (!replace && std::ranges::any_of(all, [](const fs::path& path) { return fs::exists(path); })) {
            asking_ = true;
            return;
        }
        const std::vector<File> made = files(lab);
        std::error_code failure;
        fs::create_directories(folder(), failure);
        if (failure) throw Error{ErrorKind::failed, folder().string(), failure.message()};
        for (const File& file : made) write_file(file.path, file.bytes);
        open_ = false;
        say_(made.size() == 1 ? "Saved" : fmt::format("{} files saved", made.size()),
             "to " + (made.size() == 1 ? made.front().path.string() : folder().string()));
    } catch (const std::exception& error) {
        problem_ = error.what();
    }
}

void ExportPanel::draw_figure_choices(Lab& lab) {
    std::vector<std::string> names = {"All figures"};
    for (const Figure& figure : lab.figures())
        names.push_back(figure.title.empty() ? figure.id : figure.title);
    if (figure_ >= static_cast<int>(names.size())) figure_ = 0;
    label(context_, "Figure");
    asking_ &= !ui::dropdown(context_, "export.figure", names, figure_);
    label(context_, "Format");
    static const std::array<std::string, 3> kFormats = {"PNG", "SVG", "CSV"};
    asking_ &= !ui::segmented(context_, "export.format", kFormats, format_);
    if (format_ == 2) return;
    static const std::array<std::string, 2> kThemes = {"Light", "Dark"};
    label(context_, "Ground");
    ui::segmented(context_, "export.theme", kThemes, theme_);
    if (format_ != 0) return;
    static const std::array<std::string, 3> kSizes = {"812 × 420", "1624 × 840", "3248 × 1680"};
    label(context_, "Pixels");
    ui::segmented(context_, "export.size", kSizes, size_);
}

// Where it goes, and under which names.
void ExportPanel::draw_files(Lab* lab) {
    label(context_, host_.deliver ? "The browser saves" : "Folder");
    if (!host_.deliver) asking_ &= !ui::text_input(context_, "export.folder", folder_, "a folder", kMono13);
    const auto all = paths(lab);
    if (!all.empty()) {
        const std::string more = all.size() > 1 ? fmt::format("  and {} more", all.size() - 1) : "";
        ui::text(context_, all.front().filename().string() + more, Role::text, kMono13);
    }
    if (asking_) ui::warning(context_, "There is already a file of that name.");
    if (!problem_.empty()) ui::warning(context_, problem_);
    if (asking_ || !problem_.empty()) ImGui::SetScrollHereY(1);
}

void ExportPanel::draw_buttons(Lab* lab, Rect area) {
    ImGui::SetCursorScreenPos({area.x0, area.y1 - context_.px(32)});
    if (ui::button(context_, "export.save", asking_ ? "Replace" : "Save", {.primary = true, .width = 108}))
        save(lab, asking_);
    ImGui::SetCursorScreenPos({area.x0 + context_.px(116), area.y1 - context_.px(32)});
    if (ui::button(context_, "export.cancel", "Cancel", {.key = "Esc", .width = 124})) open_ = false;
}

void ExportPanel::draw(Lab* lab) {
    context_.focus.reach = ui::Focus::Reach::live;
    const SheetArea sheet = begin_sheet(context_, "export", "Export", 520, 608);
    const Rect area = sheet.content;
    ImGui::SetCursorScreenPos({area.x0, area.y0 + context_.px(16)});
    ImGui::BeginChild("export.body", {area.width(), area.height() - context_.px(60)}, false,
                      ImGuiWindowFlags_NoScrollbar);
    static const std::array<std::string, 3> kWhats = {"Figures", "Report", "Submission"};
    // A scene that is dropped, or a way home, may have changed the lab under the open panel.
    const int before = lab == nullptr ? std::max(what_, static_cast<int>(What::report)) : what_;
    if (ui::segmented(context_, "export.what", kWhats, what_)) asking_ = false;
    if (lab == nullptr && what_ == 0) what_ = before;
    if (what_ == 0 && lab != nullptr) {
        draw_figure_choices(*lab);
    } else {
        ui::wrapped(context_,
                    what_ == 1
                        ? "Predictions, results, evidence, explanations and figures of all labs, as one page "
                          "for any browser or for paper."
                        : "The evidence of everything that you passed. It is graded with fp8lab check.");
        label(context_, "Your name");
        asking_ &=
            !ui::text_input(context_, "export.student", student_, "as the file should show it; may be empty");
    }
    draw_files(lab);
    ui::scroll_thumbs(context_);
    ImGui::EndChild();
    draw_buttons(lab, area);
    if (sheet.closed && context_.focus.modal == 0 && context_.typing.name.empty()) open_ = false;
    end_sheet();
}

}  // namespace fp8lab
