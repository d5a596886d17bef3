// The Explore tab of the Workbench: the files, the demands, and what they come to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"
#include "labs/workbench/view.h"

namespace fp8lab::workbench {
namespace {

using ui::Context;

// The samples, then a path that was typed or dropped.
struct Menu {
    std::vector<std::string> values, labels;
    int selected = 0;
};
Menu menu_of(const std::string& now, std::string_view field) {
    Menu menu;
    if (field != "file") menu.values = {""}, menu.labels = {"nothing"};
    if (field == "run") {
        menu.values.emplace_back(kSampleRun);
        menu.labels.emplace_back("sample: tiny-swiglu");
    } else {
        menu.values.insert(menu.values.end(), {std::string(kTrained), std::string(kUntrained)});
        menu.labels.insert(menu.labels.end(), {"sample, after 600 steps", "sample, before training"});
        if (field == "file")
            menu.values.emplace_back(kFaulty), menu.labels.emplace_back("sample: six faulty files");
    }
    const auto found = std::ranges::find(menu.values, now);
    if (found == menu.values.end()) {
        menu.values.push_back(now);
        const auto lines = std::ranges::count(now, '\n');
        menu.labels.push_back(lines > 0 ? fmt::format("{} files", lines + 1)
                                        : now.substr(now.rfind('/') + 1));
    }
    menu.selected = static_cast<int>(std::ranges::find(menu.values, now) - menu.values.begin());
    return menu;
}

}  // namespace

void WorkbenchView::draw_above(Context& c, float width) {
    const std::vector<Field> fields = lab_.fields();
    const std::vector<const char*> files =
        lab_->shows_run() ? std::vector{"run"} : std::vector{"file", "compare"};
    for (const char* name : files) {
        const Field& field = *find_field(fields, name);
        if (ui::withheld(c, field)) continue;
        const std::string& value = *std::get<std::string*>(field.value);
        Menu menu = menu_of(value, name);
        ui::text(c, field.info.label, Role::muted, kSans13);
        constexpr float kOpen = 84;
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImGui::BeginChild(name, {width - c.px(kOpen + 8), c.px(32)}, false, ImGuiWindowFlags_NoScrollbar);
        if (ui::dropdown(c, name, menu.labels, menu.selected))
            set(std::string(name) + "=" + menu.values.at(static_cast<std::size_t>(menu.selected)));
        ui::tooltip(c, field.info.label, field.info.help);
        ImGui::EndChild();
        ImGui::SetCursorScreenPos({at.x + width - c.px(kOpen), at.y});
        const bool here = browsing_ == name;
        if (ui::button(c, std::string("workbench.open.") + name, here ? "Close" : "Open", {.width = kOpen})) {
            browsing_ = here ? "" : name;
            listed_.clear();
            std::error_code ignored;
            const auto folder = value.find('/') != value.npos && value.find('\n') == value.npos
                                    ? std::filesystem::path(value).parent_path()
                                    : std::filesystem::current_path(ignored);
            path_ = folder.string() + (folder.string().ends_with('/') ? "" : "/");
        }
        ui::tooltip(c, "Open",
                    "A file of your own. Files may also be dropped on the window: several are one list.");
        if (here) draw_browser(c);
        if (field.info.name == "compare") draw_compare_as(c);
    }
    if (lab_->shows_run()) run_.draw_notes(c);
}

// Five short words in one switch: edit() makes a list of more than four.
bool WorkbenchView::draw_own(Context& c, const table::Row& row, const Field& default_field) {
    const Field& field = row.field;
    if (field.info.name == "experiment") return true;  // on the stage
    if (row.of == kRun) return run_.draw_own(c, row, default_field);
    if (field.info.name != "show") return false;
    std::vector<std::string> labels;
    for (const Choice& choice : field.choices) labels.push_back(choice.label);
    int selected = ui::index_of_choice(labels, lab_->params.show);
    ui::text(c, field.info.label, Role::muted, kSans13);
    if (ui::segmented(c, "show", labels, selected))
        set("show=" + labels.at(static_cast<std::size_t>(selected)));
    ui::tooltip(c, field.info.label, field.info.help);
    return true;
}

void WorkbenchView::draw_below(Context& c, float width) {
    if (lab_->shows_run()) return run_.draw_below(c, width);
    ui::divider(c);
    draw_class(c);
    draw_uses(c, width);
    draw_before(c, width);
    draw_verified(c, width);
    draw_counts(c, width);
}

// What the selected tensor is cast as; its name may mislead.
void WorkbenchView::draw_class(Context& c) {
    const ScanRow* const row = lab_->row();
    if (!row || !row->not_scanned.empty()) return;
    std::vector<std::string> labels;
    int selected = 0;
    for (const TensorUse use : kTensorUses) {
        if (use == row->use) selected = static_cast<int>(labels.size());
        labels.emplace_back(to_string(use));
    }
    ui::text(c, "This tensor is", Role::muted, kSans13);
    if (ui::segmented(c, "workbench.class", labels, selected))
        set("uses=" + lab_->uses_with(kTensorUses.at(static_cast<std::size_t>(selected))));
    ui::tooltip(
        c, "This tensor is",
        "By its name: w a weight, x an input, dy a gradient, state of the optimiser. Show goes by it, and "
        "E4M3 in blocks of 128 takes 128 x 128 for weights.");
}

// Labs that take a tensor of one's own.
void WorkbenchView::draw_uses(Context& c, float width) {
    const ScanRow* const row = lab_->row();
    if (!row || !row->not_scanned.empty()) return;
    ui::text(c, "Use this tensor in", Role::text, kBold15);
    std::vector<const LabEntry*> takers;
    for (const LabEntry& entry : lab_registry())
        if (entry.number > 0 && takes_tensor(entry.id)) takers.push_back(&entry);
    const auto n = static_cast<float>(takers.size());
    const float gap = 8, each = (width / c.scale - gap * (n - 1)) / n;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    for (std::size_t i = 0; i < takers.size(); ++i) {
        ImGui::SetCursorScreenPos({at.x + c.px((each + gap) * static_cast<float>(i)), at.y});
        const std::string name = "use." + takers[i]->mark();
        if (ui::button(c, "workbench." + name, "L" + std::to_string(takers[i]->number), {.width = each}))
            c.wanted_lab = {.lab = std::string(takers[i]->id), .fields = lab_->fields_for(takers[i]->id)};
        ui::tooltip(c, takers[i]->title, "Opens the lab with this tensor.");
    }
    ImGui::Dummy({0, c.px(4)});
}

void WorkbenchView::draw_before(Context& c, float width) {
    const ScanRow *const now = lab_->row(), *const old = lab_->row_before();
    if (!now || !lab_->scanned().before) return;
    const std::vector<float> columns = {0.5F * width, 0.25F * width, 0.25F * width};
    const auto head = [](std::string words) {
        return ui::Cell{.text = std::move(words), .role = Role::muted, .mono = false};
    };
    ui::table_row(
        c,
        std::array{
            ui::Cell{.text = "Before and after", .mono = false, .strong = true, .anchor = Anchor::left},
            head("before"), head("after")},
        columns);
    const auto row = [&](const char* words, auto value) {
        const auto text = [&](const ScanRow* of) {
            return of && of->summarised ? screen_number(value(*of), 3) : std::string(of ? "-" : "not there");
        };
        ui::table_row(c,
                      std::array{ui::Cell{.text = words, .mono = false, .anchor = Anchor::left},
                                 ui::Cell{.text = text(old)}, ui::Cell{.text = text(now)}},
                      columns);
    };
    row("amax", [](const ScanRow& of) { return static_cast<double>(of.summary.amax); });
    row("least, not 0", [](const ScanRow& of) { return static_cast<double>(of.summary.least); });
    row("binades", [](const ScanRow& of) { return of.summary.binades(); });
    ui::table_end(c, columns);
    if (const auto& changes = lab_->comparison)
        ui::wrapped(c, fmt::format("{} tensors are new, {} missing, {} reshaped.", changes->added.size(),
                                   changes->missing.size(), changes->reshaped.size()));
}

void WorkbenchView::draw_counts(Context& c, float width) {
    const Tally& counts = lab_->counts;
    if (counts.tensors == 0) return;
    ui::text(c, fmt::format("Tensors of {} that meet the demands", counts.done), Role::text, kBold13);
    const Rect line = ui::next_area(c, 44);
    float x = line.x0;
    for (const auto& [id, words] : {std::pair{"mxfp8", "MXFP8"},
                                    {"current", "one scale"},
                                    {"mxfp6-e3m2", "E3M2"},
                                    {"nvfp4", "NVFP4"}}) {
        const auto recipe = lab_->find_recipe(id);
        if (!recipe) continue;
        ui::text_mid(c, {x, line.y0 + c.px(10)}, words, {Role::muted}, kSans13);
        ui::text_mid(c, {x, line.y0 + c.px(32)}, std::to_string(counts.meeting[*recipe]), {Role::text},
                     kMono15);
        x += width / 4;
    }
    ui::advance(line);
}

void WorkbenchView::draw_compare_as(Context& c) {
    if (lab_->params.compare.empty()) return;
    static const std::array<std::string, 2> kLabels = {"earlier state", "original"};
    int selected = lab_->params.compare_as == "original" ? 1 : 0;
    const std::vector<Field> fields = lab_.fields();
    const Field& field = *find_field(fields, "compare_as");
    if (ui::withheld(c, field)) return;
    if (ui::segmented(c, "compare_as", kLabels, selected))
        set(fmt::format("compare_as={}", selected == 1 ? "original" : "earlier"));
    ui::tooltip(c, "Which is", field.info.help);
}

void WorkbenchView::draw_verified(Context& c, float width) {
    const Verified* const found = lab_->verified();
    if (!found || !found->diagnosis || !lab_->tells_faults()) return;
    const fp8lab::Diagnosis& diagnosis = *found->diagnosis;
    const std::vector<float> columns = {0.68F * width, 0.32F * width};
    const auto row = [&](const char* words, double value) {
        if (std::isnan(value)) return;
        ui::table_row(
            c,
            std::array{ui::Cell{.text = words, .mono = false, .anchor = Anchor::left},
                       ui::Cell{.text = std::isinf(value) ? "not finite" : screen_number(value, 3)}},
            columns);
    };
    ui::table_row(
        c,
        std::array{
            ui::Cell{.text = "Against the original", .mono = false, .strong = true, .anchor = Anchor::left},
            ui::Cell{.text = "relative L2", .role = Role::muted, .mono = false}},
        columns);
    row("this tensor", diagnosis.rel_l2);
    row("without the fault", diagnosis.mended);
    row("usual, at most", diagnosis.limit);
    ui::table_end(c, columns);
}

}  // namespace fp8lab::workbench
