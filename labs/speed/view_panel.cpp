// The Explore tab of L9: where the times come from, the layer, and its three products.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/speed/model_figures.h"
#include "labs/speed/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab::speed {

namespace {

using ui::Context;

const Field& field_named(const std::vector<Field>& fields, std::string_view name) {
    return *std::ranges::find_if(fields, [&](const Field& field) { return field.info.name == name; });
}

// All recorded values of one size, as ticks.
std::vector<double> ticks_of(const Outcome& o, std::string_view name) {
    std::vector<double> out;
    if (name == "m") out.assign(o.all_m.begin(), o.all_m.end());
    for (const auto& [n, k] : o.all_layers)
        if (name != "m") out.push_back(name == "n" ? n : k);
    return out;
}

}  // namespace

void SpeedView::explore(Context& c, float width) {
    const std::vector<Field> fields = lab_.fields(), defaults = lab_.defaults();
    const auto edit = [&](std::string_view name) {
        ui::edit(c, field_named(fields, name), &field_named(defaults, name));
    };
    edit("source");
    edit("recipe");
    for (const char* name : {"m", "n", "k"}) size_slider(c, name);
    edit("fast_accum");
    ui::disclosure(c, "speed.more", "More: casts, groups, data, padding", more_open_);
    if (more_open_)
        for (const Field& field : fields)
            if (field.info.more && !field.info.hidden) edit(field.info.name);
    measure_button(c);
    ui::divider(c);
    numbers(c, width);
}

// A slider that stops at the recorded values, which are its ticks, and the two buttons for one more or less. A
// number that is typed stays as it is.
void SpeedView::size_slider(Context& c, const char* name) {
    const std::vector<Field> fields = lab_.fields(), defaults = lab_.defaults();
    const Field &field = field_named(fields, name), &original = field_named(defaults, name);
    if (ui::withheld(c, field)) return;
    const Rect area = ui::next_area(c, 56);
    double value = **std::get_if<int*>(&field.value);
    const double before = value;
    const bool changed =
        ui::slider(c, name, field.info.label, field.info.te_name, value, field.min, field.max,
                   {.logarithmic = true, .step = 1, .default_value = **std::get_if<int*>(&original.value)});
    ui::tooltip(c, field.info.label, field.info.help);
    const float left = area.x0 + c.px(8), length = area.width() - c.px(16), y = area.y0 + c.px(49);
    for (const double tick : ticks_of(lab_.outcome(), name)) {
        const double at = std::log(tick / field.min) / std::log(field.max / field.min);
        const float x = std::round(left + length * static_cast<float>(at));
        ui::fill_rect(c, {x, y, x + ui::hairline(c), y + c.px(4)}, {Role::axis});
    }
    const ImVec2 cursor = ImGui::GetCursorScreenPos();
    offset_buttons(c, name, area);
    ImGui::SetCursorScreenPos(cursor);
    if (!changed) return;
    const bool dragged = ImGui::IsMouseDown(ImGuiMouseButton_Left);
    const bool stepped = ui::key_pressed(ui::Key::left) || ui::key_pressed(ui::Key::right);
    if (!dragged && !stepped) return set(fmt::format("{}={}", name, std::lround(value)));
    // An arrow key goes to the next recorded value, however small its step on the track is.
    const std::vector<double> ticks = ticks_of(lab_.outcome(), name);
    if (stepped && lab_.outcome().recorded) {
        double next = before;
        for (const double tick : ticks)
            if (value > before ? tick > before && (next == before || tick < next)
                               : tick < before && (next == before || tick > next))
                next = tick;
        value = next;
    }
    if (field.info.name == "m") lab_.choose_m(value);
    if (field.info.name == "n") lab_.choose_n(value);
    if (field.info.name == "k") lab_.choose_k(value);
}

void SpeedView::offset_buttons(Context& c, const char* name, Rect row) {
    const std::vector<Field> fields = lab_.fields();
    const std::string offset = std::string(name) + "_off";
    const Field& field = field_named(fields, offset);
    if (std::ranges::find(c.locked, offset) != c.locked.end()) return;
    int& value = **std::get_if<int*>(&field.value);
    float right = row.x1 - c.px(80);
    for (const int step : {1, -1}) {
        const Rect box{right - c.px(30), row.y0, right, row.y0 + c.px(24)};
        right = box.x0 - c.px(4);
        const ui::Press press =
            ui::press(c, fmt::format("{}.{}", offset, step > 0 ? "more" : "less"), box, 4);
        const bool on = value == step;
        if (press.clicked) value = on ? 0 : step;
        ui::fill_rect(c, box, {on ? Role::surface : Role::field}, 4);
        if (on || press.hovered) ui::stroke_rect(c, box, {Role::axis}, 4);
        ui::text_mid(c, {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2}, step > 0 ? "+1" : "\u22121",
                     {on ? Role::text : Role::muted}, on ? kMonoBold13 : kMono13, Anchor::center);
    }
}

void SpeedView::lesson_end(Context& c) {
    ui::divider(c);
    ui::text(c, "FP8 or BF16?", Role::text, kBold15);
    ui::wrapped(c, decision_words(lab_.outcome()), Role::text, kSans15);
    const std::string gpu = lab_.outcome().gpu;
    if (!gpu.empty()) ui::wrapped(c, "Times of " + gpu + ", with the settings of Explore.");
}

void SpeedView::measure_button(Context& c) {
    const std::string reason = lab_.gpu_reason();
    if (lab_.busy()) {
        const std::string words = fmt::format("Stop, {:.0f} %", 100 * lab_.measuring().share());
        if (ui::button(c, "speed.measure", words, {.key = "Esc", .width = -1})) lab_.act("stop");
        return;
    }
    if (ui::button(c, "speed.measure", "Measure here",
                   {.key = "Space", .disabled = !reason.empty(), .why_disabled = reason, .width = -1}))
        lab_.act("measure");
    if (lab_.params().source != kLive || !reason.empty()) return;
    if (ui::button(c, "speed.measure_grid", "Measure every M", {.key = "G", .width = -1}))
        lab_.act("measure_grid");
    if (ui::button(c, "speed.measure_step", "Measure one step", {.key = "S", .width = -1}))
        lab_.act("measure_step");
}

namespace {

void draw_products(Context& c, const Outcome& o, float width) {
    const std::vector<float> columns = {0.25F * width, 0.25F * width, 0.25F * width, 0.25F * width};
    Rect header = ui::next_area(c, 20);
    float x = header.x0;
    constexpr std::array<std::array<const char*, 2>, 4> kHeads = {
        {{"", ""}, {"BF16 ms", "bf16"}, {"FP8 ms", "fp8"}, {"ratio", "quartile"}}};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        x += columns[i];
        ui::head(c, {x, (header.y0 + header.y1) / 2}, kHeads.at(i)[0], kHeads.at(i)[1]);
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    ui::advance(header);
    ImGui::PopStyleVar();
    for (const Product& product : o.products) {
        const auto value = [](double number) {
            return std::isnan(number) ? std::nullopt : std::optional(number);
        };
        const double own = product.ratio().value;
        const std::string fp8 =
            product.status() != 0 ? fmt::format("({})", product.status()) : ms_text(product.ms(true));
        const std::array cells = {
            ui::Cell{.text = product.name, .mono = false, .anchor = Anchor::left},
            ui::Cell{
                .text = ms_text(product.ms(false)), .role = Role::bf16, .value = value(product.ms(false))},
            ui::Cell{.text = fp8,
                     .role = product.status() != 0 ? Role::sat : Role::e4m3,
                     .value = value(product.ms(true))},
            ui::Cell{.text = std::isnan(own) ? "" : fmt::format("{:.2f}", own),
                     .strong = true,
                     .value = value(own)}};
        ui::table_row(c, cells, columns);
    }
    ui::table_end(c, columns);
}

}  // namespace

void SpeedView::numbers(Context& c, float width) {
    const Outcome& o = lab_.outcome();
    const Product& fprop = o.products.front();
    const double ratio = fprop.ratio().value;
    const double noise = std::max(fprop.bf16 ? iqr_pct(*fprop.bf16) : 0, fprop.fp8 ? iqr_pct(*fprop.fp8) : 0);
    const bool noisy = noise > kNoisyPct;
    const Rect big = ui::next_area(c, 36);
    const float middle = (big.y0 + big.y1) / 2;
    const std::string headline = fprop.status() != 0 ? "refused"
                                 : std::isnan(ratio) ? "\u2013"
                                                     : factor_text(ratio);
    ui::text_mid(c, {big.x0, middle}, headline,
                 {fprop.status() != 0 ? Role::sat
                  : noisy             ? Role::muted
                                      : Role::e4m3,
                  Tone::ink},
                 {Face::mono, 32});
    ui::text_mid(c, {big.x1, middle + c.px(5)},
                 noisy ? fmt::format("noisy: {:.0f} %", noise) : "fprop, FP8 against BF16", {Role::muted},
                 kSans13, Anchor::right);
    ui::probe(c, "speed.headline", big, {}, headline);
    ui::advance(big);
    draw_products(c, o, width);
    for (const std::string& notice : lab_.notices()) ui::warning(c, notice);
    if (fprop.fp8 && !fprop.fp8->kernel.empty()) ui::wrapped(c, "fprop runs " + fprop.fp8->kernel);
    if (fprop.status() != 0)
        ui::wrapped(c, "cuBLASLt: " + fprop.fp8->words);
    else if (fprop.ran(true))
        ui::wrapped(c,
                    fmt::format("Medians of {} on random data. Each operand counted once; the casts are row "
                                "copies only.",
                                fprop.fp8->repeats));
}

}  // namespace fp8lab::speed
