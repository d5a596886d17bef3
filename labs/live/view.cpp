#include "labs/live/view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "labs/ui/draw.h"

namespace fp8lab::live {

using ui::Context;

const Figure* find_figure(const std::vector<Figure>& figures, std::string_view id) {
    const auto at = std::ranges::find(figures, id, &Figure::id);
    return at == figures.end() ? nullptr : &*at;
}

bool switch_at(Context& c, const std::string& name, Rect area, std::span<const std::string> labels,
               int& selected) {
    ImGui::SetCursorScreenPos({area.x0, area.y0});
    ImGui::BeginChild(name.c_str(), {area.width(), area.height()}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
    const bool changed = ui::segmented(c, name, labels, selected);
    ImGui::EndChild();
    return changed;
}

SessionView::SessionView(Session& lab) : session_(lab), transport_(std::string(lab.info().id)) {}

std::string SessionView::probe(std::string_view part) const {
    return std::string(session_.info().id) + "." + std::string(part);
}

SessionView::Drawn SessionView::draw_curves(Context& c, Figure loss, Figure gap, Rect area,
                                            const Split& split,
                                            const std::function<void(Figure& gap)>& edit_gap) {
    const float height = std::clamp(split.share * area.height() / c.scale, split.least, split.most);
    const Rect loss_area{area.x0, area.y0, area.x1, area.y1 - c.px(height)};
    const Rect gap_area{area.x0, loss_area.y1 + c.px(split.between), area.x1, area.y1};
    loss.x.visible = false;  // the gap below shows the steps
    if (loss_area.height() < c.px(split.low)) {
        loss.y.label.clear();
        loss.subtitle = split.low_words;
    }
    const std::string words = session_.recorded_words();
    if (!words.empty()) loss.subtitle = words;
    gap.title.clear();
    gap.subtitle.clear();
    Drawn drawn;
    drawn.loss = ui::plot(c, probe("loss"), loss, loss_, loss_area, {.below = &gap});
    gap_.cursor_x = loss_.cursor_x;
    gap_.view.x = loss_.view.x;
    gap_.follow = loss_.follow;
    if (edit_gap) edit_gap(gap);
    drawn.gap = ui::plot(c, probe("gap"), gap, gap_, gap_area, {.title_height = 0});
    loss_.cursor_x = gap_.cursor_x;
    loss_.view.x = gap_.view.x;
    loss_.follow = gap_.follow;
    if (words.empty()) return drawn;
    // Paler than a run of one's own.
    const Rect inside = drawn.loss.area;
    ui::fill_rect(c, {inside.x0, inside.y0, area.x1, area.y1}, {Role::surface, Tone::line, 0.5F});
    ui::probe(c, probe("loss.recorded"), area, {}, words);
    return drawn;
}

// ---- run, step, reset

ui::TransportState SessionView::transport_state() const {
    const TimeLeft time = session_.time_left();
    return {.step = session_.step(),
            .steps = session_.steps(),
            .running = session_.running(),
            .stepping = session_.stepping(),
            .ended = session_.finished() || session_.failed(),
            .preparing = session_.preparing(),
            .time = time.words,
            .time_help = time.help};
}

void SessionView::draw_transport(Context& c, Rect bar) {
    ui::hline(c, bar.x0, bar.x1, bar.y0, {Role::line});
    const Rect row{bar.x0, bar.y0 + c.px(14), bar.x1, bar.y0 + c.px(46)};
    transport_.draw(c, row, transport_state(), [this](const std::string& action) { session_.act(action); });
}

bool SessionView::key(Context&, ui::Key key) {
    return transport_.key(key, transport_state(),
                          [this](const std::string& action) { session_.act(action); });
}

std::span<const ViewKey> SessionView::keys() const {
    static constexpr std::array kKeys = {
        ViewKey{"Space", "runs and pauses", ui::Key::space, ui::Key::space},
        ViewKey{".", "trains one step", ui::Key::period, ui::Key::period},
    };
    return kKeys;
}

void SessionView::draw_recording_menu(Context& c, Rect area, const std::vector<std::string>& names,
                                      int& chosen) {
    const std::string& now = names[static_cast<std::size_t>(chosen)];
    if (names.size() > 1) {
        ui::cell_menu(c, probe("recording"), area, now, {Role::text}, names, chosen);
        ui::probe(c, probe("recording.name"), area, {}, names[static_cast<std::size_t>(chosen)]);
    } else {
        ui::text_mid(c, {area.x1, (area.y0 + area.y1) / 2}, now, {Role::muted}, kSans13, Anchor::right);
    }
}

namespace {

// Fewer steps than pixels: a line through them.
template <class ToY>
void thin_strip(ui::Context& c, Rect area, const Envelope& envelope, ToY y_of) {
    const float steps = std::max(1.0F, static_cast<float>(envelope.stretches().size()) - 1);
    std::vector<ImVec2> line;
    for (std::size_t i = 0; i < envelope.stretches().size(); ++i) {
        const double value = envelope.stretches()[i].hi;
        if (!std::isnan(value))
            line.emplace_back(area.x0 + area.width() * static_cast<float>(i) / steps, y_of(value));
    }
    ImGui::GetWindowDrawList()->AddPolyline(line.data(), static_cast<int>(line.size()), c.color(Role::text),
                                            0, ui::hairline(c));
}

// A bar a pixel column from the least to the greatest value in it, joined to its neighbour.
template <class ToY>
void dense_strip(ui::Context& c, Rect area, const Envelope& envelope, std::size_t columns, ToY y_of) {
    const auto& stretches = envelope.stretches();
    const float px = ui::hairline(c);
    float above = NAN, below = NAN;  // of the column before
    for (std::size_t column = 0; column < columns; ++column) {
        double lo = std::numeric_limits<double>::quiet_NaN(), hi = lo;
        for (std::size_t i = column * stretches.size() / columns;
             i < (column + 1) * stretches.size() / columns; ++i) {
            lo = std::fmin(lo, stretches[i].lo);
            hi = std::fmax(hi, stretches[i].hi);
        }
        if (std::isnan(lo)) continue;
        const float top = y_of(hi), bottom = y_of(lo);
        const float x = area.x0 + px * static_cast<float>(column);
        const Rect bar{x, std::round(std::fmin(top, below)), x + px,
                       std::round(std::fmax(bottom, above)) + px};
        ui::fill_rect(c, bar, {Role::text});
        above = top;
        below = bottom;
    }
}

}  // namespace

void draw_strip(ui::Context& c, Rect area, const Envelope& envelope) {
    double lo = std::numeric_limits<double>::infinity(), hi = 0;
    for (const auto& stretch : envelope.stretches()) {
        lo = std::fmin(lo, stretch.lo);
        hi = std::fmax(hi, stretch.hi);
    }
    if (!(hi > 0)) return;
    if (hi < 1.001 * lo) {  // constant: half way up
        lo /= 2;
        hi *= 2;
    }
    const auto y_of = [&](double value) {
        return area.y1 - area.height() * static_cast<float>(std::log2(value / lo) / std::log2(hi / lo));
    };
    const float px = ui::hairline(c);
    const auto columns = static_cast<std::size_t>(area.width() / px);
    if (envelope.stretches().size() <= columns) {
        thin_strip(c, area, envelope, y_of);
    } else {
        dense_strip(c, area, envelope, columns, y_of);
    }
}

}  // namespace fp8lab::live
