#include "core/base/read_number.h"

#include <locale.h>  // NOLINT: newlocale() is POSIX's

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace fp8lab {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Moves past the word, in small or capital letters.
bool take_word(std::string_view& text, std::string_view word) {
    const bool same =
        text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(),
                                                 [](char a, char b) { return a == small_letter(b); });
    if (same) text.remove_prefix(word.size());
    return same;
}

// Moves past "nan(...)"'s brackets, which hold letters, digits and '_'.
void take_brackets(std::string_view& text) {
    if (!text.starts_with('(')) return;
    const auto end = std::find_if(text.begin() + 1, text.end(), [](char c) {
        const char s = small_letter(c);
        return !is_digit(c) && !(s >= 'a' && s <= 'z') && c != '_';
    });
    if (end != text.end() && *end == ')')
        text.remove_prefix(static_cast<std::size_t>(end - text.begin()) + 1);
}

struct Digits {
    bool some = false, nonzero = false;
};

void take_digits(std::string_view& text, Digits& seen) {
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
        seen.some = true;
        seen.nonzero = seen.nonzero || text.front() != '0';
    }
}

// Moves past digits, a point and an exponent.
Digits take_decimal(std::string_view& text) {
    Digits seen;
    take_digits(text, seen);
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        take_digits(text, seen);
    }
    if (!seen.some || text.empty() || small_letter(text.front()) != 'e') return seen;
    std::string_view exponent = text.substr(1);
    if (!exponent.empty() && (exponent.front() == '-' || exponent.front() == '+')) exponent.remove_prefix(1);
    Digits power;
    take_digits(exponent, power);
    if (power.some) text = exponent;
    return seen;
}

// strtof and strtod round to nearest; they want an end, and a text view has none. The process may have set a locale.
template <class T>
T nearest(std::string_view decimal) {
    static const locale_t c = newlocale(LC_ALL_MASK, "C", nullptr);
    std::array<char, 64> near{};
    std::string far;
    const char* begin = near.data();
    if (decimal.size() < near.size())
        std::memcpy(near.data(), decimal.data(), decimal.size());
    else
        begin = far.assign(decimal).c_str();
    if constexpr (sizeof(T) == sizeof(float))
        return strtof_l(begin, nullptr, c);
    else
        return strtod_l(begin, nullptr, c);
}

template <class T>
std::from_chars_result read(const std::string_view text, T& value) {
    std::string_view rest = text;
    const bool minus = rest.starts_with('-');
    if (minus) rest.remove_prefix(1);
    const T sign = minus ? T{-1} : T{1};
    if (take_word(rest, "inf")) {
        take_word(rest, "inity");
        value = sign * std::numeric_limits<T>::infinity();
        return {rest.data(), std::errc{}};
    }
    if (take_word(rest, "nan")) {
        take_brackets(rest);
        value = std::copysign(std::numeric_limits<T>::quiet_NaN(), sign);
        return {rest.data(), std::errc{}};
    }
    const Digits digits = take_decimal(rest);
    if (!digits.some) return {text.data(), std::errc::invalid_argument};
    const T read = nearest<T>(text.substr(0, text.size() - rest.size()));
    if (std::isinf(read) || (read == 0 && digits.nonzero))
        return {rest.data(), std::errc::result_out_of_range};
    value = read;
    return {rest.data(), std::errc{}};
}

}  // namespace

std::from_chars_result read_leading(std::string_view text, float& value) { return read(text, value); }
std::from_chars_result read_leading(std::string_view text, double& value) { return read(text, value); }

}  // namespace fp8lab
