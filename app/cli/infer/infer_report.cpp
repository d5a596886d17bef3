#include "app/cli/infer/infer_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "core/base/units.h"
#include "core/files/console.h"

namespace fp8lab::cli {
namespace {

std::vector<std::string_view> names_of(const std::vector<const LowFormat*>& formats) {
    std::vector<std::string_view> out;
    for (const LowFormat* format : formats) out.push_back(format->id);
    return out;
}

nlohmann::json point_json(const AllMixes& all, std::size_t i) {
    return {{"bits", all.points[i].bits},
            {"divergence", finite_or_null(all.points[i].divergence)},
            {"weights", names_of(all.mix(i).weights)}};
}

std::string cell_words(const nlohmann::json& value, const char* exact = "-") {
    return value.is_null() ? exact : format_number(value.get<double>());
}

}  // namespace

nlohmann::json finite_or_null(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json mixes_json(const AllMixes& all, double bits, double divergence) {
    const Neighbours near = neighbours_of(all.points, bits, divergence);
    nlohmann::json out = {{"count", all.points.size()}, {"mixes_within", near.count}};
    if (near.count > 0) {
        out["best_within"] = point_json(all, near.best);
        out["worst_within"] = point_json(all, near.worst);
        out["median_within"] = finite_or_null(near.median);
        out["rank"] = near.rank;
    }
    out["activations"] = all.activations;
    for (const std::size_t i : frontier_of(all.points)) out["frontier"].push_back(point_json(all, i));
    return out;
}

nlohmann::json greedy_json(const std::vector<GreedyStep>& path) {
    nlohmann::json out = nlohmann::json::array();
    for (const GreedyStep& step : path)
        out.push_back({{"bits", step.point.bits},
                       {"divergence", finite_or_null(step.point.divergence)},
                       {"weights", names_of(step.mix.weights)}});
    return out;
}

std::string infer_csv(const nlohmann::json& out, const std::optional<AllMixes>& all) {
    std::string text;
    if (all) {
        text = "bits,divergence";
        for (std::size_t l = 1; l <= all->layers; ++l) text += fmt::format(",weights_{}", l);
        text += '\n';
        for (std::size_t i = 0; i < all->points.size(); ++i)
            text +=
                fmt::format("{},{},{}\n", shortest(all->points[i].bits), shortest(all->points[i].divergence),
                            fmt::join(names_of(all->mix(i).weights), ","));
        return text;
    }
    if (out.contains("greedy")) {
        text = "bits,divergence";
        for (std::size_t l = 1; l <= out.at("layers").size(); ++l) text += fmt::format(",weights_{}", l);
        text += '\n';
        for (const nlohmann::json& step : out.at("greedy"))
            text += fmt::format(
                "{},{},{}\n", shortest(step.at("bits").get<double>()),
                step.at("divergence").is_null() ? "" : shortest(step.at("divergence").get<double>()),
                fmt::join(step.at("weights").get<std::vector<std::string>>(), ","));
        return text;
    }
    const auto cell = [](const nlohmann::json& value) {
        if (value.is_null()) return std::string();
        if (value.is_string()) return value.get<std::string>();
        return shortest(value.get<double>());
    };
    constexpr std::array kColumns = {
        "layer",     "name",        "outputs",         "inputs",          "share_pct",
        "weights",   "activations", "sensitivity",     "underflow_pct_w", "underflow_pct_a",
        "sqnr_db_w", "sqnr_db_a",   "saturated_pct_a", "rel_l2_w"};
    text = fmt::format("{}\n", fmt::join(kColumns, ","));
    for (const nlohmann::json& layer : out.at("layers")) {
        std::vector<std::string> cells;
        for (const char* column : kColumns) cells.push_back(cell(layer.at(column)));
        text += fmt::format("{}\n", fmt::join(cells, ","));
    }
    return text;
}

std::string infer_table(const nlohmann::json& out) {
    std::string text = fmt::format("{}, {}\n", out.at("network").get<std::string>(),
                                   printable(out.at("data").get<std::string>()));
    for (const char* name : {"bits", "kb", "divergence", "accuracy_pct", "accuracy_fp32_pct", "changed",
                             "mean_abs", "max_abs", "relative_pct"})
        text += fmt::format("{:<20} {:>11}\n", name, cell_words(out.at(name)));
    text += fmt::format("{:<9} {:>9} {:>7}  {:<11} {:<11} {:>11} {:>7} {:>7} {:>8} {:>8} {:>7}\n", "layer",
                        "shape", "share %", "weights", "activations", "alone", "under w", "under a", "dB w",
                        "dB a", "L2 w %");
    for (const nlohmann::json& l : out.at("layers")) {
        const double rel = l.at("rel_l2_w").is_null() ? std::nan("") : 100 * l.at("rel_l2_w").get<double>();
        text += fmt::format("{:<9} {:>9} {:>7}  {:<11} {:<11} {:>11} {:>7} {:>7} {:>8} {:>8} {:>7}\n",
                            l.at("name").get<std::string>(),
                            fmt::format("{}x{}", l.at("outputs").get<int>(), l.at("inputs").get<int>()),
                            cell_words(l.at("share_pct")), l.at("weights").get<std::string>(),
                            l.at("activations").get<std::string>(), cell_words(l.at("sensitivity")),
                            cell_words(l.at("underflow_pct_w")), cell_words(l.at("underflow_pct_a")),
                            cell_words(l.at("sqnr_db_w"), "exact"), cell_words(l.at("sqnr_db_a"), "exact"),
                            format_number(rel));
    }
    if (out.contains("cascade"))
        for (const auto& [name, value] : out.at("cascade").items())
            if (value.is_number()) text += fmt::format("cascade {:<17} {:>11}\n", name, cell_words(value));
    const auto add_mixes = [&](const nlohmann::json& points) {
        for (const nlohmann::json& p : points)
            text +=
                fmt::format("{:>9} {:>11}  {}\n", cell_words(p.at("bits")), cell_words(p.at("divergence")),
                            fmt::join(p.at("weights").get<std::vector<std::string>>(), ","));
    };
    if (out.contains("mixes")) {
        text += fmt::format("best for its bits, of {} mixes:\n", out.at("mixes").at("count").get<int>());
        add_mixes(out.at("mixes").at("frontier"));
    }
    if (out.contains("greedy")) {
        text += "one layer after the other in fewer bits, the cheapest step first:\n";
        add_mixes(out.at("greedy"));
    }
    return text;
}

}  // namespace fp8lab::cli
