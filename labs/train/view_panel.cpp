// The Explore tab of L8: arms and settings, then the numbers of the run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/train/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::train {
namespace {

const Field& find(const std::vector<Field>& fields, std::string_view name) {
    return *std::ranges::find(fields, name,
                              [](const Field& field) -> std::string_view { return field.info.name; });
}

bool delayed(const TrainSpec& spec) { return spec.arms.at(1).scale == ScaleSource::delayed; }

}  // namespace

void TrainView::explore(ui::Context& c, float width) {
    backend_choice(c);
    speed_choice(c);
    arm_choice(c, "arm_a", 0);
    arm_choice(c, "arm_b", 1);
    settings(c);
    show_tensor(c);
    if (ui::button(c, "train.poison", "Poison the next batch \u00d7 1000",
                   {.disabled = lab_.step() == 0 || lab_.finished(),
                    .why_disabled = "Start the training first.",
                    .width = -1})) {
        lab_.act("poison");
    }
    more(c);
    ui::divider(c);
    numbers(c, width);
    copy_buttons(c, width);
}

// A choice that cannot be made is there, and says why.
void TrainView::backend_choice(ui::Context& c) {
    const std::vector<Field> fields = lab_.fields();
    const Field& field = find(fields, "backend");
    const std::array<std::string, 2> labels = {"CPU", "GPU"};
    const std::string reason = lab_.gpu_reason();
    int selected = lab_.backend() == "cuda" ? 1 : 0;
    if (switch_row(c, "train.backend", field.info.label, labels, selected, reason.empty() ? 2 : 1))
        *std::get<std::string*>(field.value) = selected == 1 ? "cuda" : "cpu";
    ui::tooltip(c, field.info.label,
                reason.empty() ? "Where the training runs. Once it has begun, a change acts on Reset."
                               : "No GPU. " + reason);
}

// Slow enough to watch, to play, or as fast as the machine is; a scene's own speed is a fourth choice.
void TrainView::speed_choice(ui::Context& c) {
    const std::vector<Field> fields = lab_.fields();
    const Field& field = find(fields, "speed_limit");
    if (ui::withheld(c, field)) return;
    auto* value = std::get<double*>(field.value);
    std::vector<double> speeds = {20, 200, 0};
    std::vector<std::string> labels = {"20/s", "200/s", "full"};
    auto chosen = std::ranges::find(speeds, *value);
    if (chosen == speeds.end()) {
        labels.insert(labels.begin(), format_number(*value, 3, true) + "/s");
        chosen = speeds.insert(speeds.begin(), *value);
    }
    int selected = static_cast<int>(chosen - speeds.begin());
    if (switch_row(c, "train.speed_limit", field.info.label, labels, selected))
        *value = speeds[static_cast<std::size_t>(selected)];
    ui::tooltip(
        c, field.info.label,
        "Steps per second, so that there is time to change a control while the training runs. full: as "
        "fast as this machine trains. A change acts at once.");
}

// Layers and the batch that belongs to them; the chosen ones with the batch that they now have. The CPU is
// offered the smallest only.
void TrainView::size_choice(ui::Context& c) {
    const std::vector<Field> fields = lab_.fields();
    auto* value = std::get<std::string*>(find(fields, "size").value);
    auto* batch = std::get<int*>(find(fields, "batch").value);
    std::vector<std::string> labels;
    int selected = -1;
    for (Size size : sizes()) {
        if (size.id == *value) {
            selected = static_cast<int>(labels.size());
            size.batch = *batch;
        }
        if (size.id == kCpuSize || size.id == *value || lab_.backend() == "cuda")
            labels.push_back(size.label());
    }
    ui::text(c, "Size", Role::muted, kSans13);
    if (!ui::dropdown(c, "train.size", labels, selected)) return;
    const Size& size = sizes()[static_cast<std::size_t>(selected)];
    *value = size.id;
    *batch = size.batch;
}

// "Arm A" with its swatch, over the list of recipes.
void TrainView::arm_choice(ui::Context& c, const char* name, std::size_t arm) {
    const std::vector<Field> fields = lab_.fields();
    const Field& field = find(fields, name);
    if (ui::withheld(c, field)) return;
    std::vector<std::string> labels;
    int selected = 0;
    auto* value = std::get<std::string*>(field.value);
    for (const Choice& choice : field.choices) {
        if (choice.id == *value) selected = static_cast<int>(labels.size());
        labels.push_back(choice.label);
    }
    Rect line = ui::next_area(c, 18);
    const float y = line.y0 + c.px(7);
    ui::text_mid(c, {line.x0, y}, field.info.label, {Role::muted}, kSans13);
    const float x = line.x0 + ui::text_width(c, field.info.label, kSans13) + c.px(8);
    const Rect swatch{x, std::round(y - c.px(5)), x + c.px(10), std::round(y + c.px(5))};
    const TrainSpec spec = lab_.spec();
    // HYBRID is E4M3 for x and w and E5M2 for dy: with one format for all of them the name would be wrong.
    const Recipe* recipe = arm < spec.arms.size() ? &spec.arms[arm] : nullptr;
    std::string& label = labels[static_cast<std::size_t>(selected)];
    if (const auto at = label.find("HYBRID");
        recipe && at != std::string::npos && recipe->fwd && recipe->fwd == recipe->bwd)
        label.replace(at, 6, recipe->fwd->label);
    if (arm < spec.arms.size()) {
        const Role role = arm_looks(spec.arms)[arm].role;
        ui::fill_rect(c, swatch, {role, Tone::fill}, 2);
        ui::stroke_rect(c, swatch, {role, Tone::line}, 2);
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(line);
    ImGui::PopStyleVar();
    ui::probe(c, std::string("train.label.") + name, line, {}, label);
    if (ui::dropdown(c, std::string("train.") + name, labels, selected)) {
        *value = field.choices[static_cast<std::size_t>(selected)].id;
        // Another recipe may not have the options of the one before.
        if (arm == 1) std::get<std::string*>(find(fields, "options").value)->clear();
    }
    ui::tooltip(c, field.info.label, field.info.help);
}

// The default control of a field, with its default as the tick, under the probe "train.<name>".
void TrainView::edit(ui::Context& c, std::string_view name) {
    std::vector<Field> fields = lab_.fields();
    const std::vector<Field> default_fields = lab_.defaults();
    Field field = find(fields, name);
    if (ui::withheld(c, field)) return;
    field.info.name = "train." + field.info.name;
    ui::edit(c, field, &find(default_fields, name));
}

void TrainView::settings(ui::Context& c) {
    edit(c, "lr");
    if (!delayed(lab_.spec())) {
        ui::wrapped(c,
                    "History, margin and algorithm are settings of delayed scaling. Arm B does not use it.");
        return;
    }
    edit(c, "history");
    const std::vector<Field> fields = lab_.fields();
    const Field& margin = find(fields, "margin");
    auto* value = std::get<int*>(margin.value);
    double exponent = *value;
    if (!ui::withheld(c, margin)) {
        if (ui::slider(c, "train.margin", margin.info.label, margin.info.te_name, exponent, margin.min,
                       margin.max, {.step = 1, .format = "2^{0:.0f} = \u00d7{1:g}", .default_value = 0.0}))
            *value = static_cast<int>(std::lround(exponent));
        ui::tooltip(c, margin.info.label, margin.info.help);
    }
    const Field& algo = find(fields, "algo");
    auto* chosen = std::get<std::string*>(algo.value);
    if (ui::withheld(c, algo)) return;
    const std::array<std::string, 2> labels = {algo.choices[0].label, algo.choices[1].label};
    int selected = *chosen == algo.choices[0].id ? 0 : 1;
    if (switch_row(c, "train.algo", algo.info.label, labels, selected)) {
        *chosen = algo.choices[static_cast<std::size_t>(selected)].id;
    }
    ui::tooltip(c, algo.info.label, algo.info.help + " Transformer Engine: " + algo.info.te_name + ".");
}

// A label at the left and a switch of `width` - 108 px at the right, on one line. True when the choice
// changed.
bool TrainView::switch_row(ui::Context& c, const std::string& name, const std::string& label,
                           std::span<const std::string> choices, int& selected, std::size_t enabled) {
    const Rect row = ui::next_area(c, 32);
    ui::text_mid(c, {row.x0, (row.y0 + row.y1) / 2}, label, {Role::text}, {Face::sans, 15});
    const float left = c.px(108);
    ImGui::SetCursorScreenPos({row.x0 + left, row.y0});
    ImGui::BeginChild(name.c_str(), {row.width() - left, row.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    const bool changed = ui::segmented(c, name, choices, selected, enabled);
    ImGui::EndChild();
    ImGui::SetCursorScreenPos({row.x0, row.y0});
    ui::advance(row);
    return changed;
}

void TrainView::show_tensor(ui::Context& c) {
    constexpr std::array<TensorClass, 3> kClasses = {TensorClass::x, TensorClass::w, TensorClass::dy};
    const std::array<std::string, 3> labels = {"x", "w", "dy"};
    MlpTensor id = lab_.shown_tensor();
    int selected = static_cast<int>(std::ranges::find(kClasses, id.tensor) - kClasses.begin());
    if (!switch_row(c, "train.tensor", "Show tensor", labels, selected)) return;
    id.tensor = kClasses.at(static_cast<std::size_t>(selected));
    lab_.show_tensor(to_string(id));
}

void TrainView::more(ui::Context& c) {
    const Rect row = ui::next_area(c, 24);
    const float half = row.width() / 2, y = (row.y0 + row.y1) / 2;
    const auto fold = [&](const char* name, const char* label, float x, bool& open) {
        const ui::Press press = ui::press(c, name, {x, row.y0, x + half - c.px(8), row.y1}, 4);
        if (press.clicked) open = !open;
        const Color ink{press.hovered || open ? Role::text : Role::muted};
        ui::chevron(c, {x + c.px(4), y}, open ? ui::Direction::down : ui::Direction::right, ink);
        ui::text_mid(c, {x + c.px(16), y}, label, ink, kSans13);
    };
    fold("train.more_cast", "More: casts", row.x0, more_cast_);
    fold("train.more_run", "More: training", row.x0 + half, more_run_);
    ui::advance(row);
    if (more_cast_) {
        for (const char* name :
             {"fwd", "bwd", "round", "overflow", "master", "round_update", "options", "interval"}) {
            if (name == std::string_view("interval") && !delayed(lab_.spec())) continue;
            if (name == std::string_view("options"))
                option_switches(c);
            else
                edit(c, name);
        }
    }
    if (more_run_) {
        arm_choice(c, "arm_c", 2);
        edit(c, "task");
        if (lab_.params().task == "noise") size_choice(c);
        for (const char* name : {"schedule", "steps", "batch", "seed"}) edit(c, name);
    }
    const std::vector<std::string> waiting = lab_.waiting();
    if (waiting.empty()) return;
    ui::wrapped(c, fmt::format("Acts on Reset: {}.", fmt::join(waiting, ", ")), Role::text);
}

void TrainView::numbers(ui::Context& c, float width) {
    const TrainSpec spec = lab_.spec();
    const auto looks = arm_looks(spec.arms);
    const bool started = lab_.step() > 0;
    const Rect big = ui::next_area(c, 32);
    const float middle = (big.y0 + big.y1) / 2;
    if (started) {
        const std::string gap = signed_percent(gap_pct(lab_.history(), 1));
        ui::text_mid(c, {big.x0, middle}, gap, {looks[1].role, Tone::ink}, {Face::mono, 32});
    }
    const std::string whose = spec.arms.size() > 2 ? looks[1].name + " gap" : "gap";
    ui::text_mid(c, {big.x1, middle + c.px(5)}, started ? whose + ", last 100 steps" : "no step yet",
                 {Role::muted}, kSans13, Anchor::right);
    ui::advance(big);
    ui::probe(c, "train.gap_headline", big);

    const std::array<float, 4> columns = {0.24F * width, 0.25F * width, 0.25F * width, 0.26F * width};
    Rect header = ui::next_area(c, 20);
    const bool costs = has_costs(lab_.history());
    const std::array<const char*, 4> heads = {"", "tail loss", "ms/step", costs ? "TFLOP/s" : "steps/s"};
    float x = header.x0;
    const std::array<const char*, 4> terms = {"", "tail-loss", "emulation",
                                              costs ? "gpu-speed" : "emulation"};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        x += columns[i];
        ui::head(c, {x, (header.y0 + header.y1) / 2}, heads.at(i), terms.at(i));
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(header);
    ImGui::PopStyleVar();
    for (std::size_t i = 0; i < spec.arms.size(); ++i) {
        const bool shown = i < lab_.history().arms().size();
        const double ms = shown ? lab_.ms_per_step(i) : 0;
        const auto* cost = shown && lab_.history().arms()[i].cost ? &*lab_.history().arms()[i].cost : nullptr;
        const std::string speed = cost                        ? format_number(tflops(*cost), 3, true)
                                  : shown && ms > 0 && !costs ? group_thousands(std::lround(1000 / ms))
                                                              : "";
        const double loss = shown ? lab_.history().arms()[i].tail_loss() : 0;
        const auto number = [](double value) {
            return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
        };
        const std::array<ui::Cell, 4> cells = {
            ui::Cell{.text = looks[i].name,
                     .role = looks[i].role,
                     .mono = false,
                     .strong = true,
                     .anchor = Anchor::left},
            ui::Cell{.text = shown ? loss_text(loss) : "", .value = number(loss)},
            ui::Cell{.text = shown ? step_text(ms) : "", .value = number(ms)}, ui::Cell{.text = speed}};
        ui::table_row(c, cells, columns);
    }
    const Rect end = ui::next_area(c, 8);
    ui::hline(c, end.x0, end.x1, end.y0, {Role::line});
    ui::advance({end.x0, end.y0, end.x1, end.y0});
    if (const std::string faster = speedup_details(lab_.history(), looks); !faster.empty())
        ui::wrapped(c, faster, Role::text);
    if (costs && lab_.history().arms()[0].cost && !lab_.history().arms()[0].cost->note.empty())
        ui::wrapped(c, "On the GPU " + lab_.history().arms()[0].cost->note + ".");
    if (const std::string why = lab_.no_record(); !why.empty()) ui::wrapped(c, why);
    const std::string message = lab_.message();
    if (!message.empty()) {
        ui::warning(c, message);
    } else if (const std::string verdict = lab_.verdict(); !verdict.empty()) {
        ui::wrapped(c, verdict);
    } else if (started && !lab_.finished() && lab_.provenance() == Provenance::cpu_emulated) {
        ui::wrapped(c,
                    "Emulated: every cast and scale is exact, the times say nothing about the speed of FP8.");
    }
}

void TrainView::copy_buttons(ui::Context& c, float width) {
    const float half = (width / c.scale - 8) / 2;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ui::button(c, "train.copy_command", "Copy command", {.width = half}))
        ImGui::SetClipboardText(lab_.command().c_str());
    ui::tooltip(c, "Copy as command line", lab_.command());
    ImGui::SetCursorScreenPos({at.x + c.px(half + 8), at.y});
    if (ui::button(c, "train.copy_recipe", "Copy TE recipe", {.width = half}))
        ImGui::SetClipboardText(lab_.transformer_engine().c_str());
    ui::tooltip(c, "Copy as Transformer Engine recipe", lab_.transformer_engine());
}

}  // namespace fp8lab::train
