// What holds for every log that was read.
#pragma once

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/run/findings.h"
#include "core/run/read_run.h"

namespace fp8lab {

inline void check_series(const TensorSeries& series) {
    const auto points = series.points();
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (points[i].step < 0 || (i > 0 && points[i - 1].step >= points[i].step)) std::abort();
        if (series.at(points[i].step) != &points[i]) std::abort();
        const auto counters = series.counters(points[i]);
        if (!counters) continue;
        if (counters->bins.size() > BinadeCounters::kBinades) std::abort();
        if (counters->nonzero() + counters->nan + counters->inf + counters->zero != counters->n) std::abort();
    }
    for (const char* recipe : {"delayed:history=4", "current", "mxfp8"})
        for (const ReplayStep& step : replay_tensor(series, parse_recipe(recipe)).steps)
            if (!(step.lost.low >= 0 && step.lost.low <= step.lost.high && step.lost.high <= 100))
                std::abort();
}

// The text is refused with an input error, or is a log whose parts fit together.
inline void check_run_log(std::string_view text) {
    try {
        const RunLog log = read_run_text(std::string(text), "fuzz");
        std::set<std::string> names;
        for (const TensorSeries& series : log.tensors) {
            if (!names.insert(series.name()).second || series.points().empty()) std::abort();
            check_series(series);
        }
        for (std::size_t i = 1; i < log.losses.size(); ++i)
            if (log.losses[i - 1].step >= log.losses[i].step) std::abort();
        const Recipe recipe = default_recipe(log);
        for (const RunFinding& finding : findings(log, recipe))
            if (log.tensors.at(finding.tensor).name() != finding.name || finding.cause.empty()) std::abort();
        if (!log.tensors.empty()) histories(log.tensors.front(), recipe);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) std::abort();
    }
}

}  // namespace fp8lab
