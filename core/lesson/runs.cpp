#include "core/lesson/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/read_number.h"
#include "core/base/units.h"
#include "core/files/files.h"

namespace fp8lab {
namespace {

constexpr double kStudentT = 2.262;  // 97.5 % of 9 degrees of freedom
constexpr std::string_view kOpening = "{runs ";

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> out;
    while (true) {
        const std::size_t end = text.find(at);
        out.push_back(text.substr(0, end));
        if (end == text.npos) return out;
        text.remove_prefix(end + 1);
    }
}

double number_from(std::string_view text) {
    double out = 0;
    if (!read_number(text, out) || !std::isfinite(out))
        throw input_error("", fmt::format("'{}' is no number", text));
    return out;
}

std::string decimal(double value, int decimals) {
    std::string out = fmt::format("{:.{}f}", std::fabs(value), decimals);
    if (out.size() > 4 && decimals == 0) out = group_thousands(std::llround(std::fabs(value)));
    const bool zero = out.find_first_not_of("0.") == out.npos;
    return (value < 0 && !zero ? "\u2212" : "") + out;
}

// So many that the last one is at most a third of the standard deviation.
int decimals_of(double sd) {
    if (!(sd > 0)) return 0;
    return std::clamp(static_cast<int>(std::ceil(-std::log10(sd / 3))), 0, 4);
}

}  // namespace

Spread spread_of(std::span<const double> values) {
    const auto first = values.first(kSeedsOfRuns);
    constexpr auto n = static_cast<double>(kSeedsOfRuns);
    Spread out{.low = *std::ranges::min_element(first), .high = *std::ranges::max_element(first)};
    for (const double value : first) out.mean += value;
    out.mean /= n;
    double squares = 0;
    for (const double value : first) squares += (value - out.mean) * (value - out.mean);
    out.sd = std::sqrt(squares / (n - 1));
    const double reach = kStudentT * out.sd * std::sqrt(1 + 1 / n);
    out.from = out.mean - reach, out.to = out.mean + reach;
    return out;
}

Runs::Runs(std::string_view csv, const std::string& where) {
    std::size_t line = 0;
    for (std::string_view row : split(csv, '\n')) {
        ++line;
        if (row.empty() || row.starts_with('#')) continue;
        const auto cells = split(row, ',');
        try {
            if (cells.size() < 3 + kSeedsOfRuns)
                throw input_error(
                    "", fmt::format("expected a run, a recipe, a quantity and {} values", kSeedsOfRuns));
            if (cells[0] == "run") continue;
            std::vector<double> values;
            for (std::size_t i = 3; i < cells.size() && !cells[i].empty(); ++i)
                values.push_back(number_from(cells[i]));
            if (values.size() < kSeedsOfRuns)
                throw input_error("", fmt::format("has {} of {} values", values.size(), kSeedsOfRuns));
            const Key key{std::string(cells[0]), std::string(cells[1]), std::string(cells[2])};
            if (!rows_.emplace(key, std::move(values)).second)
                throw input_error("", fmt::format("{} {} {} is there twice", cells[0], cells[1], cells[2]));
        } catch (const Error& error) {
            throw input_error(where, fmt::format("line {}: {}", line, error.why()));
        }
    }
    if (rows_.empty()) throw input_error(where, "holds no run");
}

std::string Runs::number(std::string_view words, const std::string& where) const {
    const auto named = split(words, ' ');
    const auto bad = [&](std::string_view why) {
        return input_error(where, fmt::format("{{runs {}}}: {}", words, why));
    };
    if (named.size() != 4) throw bad("expected a run, a recipe, a quantity and what is told of it");
    const auto row = rows_.find(Key{std::string(named[0]), std::string(named[1]), std::string(named[2])});
    if (row == rows_.end()) throw bad("assets/runs.csv has no such row");
    const Spread spread = spread_of(row->second);
    const int decimals = decimals_of(spread.sd);
    const auto text = [&](double value) { return decimal(value, decimals); };
    if (named[3] == "mean") return text(spread.mean);
    if (named[3] == "sd") return text(spread.sd);
    if (named[3] == "low") return text(spread.low);
    if (named[3] == "high") return text(spread.high);
    if (named[3] == "from") return text(spread.from);
    if (named[3] == "to") return text(spread.to);
    if (named[3] == "range") return text(spread.low) + " to " + text(spread.high);
    if (named[3] == "interval") return text(spread.from) + " to " + text(spread.to);
    throw bad("valid: mean sd low high range from to interval");
}

std::string Runs::fill(std::string_view text, const std::string& where) const {
    std::string out;
    while (true) {
        const std::size_t at = text.find(kOpening);
        out += text.substr(0, at);
        if (at == text.npos) return out;
        text.remove_prefix(at + kOpening.size());
        const std::size_t end = text.find('}');
        if (end == text.npos) throw input_error(where, "a {runs is not closed");
        // A text that is wrapped may break a line between two words.
        std::string words(text.substr(0, end));
        std::ranges::replace(words, '\n', ' ');
        out += number(words, where);
        text.remove_prefix(end + 1);
    }
}

const Runs& shipped_runs() {
    static const Runs kRuns = [] {
        const auto file = asset("runs.csv");
        return Runs(read_text(file), file.string());
    }();
    return kRuns;
}

std::string with_runs(std::string_view text) {
    if (text.find(kOpening) == text.npos) return std::string(text);
    return shipped_runs().fill(text, "assets");
}

}  // namespace fp8lab
