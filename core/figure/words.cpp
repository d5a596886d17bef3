#include "core/figure/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/units.h"
#include "core/figure/csv.h"
#include "core/figure/paint.h"

namespace fp8lab {

namespace {

std::string number(double value) { return format_number(value, 4, true); }

std::string sentence(std::string text) {
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n'))
        text.replace(end, 1, ", ");
    if (!text.empty() && std::string_view(".?!").find(text.back()) == std::string_view::npos) text += '.';
    return text;
}

std::string on_scale(Scale scale) {
    switch (scale) {
        case Scale::linear:
            return "";
        case Scale::log2:
            return ", in powers of two";
        case Scale::log10:
            return ", in powers of ten";
        case Scale::symlog:
            return ", in powers of ten to both sides of zero";
    }
    return "";
}

std::string axis_words(std::string_view name, const AxisSpec& axis, Range range) {
    const std::string label = axis.label.empty() ? "" : ", " + axis.label + ",";
    if (!axis.names.empty()) {
        std::string names;
        for (const AxisName& one : axis.names) {
            names += (names.empty() ? "" : "; ") + one.words;
        }
        std::ranges::replace(names, '\n', ' ');
        return fmt::format("The {} axis{} has {}.", name, label, names);
    }
    const std::string broken =
        axis.gap ? fmt::format(", broken from {} to {}", number(axis.gap->lo), number(axis.gap->hi)) : "";
    return fmt::format("The {} axis{} runs from {} to {}{}{}.", name, label, number(range.lo),
                       number(range.hi), on_scale(axis.scale), broken);
}

// Least and most of the finite values, and how many are not.
struct Summary {
    std::size_t first = 0, last = 0, least = 0, most = 0;  // indices
    std::size_t finite = 0, nan = 0, infinite = 0;
};
Summary summary(std::span<const double> values) {
    Summary out;
    for (std::size_t i = 0; i < values.size(); ++i) {
        out.nan += std::isnan(values[i]) ? 1 : 0;
        out.infinite += std::isinf(values[i]) ? 1 : 0;
        if (!std::isfinite(values[i])) continue;
        if (out.finite++ == 0) out.first = out.least = out.most = i;
        out.last = i;
        if (values[i] < values[out.least]) out.least = i;
        if (values[i] > values[out.most]) out.most = i;
    }
    return out;
}

std::string not_finite(const Summary& of) {
    std::string out;
    if (of.nan > 0) out += fmt::format("; {} NaN", of.nan);
    if (of.infinite > 0) out += fmt::format("; {} infinite", of.infinite);
    return out;
}

std::string count(std::size_t n, std::string_view one) {
    return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

class Describer {
  public:
    explicit Describer(std::string name) : name_(std::move(name)) {}

    std::string operator()(const LineSeries& s) const { return points("Curve", s.x, s.y); }
    std::string operator()(const ScatterSeries& s) const { return points("Points", s.x, s.y); }
    std::string operator()(const StemSeries& s) const { return points("Stems", s.x, s.y); }
    std::string operator()(const BarSeries& s) const {
        const std::size_t n =
            s.edges && s.heights && !s.edges->empty() ? std::min(s.heights->size(), s.edges->size() - 1) : 0;
        if (n == 0) return named("Bars") + ": none yet.";
        const std::span heights(s.heights->data(), n);
        const Summary of = summary(heights);
        std::string out = fmt::format("{}: {} from {} to {}", named("Bars"), count(n, "bar"),
                                      number(s.edges->front()), number((*s.edges)[n]));
        const auto bar = [&](std::size_t i) {
            return fmt::format("{} from {} to {}", number(heights[i]), number((*s.edges)[i]),
                               number((*s.edges)[i + 1]));
        };
        if (of.finite > 0) out += "; highest " + bar(of.most);
        if (of.finite > 1) out += ", lowest " + bar(of.least);
        return out + not_finite(of) + ".";
    }
    std::string operator()(const BandSeries& s) const {
        const std::size_t n = s.x && s.lo && s.hi ? std::min({s.x->size(), s.lo->size(), s.hi->size()}) : 0;
        if (n == 0) return named("Band") + ": none yet.";
        const auto at = [&](std::size_t i) {
            return fmt::format("from {} to {} at x = {}", number((*s.lo)[i]), number((*s.hi)[i]),
                               number((*s.x)[i]));
        };
        return fmt::format("{}: a band {}{}.", named("Band"), at(0), n > 1 ? ", " + at(n - 1) : "");
    }
    std::string operator()(const HeatmapSeries& s) const {
        const std::size_t n = s.values ? s.values->size() : 0;
        std::string out =
            fmt::format("{}: {} of {}", named("Map"), count(static_cast<std::size_t>(s.rows), "row"),
                        count(static_cast<std::size_t>(s.cols), "cell"));
        const Summary of = n > 0 ? summary(*s.values) : Summary{};
        const auto where = [&](std::size_t i) {
            const auto columns = static_cast<std::size_t>(std::max(s.cols, 1));
            return fmt::format("{} in row {}, column {}", number((*s.values)[i]), i / columns, i % columns);
        };
        if (of.finite > 0) out += "; least " + where(of.least) + ", most " + where(of.most);
        if (of.nan > 0) out += fmt::format("; {} empty", of.nan);
        return out + ".";
    }
    std::string operator()(const VLine& mark) const {
        return fmt::format("{}: a line at x = {}.", named("Mark"), number(mark.x));
    }
    std::string operator()(const HLine& mark) const {
        return fmt::format("{}: a level at y = {}.", named("Mark"), number(mark.y));
    }
    std::string operator()(const XSpan& mark) const { return span("x", mark.lo, mark.hi); }
    std::string operator()(const YSpan& mark) const { return span("y", mark.lo, mark.hi); }
    std::string operator()(const TextMark& mark) const {
        return fmt::format("Note at x = {}, y = {}: {}", number(mark.x), number(mark.y), sentence(mark.text));
    }
    std::string operator()(const Bracket& mark) const {
        return fmt::format("Bracket from x = {} to {}: {}", number(mark.x0), number(mark.x1),
                           sentence(mark.text));
    }

  private:
    std::string named(std::string_view kind) const { return name_.empty() ? std::string(kind) : name_; }
    std::string span(std::string_view axis, double lo, double hi) const {
        return fmt::format("{}: the range from {} = {} to {}.", named("Mark"), axis, number(lo), number(hi));
    }
    std::string points(std::string_view kind, const Data& x, const Data& y) const {
        const std::size_t n = x && y ? std::min(x->size(), y->size()) : 0;
        const std::span values(n > 0 ? y->data() : nullptr, n);
        const Summary of = summary(values);
        if (n == 0) return named(kind) + ": no points yet.";
        std::string out = named(kind) + ": " + count(n, "point");
        const auto at = [&](std::size_t i) {
            return fmt::format("{} at x = {}", number(values[i]), number((*x)[i]));
        };
        if (of.finite == 1) out += ", " + at(of.first);
        if (of.finite > 1 && values[of.least] == values[of.most])
            out += fmt::format(", all at {}, x from {} to {}", number(values[of.first]),
                               number((*x)[of.first]), number((*x)[of.last]));
        else if (of.finite > 1)
            out += fmt::format(", from {} to {}; lowest {}, highest {}", at(of.first), at(of.last),
                               at(of.least), at(of.most));
        return out + not_finite(of) + ".";
    }

    std::string name_;
};

// One line of to_csv(): cells by comma, quoted ones as RFC 4180 has them.
std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells = {""};
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
            cells.back() += line[++i];
        } else if (line[i] == '"') {
            quoted = !quoted;
        } else if (line[i] == ',' && !quoted) {
            cells.emplace_back();
        } else {
            cells.back() += line[i];
        }
    }
    return cells;
}

}  // namespace

std::vector<std::string> to_words(const Figure& figure) {
    std::vector<std::string> out;
    if (!figure.title.empty()) out.push_back(sentence(figure.title));
    if (!figure.subtitle.empty()) out.push_back(sentence(figure.subtitle));
    if (!figure.words.empty()) {
        for (const std::string& told : figure.words) out.push_back(sentence(told));
        return out;
    }
    const Extents shown = fit(figure);
    std::string axes;
    if (figure.x.visible) axes = axis_words("x", figure.x, shown.x);
    if (figure.y.visible) axes += (axes.empty() ? "" : " ") + axis_words("y", figure.y, shown.y);
    if (!axes.empty()) out.push_back(axes);
    constexpr std::size_t kNotes = 3;  // more in a row are labels of an axis or of points
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
        const Series& series = figure.series[i];
        std::size_t end = i;
        std::string labels;
        for (; end < figure.series.size(); ++end) {
            const auto* note = std::get_if<TextMark>(&figure.series[end].shape);
            if (note == nullptr) break;
            labels += (labels.empty() ? "" : ", ") + note->text;
        }
        if (end - i > kNotes) {
            out.push_back("Labels: " + sentence(labels));
            i = end - 1;
            continue;
        }
        out.push_back(std::visit(Describer(std::string(display_name(series))), series.shape));
    }
    return out;
}

FigureTable to_table(const Figure& figure, std::size_t most) {
    const std::string csv = to_csv(figure);
    FigureTable out;
    for (std::size_t at = 0; at < csv.size();) {
        const std::size_t end = std::min(csv.find('\n', at), csv.size());
        const std::string_view line = std::string_view(csv).substr(at, end - at);
        at = end + 1;
        if (line.starts_with('#')) continue;
        if (out.header.empty()) {
            out.header = cells_of(line);
            continue;
        }
        if (++out.total > most) continue;
        out.rows.push_back(cells_of(line));
        for (std::size_t i = 1; i < out.rows.back().size(); ++i) {
            std::string& text = out.rows.back()[i];
            if (!text.empty()) text = number(std::strtod(text.c_str(), nullptr));
        }
    }
    return out;
}

}  // namespace fp8lab
