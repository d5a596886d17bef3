#include "core/run/run_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fp8lab {

namespace {

void pack_number(std::uint64_t value, std::vector<std::uint8_t>& into) {
    for (; value >= 0x80; value >>= 7) into.push_back(static_cast<std::uint8_t>(value | 0x80));
    into.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t unpack_number(const std::uint8_t*& at) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const std::uint8_t byte = *at++;
        value |= std::uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) return value;
    }
}

constexpr int kTopBias = 2048;  // binades of doubles are from -1074 to 1023

// What `later` has logged goes over what `point` has. Whether a value was there twice.
bool replace_logged(TensorPoint& point, const TensorPoint& later) {
    bool twice = false;
    const auto over = [&](float& old, float now) {
        if (std::isnan(now)) return;
        twice = twice || !std::isnan(old);
        old = now;
    };
    if (later.source != 0) point.source = later.source;
    over(point.amax, later.amax);
    over(point.amin, later.amin);
    over(point.scale, later.scale);
    over(point.underflow_pct, later.underflow_pct);
    over(point.overflow_pct, later.overflow_pct);
    if (later.counters != TensorPoint::kNone) {
        twice = twice || point.counters != TensorPoint::kNone;
        point.counters = later.counters;
    }
    // A line that says the amax says whether all is finite.
    point.nonfinite = later.nonfinite || (point.nonfinite && std::isnan(later.amax));
    return twice;
}

bool is_digits(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::uint64_t BinadeCounters::nonzero() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : bins) sum += count;
    return sum;
}

void BinadeCounters::pack(std::vector<std::uint8_t>& into) const {
    std::size_t used = std::min(bins.size(), kBinades);
    while (used > 0 && bins[used - 1] == 0) --used;
    for (const std::uint64_t number : {n, nan, inf, zero}) pack_number(number, into);
    pack_number(static_cast<std::uint64_t>(std::clamp(top + kTopBias, 0, 2 * kTopBias)), into);
    pack_number(used, into);
    for (std::size_t k = 0; k < used; ++k) pack_number(bins[k], into);
}

TensorSeries::TensorSeries(std::string name) : name_(std::move(name)), class_(tensor_class_of(name_)) {}

std::optional<BinadeCounters> TensorSeries::counters(const TensorPoint& point) const {
    std::optional<BinadeCounters> out(std::in_place);
    if (!counters(point, *out)) out.reset();
    return out;
}

bool TensorSeries::counters(const TensorPoint& point, BinadeCounters& into) const {
    if (point.counters == TensorPoint::kNone) return false;
    const std::uint8_t* at = packed_.data() + point.counters;
    into.n = unpack_number(at);
    into.nan = unpack_number(at);
    into.inf = unpack_number(at);
    into.zero = unpack_number(at);
    into.top = static_cast<int>(unpack_number(at)) - kTopBias;
    into.bins.resize(unpack_number(at));
    for (std::uint64_t& count : into.bins) count = unpack_number(at);
    return true;
}

const TensorPoint* TensorSeries::at(std::int32_t step) const {
    const auto after = std::ranges::upper_bound(points_, step, {}, &TensorPoint::step);
    return after == points_.begin() ? nullptr : &*std::prev(after);
}

void TensorSeries::add(const TensorPoint& point, std::span<const std::uint8_t> packed) {
    TensorPoint added = point;
    added.counters = TensorPoint::kNone;
    if (!packed.empty()) {
        added.counters = static_cast<std::uint32_t>(packed_.size());
        packed_.insert(packed_.end(), packed.begin(), packed.end());
    }
    has_scales_ = has_scales_ || !std::isnan(added.scale);
    if (!points_.empty() && points_.back().step == added.step) {
        join(points_.back(), added);
        return;
    }
    if (!points_.empty() && points_.back().step > added.step) {
        ++unsorted_;
        settled_ = false;
    }
    points_.push_back(added);
}

void TensorSeries::join(TensorPoint& point, const TensorPoint& later) {
    const std::uint16_t source = point.source;
    const bool twice = replace_logged(point, later);
    twice_ += twice ? 1 : 0;
    if (twice && source != 0 && later.source != 0 && source != later.source && !same_record_)
        same_record_ = {point.step, source, later.source};
}

void TensorSeries::settle() {
    if (std::exchange(settled_, true)) return;
    std::ranges::stable_sort(points_, {}, &TensorPoint::step);
    std::size_t kept = 0;
    for (std::size_t i = 1; i < points_.size(); ++i) {
        if (points_[kept].step == points_[i].step)
            join(points_[kept], points_[i]);
        else
            points_[++kept] = points_[i];
    }
    points_.resize(kept + 1);
}

TensorClass tensor_class_of(std::string_view name) {
    while (!name.empty() && is_digits(name.substr(name.size() - 1))) name.remove_suffix(1);
    const bool is_part = name.size() < 2 || name[name.size() - 2] == '.';
    if (name.ends_with("dy") || (is_part && name.ends_with('d'))) return TensorClass::dy;
    return is_part && name.ends_with('w') ? TensorClass::w : TensorClass::x;
}

std::int32_t RunLog::first_step() const {
    std::optional<std::int32_t> first;
    if (!losses.empty()) first = losses.front().step;
    for (const TensorSeries& series : tensors)
        if (const auto points = series.points(); !points.empty())
            first = std::min(first.value_or(points.front().step), points.front().step);
    return first.value_or(0);
}

std::int32_t RunLog::last_step() const {
    std::int32_t last = losses.empty() ? 0 : losses.back().step;
    for (const TensorSeries& series : tensors)
        if (const auto points = series.points(); !points.empty()) last = std::max(last, points.back().step);
    return last;
}

std::uint64_t RunLog::points() const {
    std::uint64_t sum = 0;
    for (const TensorSeries& series : tensors) sum += series.points().size();
    return sum;
}

const TensorSeries* RunLog::find(std::string_view tensor) const {
    const auto at = std::ranges::find(tensors, tensor, &TensorSeries::name);
    return at == tensors.end() ? nullptr : &*at;
}

}  // namespace fp8lab
