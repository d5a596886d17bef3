#include "labs/ruler/model_marks.h"

#include <algorithm>
#include <cmath>

namespace fp8lab::ruler {

std::vector<double> positive_marks(const FormatInfo& format, double scale) {
    std::vector<double> out;
    for (const CodeValue& mark : positive_values(format))
        if (mark.value > 0) out.push_back(mark.value / scale);
    return out;
}

Half half_of(const std::vector<double>& marks) {
    const std::size_t middle = marks.size() / 2;
    return {static_cast<std::int64_t>(middle), static_cast<std::int64_t>(marks.size()), marks.at(middle)};
}

Interval interval(const std::vector<double>& marks, double lo, double hi) {
    const auto first = std::lower_bound(marks.begin(), marks.end(), lo);
    const auto last = std::lower_bound(first, marks.end(), std::max(lo, hi));
    Interval out{last - first, 0, 0};
    for (auto mark = first; mark != last && mark + 1 != marks.end(); ++mark) {
        const double gap = *(mark + 1) - *mark;
        out.min_gap = out.max_gap == 0 ? gap : std::min(out.min_gap, gap);
        out.max_gap = std::max(out.max_gap, gap);
    }
    return out;
}

std::int64_t missed_by_fixed_point(const FormatInfo& format) {
    const auto marks = positive_marks(format, 1.0);
    return std::count_if(marks.begin(), marks.end(), [&](double value) {
        const double steps = std::ldexp(value, format.mantissa_bits);
        return steps != std::floor(steps);
    });
}

}  // namespace fp8lab::ruler
