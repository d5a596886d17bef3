// The part "kv": divergence over the size of K with what saturates below it, and a row for every scheme.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"
#include "labs/serve/view.h"
#include "labs/ui/draw.h"
#include "labs/ui/stage/stage.h"
#include "labs/ui/widgets.h"

namespace fp8lab::serve {
namespace {

using ui::Context;

constexpr std::string_view kSaturated = "saturated %, scale 1";
constexpr float kSaturatedStrip = 46, kCacheHeads = 66, kCacheRow = 25, kLowCacheRow = 21;

struct Column {
    const char* head;
    float right;  // its right edge, as a share of the width
};
constexpr std::array<Column, 6> kNumbers = {{{"MHA 32", .46F},
                                             {"GQA 8", .56F},
                                             {"MLA", .64F},
                                             {"both", .78F},
                                             {"K alone", .89F},
                                             {"V alone", .995F}}};

}  // namespace

void ServeView::draw_kv(Context& c, Rect area) {
    const Kv& kv = *lab_->kv;
    const auto rows = static_cast<float>(cache_schemes().size() - 1);
    const bool low = area.height() < c.px(620);
    const auto lines = static_cast<float>(ui::wrap_lines(c, caches_title(kv), kBold15, area.width()).size());
    const float more = ui::line_height(15) * std::max(0.0F, lines - 1);  // of the title
    const float table = c.px(more + kCacheHeads + (low ? kLowCacheRow : kCacheRow) * rows);
    const float split = area.y1 - table;
    const float strip = low ? 0 : c.px(kSaturatedStrip);
    const Rect above{area.x0, area.y0, area.x1, split - strip - c.px(low ? 4 : 10)};
    const ui::PlotResult plot =
        ui::plot(c, "serve.kv_scale", kv_figure(kv), upper_, above, {.y_tick_width = 52});
    if (plot.hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        const double at = std::round(std::log2(plot.x_at(ImGui::GetIO().MousePos.x)));
        set(fmt::format("k_factor={}", std::exp2(std::clamp(at, -8.0, 8.0))));
    }
    if (!low) draw_saturated(c, plot, {area.x0, above.y1, area.x1, above.y1 + strip});
    draw_caches(c, {area.x0, split, area.x1, area.y1}, low ? kLowCacheRow : kCacheRow);
}

// Bars under the points of scale 1: the share of K that saturates.
void ServeView::draw_saturated(Context& c, const ui::PlotResult& plot, Rect area) {
    ui::region(c, "saturated", area);
    const Kv& kv = *lab_->kv;
    ui::text_mid(c, {area.x0, area.y0 + c.px(14)}, kSaturated, {Role::muted}, kSans13);
    const float half = c.px(11), words_end = area.x0 + ui::text_width(c, kSaturated, kSans13);
    for (std::size_t i = 0; i < kv.factors.size(); ++i) {
        const float x = plot.to_px(kv.factors[i], 1).x;
        if (x - half < words_end) continue;  // beside the words nothing saturates
        const double pct = kv.saturated_pct[i];
        if (pct > 0)
            ui::text_mid(c, {std::min(x, area.x1 - c.px(10)), area.y0 + c.px(14)},
                         pct < 0.1 ? fmt::format("{:.2f}", pct) : screen_number(pct, 2),
                         {Role::sat, Tone::ink}, kMono13, Anchor::center);
        else
            ui::fill_rect(c, {x - half / 2, area.y0 + c.px(13), x + half / 2, area.y0 + c.px(14)},
                          {Role::axis});
    }
}

void ServeView::draw_caches(Context& c, Rect area, float row) {
    ui::region(c, "caches", area);
    const Kv& kv = *lab_->kv;
    area.y0 = ui::heading(c, caches_title(kv), area) - c.px(ui::line_height(15));
    const auto x = [&](float share) { return area.x0 + share * area.width(); };
    const float heads = area.y0 + c.px(54);
    ui::text_mid(c, {x(kNumbers[2].right), area.y0 + c.px(36)}, "bytes per token and layer", {Role::muted},
                 kSans13, Anchor::right);
    ui::text_mid(c, {area.x1, area.y0 + c.px(36)}, "divergence, nats", {Role::muted}, kSans13, Anchor::right);
    ui::head(c, {area.x0, heads}, "cache", "kv-cache", Anchor::left);
    for (const Column& column : kNumbers)
        ui::text_mid(c, {x(column.right), heads}, column.head, {Role::muted}, kSans13, Anchor::right);
    float y = area.y0 + c.px(kCacheHeads);
    for (const CacheScheme& scheme : cache_schemes()) {
        if (scheme.id == "bf16") continue;
        const Rect line{area.x0, y, area.x1, y + c.px(row)};
        const bool chosen = scheme.id == lab_->params.cache;
        if (ui::press_row(c, fmt::format("serve.cache.{}", scheme.id), line, chosen))
            set(fmt::format("cache={}", scheme.id));
        ui::hline(c, area.x0, area.x1, y, {Role::line});
        const float middle = y + c.px(row) / 2;
        ui::text_mid(c, {area.x0 + c.px(4), middle}, scheme.label, {role_of(scheme), Tone::ink},
                     chosen ? kBold13 : kSans13);
        const KvRow* known = kv.row(scheme.id);
        std::array<std::string, kNumbers.size()> values;
        for (std::size_t m = 0; m < kCacheModels.size(); ++m)
            values.at(m) = screen_number(cache_bytes_per_token(kCacheModels.at(m).shape, scheme), 5);
        values[3] = known ? divergence_text(known->cost.divergence) : "–";
        values[4] = known ? divergence_text(known->cost.k_divergence) : "–";
        values[5] = known ? divergence_text(known->cost.v_divergence) : "–";
        for (std::size_t i = 0; i < values.size(); ++i)
            ui::text_mid(c, {x(kNumbers.at(i).right), middle}, values.at(i), {Role::text},
                         chosen && i >= 3 ? kMonoBold13 : kMono13, Anchor::right);
        y += c.px(row);
    }
    ui::hline(c, area.x0, area.x1, y, {Role::line});
}

void ServeView::draw_kv_rows(Context& c) {
    const Kv& kv = *lab_->kv;
    const KvRow* own = kv.own();
    ui::headline(c, "serve.result",
                 {own ? divergence_text(own->cost.divergence) : "–", "nats from a cache in FP32",
                  own ? own->cost.divergence : std::nan("")});
    if (!own) return;
    const Rect top = ui::next_area(c, 28 * 4);
    float y = top.y0;
    const auto row = [&](const std::string& words, std::string value, bool fault = false) {
        y = ui::row(c, {words, std::move(value), fault ? Color{Role::sat, Tone::ink} : Color{Role::text}},
                    {top.x0, y, top.x1, y}, c.px(28));
    };
    row("largest |K|", screen_number(own->cost.largest_k, 3));
    row("of K saturates", fmt::format("{} %", screen_number(own->cost.saturated_pct_k, 2)),
        own->cost.saturated_pct_k > 0);
    row("K alone", divergence_text(own->cost.k_divergence));
    row("V alone", divergence_text(own->cost.v_divergence));
    ui::advance(top);
}

}  // namespace fp8lab::serve
