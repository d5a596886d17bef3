// The Explore tab of L8: arms and settings, then the numbers of the run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/units.h"
#include "labs/live/cost.h"
#include "labs/train/model_options.h"
#include "labs/train/view.h"
#include "labs/ui/draw.h"

namespace fp8lab::train {
namespace {

constexpr float kSwitch = 108;  // logical px from the left edge to a switch
constexpr std::array<std::string_view, 9> kFirst = {"backend", "speed_limit", "arm_a", "arm_b", "lr",
                                                    "history", "margin",      "algo",  "tensor"};
constexpr std::array<std::string_view, 8> kCasts = {"fwd",    "bwd",          "round",   "overflow",
                                                    "master", "round_update", "options", "interval"};
constexpr std::array<std::string_view, 11> kTraining = {
    "arm_c", "task",       "size",          "schedule",     "steps",  "batch",
    "seed",  "accumulate", "accumulate_in", "weight_cache", "amax_of"};

}  // namespace

void TrainView::explore(ui::Context& c, float width) {
    draw_rows(c, kFirst);
    poison_button(c);
    folds(c);
    draw_waiting(c);
    ui::divider(c);
    numbers(c, width);
    notes(c);
    draw_copy_buttons(c, width, "copy_recipe", "Copy TE recipe", "Copy as Transformer Engine recipe");
}

void TrainView::draw_row(ui::Context& c, const table::Row& row, const Field& default_field) {
    const Field& field = row.field;
    const std::string& name = field.info.name;
    if (name == "backend") return draw_backend(c, row, kSwitch);
    if (name == "speed_limit") return speed_choice(c, field);
    if (name == "margin") return margin_slider(c, field);
    if (name == "algo")
        return draw_choice(c, row, kSwitch, false,
                           field.info.help + " Transformer Engine: " + field.info.te_name + ".");
    if (name == "tensor") return tensor_class(c, field);
    if (name == "size") return size_choice(c, field);
    if (name == "options") option_switches(c, field);
    if (name == "accumulate") return draw_micro_batches(c, row, default_field, lab_.params().batch);
    if (!name.starts_with("arm_")) return SessionView::draw_row(c, row, default_field);
    const auto arm = static_cast<std::size_t>(name.back() - 'a');
    // Another recipe may not have the options of the one before.
    if (draw_arm(c, row, field.info.label, arm) && arm == 1) set_field(lab_.fields(), "options=");
}

// Slow enough to watch, to play, or as fast as the machine is; a scene's own speed is a fourth choice.
void TrainView::speed_choice(ui::Context& c, const Field& field) {
    auto* value = std::get<double*>(field.value);
    std::vector<double> speeds = {20, 200, 0};
    std::vector<std::string> labels = {"20/s", "200/s", "full"};
    auto chosen = std::ranges::find(speeds, *value);
    if (chosen == speeds.end()) {
        labels.insert(labels.begin(), format_number(*value, 3, true) + "/s");
        chosen = speeds.insert(speeds.begin(), *value);
    }
    int selected = static_cast<int>(chosen - speeds.begin());
    if (draw_switch(c, field, kSwitch, false, labels, selected, labels.size()))
        *value = speeds[static_cast<std::size_t>(selected)];
    ui::tooltip(
        c, field.info.label,
        "Steps per second, so that there is time to change a control while the training runs. full: as "
        "fast as this machine trains. A change acts at once.");
}

void TrainView::margin_slider(ui::Context& c, const Field& field) {
    auto* value = std::get<int*>(field.value);
    double exponent = *value;
    if (ui::slider(c, probe("margin"), field.info.label, field.info.te_name, exponent, field.min, field.max,
                   {.step = 1, .format = "2^{0:.0f} = \u00d7{1:g}", .default_value = 0.0}))
        *value = static_cast<int>(std::lround(exponent));
    ui::tooltip(c, field.info.label, field.info.help);
}

// Layers and the batch that belongs to them; the chosen ones with the batch that they now have. The CPU is
// offered the smallest only.
void TrainView::size_choice(ui::Context& c, const Field& field) {
    std::vector<Size> offered;
    std::vector<std::string> labels;
    int selected = -1;
    for (Size size : sizes()) {
        const bool now = size.id == lab_.params().size;
        if (size.id != kCpuSize && !now && lab_.backend() != "cuda") continue;
        if (now) {
            selected = static_cast<int>(labels.size());
            size.batch = lab_.params().batch;
        }
        offered.push_back(size);
        labels.push_back(size.label());
    }
    ui::text(c, field.info.label, Role::muted, kSans13);
    if (!ui::dropdown(c, probe("size"), labels, selected)) return;
    const Size& size = offered[static_cast<std::size_t>(selected)];
    set_field(field, size.id);
    set_field(lab_.fields(), fmt::format("batch={}", size.batch));
}

void TrainView::tensor_class(ui::Context& c, const Field& field) {
    constexpr std::array<TensorClass, 3> kClasses = {TensorClass::x, TensorClass::w, TensorClass::dy};
    const std::array<std::string, 3> labels = {"x", "w", "dy"};
    MlpTensor id = lab_.shown_tensor();
    int selected = static_cast<int>(std::ranges::find(kClasses, id.tensor) - kClasses.begin());
    if (!draw_switch(c, field, kSwitch, false, labels, selected, labels.size())) return;
    id.tensor = kClasses.at(static_cast<std::size_t>(selected));
    lab_.show_tensor(to_string(id));
}

void TrainView::poison_button(ui::Context& c) {
    if (ui::button(c, "train.poison", "Poison the next batch \u00d7 1000",
                   {.disabled = lab_.step() == 0 || lab_.finished(),
                    .why_disabled = "Start the training first.",
                    .width = -1}))
        lab_.act("poison");
}

// Two lines that open a part of the second tier each, side by side.
void TrainView::folds(ui::Context& c) {
    const Rect row = ui::next_area(c, 24);
    const float half = row.width() / 2, y = (row.y0 + row.y1) / 2;
    const auto fold = [&](const char* name, const char* label, float x, bool& open) {
        const ui::Press press = ui::press(c, name, {x, row.y0, x + half - c.px(8), row.y1}, 4);
        if (press.clicked) open = !open;
        const Color ink{press.hovered || open ? Role::text : Role::muted};
        ui::chevron(c, {x + c.px(4), y}, open ? ui::Direction::down : ui::Direction::right, ink);
        ui::text_mid(c, {x + c.px(16), y}, label, ink, kSans13);
    };
    fold("train.more_cast", "More: casts", row.x0, casts_open_);
    fold("train.more_run", "More: training", row.x0 + half, training_open_);
    ui::advance(row);
    if (casts_open_) draw_rows(c, kCasts);
    if (training_open_) draw_rows(c, kTraining);
}

void TrainView::option_switches(ui::Context& c, const Field& field) {
    for (const OptionSwitch& option : train::option_switches(lab_.params())) {
        std::string value = chosen_option(lab_.params(), option);
        const std::string before = value;
        Field of_key = choice(option.info, &value, option.choices);
        of_key.info.name = probe(option.info.name);
        ui::edit(c, of_key);
        if (value != before) set_field(field, options_with(lab_.params(), option, value));
    }
}

void TrainView::numbers(ui::Context& c, float width) {
    const auto looks = lab_.looks();
    const auto& arms = lab_.history().arms();
    const bool started = lab_.step() > 0, costs = has_costs(lab_.history());
    const std::string whose = looks.size() > 2 ? looks[1].name + " gap" : "gap";
    draw_headline(c, started ? signed_percent(gap_pct(lab_.history(), 1)) : "",
                  started ? whose + ", last 100 steps" : "no step yet", 32);
    const std::array<float, 4> columns = {0.24F * width, 0.25F * width, 0.25F * width, 0.26F * width};
    draw_heads(c,
               std::array{Head{"", ""}, Head{"tail loss", "tail-loss"}, Head{"ms/step", "emulation"},
                          costs ? Head{"TFLOP/s", "gpu-speed"} : Head{"steps/s", "emulation"}},
               columns);
    const auto number = [](double value) {
        return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
    };
    for (std::size_t i = 0; i < looks.size(); ++i) {
        std::array cells = {arm_cell(looks[i]), ui::Cell{}, ui::Cell{}, ui::Cell{}};
        if (i < arms.size()) {
            const double loss = arms[i].tail_loss(), ms = lab_.ms_per_step(i);
            cells[1] = {.text = loss_text(loss), .value = number(loss)};
            cells[2] = {.text = step_text(ms), .value = number(ms)};
            if (arms[i].cost)
                cells[3].text = format_number(tflops(*arms[i].cost), 3, true);
            else if (ms > 0 && !costs)
                cells[3].text = group_thousands(std::lround(1000 / ms));
        }
        ui::table_row(c, cells, columns);
    }
    end_table(c, width);
}

void TrainView::notes(ui::Context& c) {
    if (const std::string faster = speedup_details(lab_.history(), lab_.looks()); !faster.empty())
        ui::wrapped(c, faster, Role::text);
    if (has_costs(lab_.history()))
        if (const auto& cost = lab_.history().arms()[0].cost; cost && !cost->note.empty())
            ui::wrapped(c, "On the GPU " + cost->note + ".");
    if (const auto& arms = lab_.history().arms(); !arms.empty())
        if (const std::string sums = live::sum_words(arms[shown_arm()], lab_.spec().accumulate);
            !sums.empty())
            ui::wrapped(c, sums, Role::text);
    if (const std::string why = lab_.no_record(); !why.empty()) ui::wrapped(c, why);
    if (const std::string message = lab_.message(); !message.empty()) {
        ui::warning(c, message);
    } else if (const std::string verdict = lab_.verdict(); !verdict.empty()) {
        ui::wrapped(c, verdict);
    } else if (lab_.step() > 0 && !lab_.finished() && lab_.provenance() == Provenance::cpu_emulated) {
        ui::wrapped(c,
                    "Emulated: every cast and scale is exact, the times say nothing about the speed of FP8.");
    }
}

}  // namespace fp8lab::train
