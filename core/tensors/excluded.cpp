#include "core/tensors/excluded.h"

#include <fmt/format.h>

#include "core/base/names.h"

namespace fp8lab {

Narrowed& Narrowed::operator+=(const Narrowed& other) {
    beyond += other.beyond;
    below += other.below;
    return *this;
}

Excluded& Excluded::operator+=(const Excluded& other) {
    nan += other.nan;
    inf += other.inf;
    beyond += other.beyond;
    below += other.below;
    return *this;
}

std::string Excluded::words() const {
    std::string out;
    std::int64_t left = count();
    const auto add = [&](std::int64_t n, const char* what) {
        if (n == 0) return;
        left -= n;
        out += out.empty() ? "" : left == 0 ? " and " : ", ";
        out += with_commas(static_cast<std::size_t>(n)) + what;
    };
    add(nan, " NaN");
    add(inf, " Inf");
    add(beyond, " beyond float32");
    add(below, " below float32");
    return out;
}

std::string Excluded::note() const {
    return count() == 0 ? "" : fmt::format(", {} {} as 0", words(), count() == 1 ? "counts" : "count");
}

std::string Excluded::sentence(std::int64_t n) const {
    if (count() == 0) return {};
    return fmt::format("{} among {} {} as 0", words(),
                       n == 1 ? "1 value" : with_commas(static_cast<std::size_t>(n)) + " values",
                       count() == 1 ? "counts" : "count");
}

}  // namespace fp8lab
