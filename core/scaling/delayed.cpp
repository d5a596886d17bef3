#include "core/scaling/delayed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/read_number.h"

namespace fp8lab {

namespace {

// As torch.max: a NaN anywhere is the result. Amaxes have no sign, so that they and NaN are in the order of their bits, and
// integers are compared several at a time.
float largest(const std::vector<float>& history) {
    std::int32_t bits = 0;
    for (const float value : history) bits = std::max(bits, std::bit_cast<std::int32_t>(value) & 0x7FFFFFFF);
    return std::bit_cast<float>(bits);
}

}  // namespace

DelayedScale::DelayedScale(int history, AmaxAlgo algo, int margin, int interval, float fp8_max, bool pow2,
                           float ema_decay, ZeroAmax zero_amax)
    : fp8_max_(fp8_max),
      algo_(algo),
      margin_(margin),
      interval_(interval),
      pow2_(pow2),
      ema_decay_(ema_decay),
      zero_amax_(zero_amax) {
    set_history(history);
}

void DelayedScale::update(float amax) {
    history_[0] = amax;
    const float reduced = algo_ == AmaxAlgo::max   ? largest(history_)
                          : algo_ == AmaxAlgo::ema ? ema_of(history_.data(), history_.size(), ema_decay_)
                                                   : amax;
    std::rotate(history_.begin(), history_.begin() + 1, history_.end());
    history_[0] = 0;
    if (++scale_age_ < interval_) return;
    scale_age_ = 0;
    scale_ = scale_from_amax(reduced, fp8_max_, margin_, scale_, pow2_, zero_amax_ == ZeroAmax::inf);
}

void DelayedScale::set_history(int length) {
    if (length < 1) throw usage_error("history", std::to_string(length) + " is below 1");
    // Slot 0 is the staging slot, slot 1 the oldest amax, the last slot the newest.
    const auto size = static_cast<std::size_t>(length);
    std::vector<float> resized(size, 0.0F);
    const std::size_t kept = std::min(size, history_.size()) - 1;
    std::copy(history_.end() - static_cast<std::ptrdiff_t>(kept), history_.end(),
              resized.end() - static_cast<std::ptrdiff_t>(kept));
    history_ = std::move(resized);
}

std::vector<SimulateStep> simulate(const std::vector<float>& amax, const SimulateSpec& spec) {
    const FormatInfo& format = spec.format ? *spec.format : find_format("e4m3");
    const OverflowThreshold threshold = overflow_threshold(format);
    DelayedScale state(spec.history, spec.algo, spec.margin, spec.interval,
                       static_cast<float>(max_finite(format)));
    std::vector<SimulateStep> steps;
    steps.reserve(amax.size());
    for (const float value : amax) {
        SimulateStep row{};
        row.step = static_cast<int>(steps.size());
        row.amax = value;
        row.scale_used = state.scale();
        row.amax_scaled = value * row.scale_used;
        row.saturates = threshold.is_passed_by(static_cast<double>(row.amax_scaled));
        state.update(value);
        row.history = state.history();
        row.scale_next = state.scale();
        steps.push_back(std::move(row));
    }
    return steps;
}

namespace {

// One amax: a decimal, "inf" or "nan". Returns false for anything else, for negatives and for finite decimals
// that float32 cannot hold.
bool parse_value(std::string_view text, float& value) {
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    auto parsed = read_leading(text, value);
    if (parsed.ec == std::errc::result_out_of_range) {
        double wide = 0;
        parsed = read_leading(text, wide);
        if (parsed.ec != std::errc{} || std::fabs(wide) > 1) return false;
        value = static_cast<float>(wide);  // below float32's smallest: 0
    }
    return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() &&
           (!std::signbit(value) || value == 0);
}

}  // namespace

std::vector<float> parse_amax(std::string_view text, const std::string& where) {
    constexpr std::string_view kSpace = " \t\r";
    std::vector<float> values;
    for (std::size_t line_number = 1; !text.empty(); ++line_number) {
        const auto newline = text.find('\n');
        std::string_view line = text.substr(0, newline);
        text.remove_prefix(newline == text.npos ? text.size() : newline + 1);
        const auto first = line.find_first_not_of(kSpace);
        if (first == line.npos || line[first] == '#') continue;
        line = line.substr(first, line.find_last_not_of(kSpace) - first + 1);
        float value = 0;
        if (!parse_value(line, value))
            throw input_error(where, "line " + std::to_string(line_number) + ": '" +
                                         std::string(line.substr(0, 40)) +
                                         "' is not an amax; expected a float32 number >= 0, inf or nan");
        values.push_back(std::fabs(value));
    }
    return values;
}

}  // namespace fp8lab
