// JSON of assets/hooks/fp8lab_hook.py, line by line.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/read_number.h"
#include "core/run/log_lines.h"

namespace fp8lab {

namespace {

constexpr int kDeepest = 16;  // of members that are skipped

struct LineFault {
    const char* at;
    std::string why;
};

// Reads one line. Throws LineFault.
class LineReader {
  public:
    LineReader(std::string_view line, LogPiece& piece)
        : at_(line.data()), end_(line.data() + line.size()), piece_(piece) {}

    const char* at() const { return at_; }
    [[noreturn]] void fail(const char* at, std::string why) const { throw LineFault{at, std::move(why)}; }

    void space() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }
    bool take(char c) {
        space();
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (take(c)) return;
        if (at_ == end_) fail(at_, std::string("the line ends where '") + c + "' is expected");
        fail(at_, std::string("expected '") + c + "'");
    }
    void end() {
        space();
        if (at_ != end_) fail(at_, "more text behind the record");
    }

    std::string_view string() {
        expect('"');
        const char* const begin = at_;
        while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
        if (at_ != end_ && *at_ == '"') return {begin, static_cast<std::size_t>(at_++ - begin)};
        std::string& text = piece_.names.emplace_back(begin, at_);
        while (at_ != end_ && *at_ != '"') text += *at_ == '\\' ? escape() : std::string(1, *at_++);
        if (at_ == end_) fail(at_, "the line ends inside a text");
        ++at_;
        return text;
    }

    // NaN and Infinity as Python writes them; null is NaN.
    double number() {
        space();
        if (at_ == end_) fail(at_, "the line ends where a number is expected");
        if (word("NaN") || word("null")) return std::numeric_limits<double>::quiet_NaN();
        if (word("Infinity")) return std::numeric_limits<double>::infinity();
        if (word("-Infinity")) return -std::numeric_limits<double>::infinity();
        double value = 0;
        const auto parsed = read_leading({at_, end_}, value);
        if (parsed.ec == std::errc::result_out_of_range) fail(at_, "the number does not fit");
        const char* const digit = at_ + (*at_ == '-' ? 1 : 0);
        if (parsed.ec != std::errc{} || *digit < '0' || *digit > '9') fail(at_, "expected a number");
        at_ = parsed.ptr;
        return value;
    }

    // A magnitude of the range of float32; below its smallest it is 0.
    float magnitude() {
        const char* const begin = at_;
        const double value = number();
        if (value < 0) fail(begin, "a magnitude below 0");
        if (std::isfinite(value) && value > static_cast<double>(std::numeric_limits<float>::max()))
            fail(begin, "a magnitude beyond float32");
        return static_cast<float>(value);
    }

    template <class Int>
    Int integer(Int low, Int high) {
        space();
        if (std::is_unsigned_v<Int> && at_ != end_ && *at_ == '-')
            fail(at_, "the number is not in " + std::to_string(low) + ".." + std::to_string(high));
        Int value = 0;
        const auto parsed = read_leading({at_, end_}, value);
        const bool ends =
            parsed.ptr == end_ || (*parsed.ptr != '.' && *parsed.ptr != 'e' && *parsed.ptr != 'E');
        if (parsed.ec == std::errc::result_out_of_range ||
            (parsed.ec == std::errc{} && (value < low || value > high)))
            fail(at_, "the number is not in " + std::to_string(low) + ".." + std::to_string(high));
        if (parsed.ec != std::errc{} || !ends) fail(at_, "expected a whole number");
        at_ = parsed.ptr;
        return value;
    }
    bool null() {
        space();
        return word("null");
    }

    void skip(int depth = 0) {
        space();
        if (at_ == end_) fail(at_, "the line ends where a value is expected");
        if (depth > kDeepest) fail(at_, "members within members, more than 16 deep");
        if (*at_ == '"') {
            string();
        } else if (*at_ == '{') {
            ++at_;
            if (take('}')) return;
            do {
                string();
                expect(':');
                skip(depth + 1);
            } while (take(','));
            expect('}');
        } else if (*at_ == '[') {
            ++at_;
            if (take(']')) return;
            do skip(depth + 1);
            while (take(','));
            expect(']');
        } else if (!word("true") && !word("false")) {
            number();
        }
    }

  private:
    bool word(std::string_view text) {
        if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(text)) return false;
        at_ += text.size();
        return true;
    }

    // Behind a backslash. Of \u escapes surrogates stay what they are, since a name is only compared and shown.
    std::string escape() {
        const char* const begin = at_++;
        if (at_ == end_) fail(begin, "the line ends inside a text");
        const char c = *at_++;
        constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
        if (const auto i = kFrom.find(c); i != kFrom.npos) return std::string(1, kTo[i]);
        unsigned code = 0;
        if (c != 'u' || end_ - at_ < 4 || std::from_chars(at_, at_ + 4, code, 16).ptr != at_ + 4)
            fail(begin, "not an escape of JSON");
        at_ += 4;
        if (code < 0x80) return std::string(1, static_cast<char>(code));
        const auto part = [](unsigned bits) { return static_cast<char>(0x80U | (bits & 0x3FU)); };
        if (code < 0x800) return {static_cast<char>(0xC0U | code >> 6), part(code)};
        return {static_cast<char>(0xE0U | code >> 12), part(code >> 6), part(code)};
    }

    const char* at_;
    const char* end_;
    LogPiece& piece_;
};

struct HookLine {
    std::optional<std::int32_t> step;
    std::string_view tensor, statistic;
    bool has_loss = false, has_head = false, has_value = false, has_counts = false, has_n = false,
         has_top = false;
    double loss = 0, value = 0;
    LogHead head;
    TensorPoint point;
    BinadeCounters counters;
};

constexpr std::uint64_t kMost = std::uint64_t{1} << 56;  // elements: sums of 64 counters fit

void read_bins(LineReader& in, BinadeCounters& counters) {
    counters.bins.clear();
    in.expect('[');
    if (in.take(']')) return;
    do {
        if (counters.bins.size() == BinadeCounters::kBinades) in.fail(in.at(), "more than 64 bins");
        counters.bins.push_back(in.integer<std::uint64_t>(0, kMost));
    } while (in.take(','));
    in.expect(']');
}

void read_member(LineReader& in, std::string_view key, HookLine& line) {
    BinadeCounters& counters = line.counters;
    const auto count = [&](std::uint64_t& into) {
        into = in.integer<std::uint64_t>(0, kMost);
        line.has_counts = true;
    };
    if (key == "step")
        line.step = in.integer<std::int32_t>(0, std::numeric_limits<std::int32_t>::max());
    else if (key == "tensor")
        line.tensor = in.string();
    else if (key == "amax") {
        line.point.amax = in.magnitude();
        line.point.nonfinite = !std::isfinite(line.point.amax);
    } else if (key == "amin")
        line.point.amin = in.magnitude();
    else if (key == "n") {
        count(counters.n);
        line.has_n = true;
    } else if (key == "nan")
        count(counters.nan);
    else if (key == "inf")
        count(counters.inf);
    else if (key == "zero")
        count(counters.zero);
    else if (key == "top") {
        line.has_top = !in.null();
        if (line.has_top) counters.top = in.integer<int>(-149, 127);
    } else if (key == "bins") {
        read_bins(in, counters);
        line.has_counts = true;
    } else if (key == "loss") {
        line.loss = in.number();
        line.has_loss = true;
    } else if (key == "name")
        line.statistic = in.string();
    else if (key == "value") {
        line.value = in.number();
        line.has_value = true;
    } else if (key == "fp8lab") {
        if (in.integer<int>(0, 1000000) != 1) in.fail(in.at(), "a log of a later version of the hook");
        line.has_head = true;
    } else if (key == "recipe") {
        line.head.recipe = in.string();
    } else if (key == "kinds")
        line.head.kinds = in.string();
    else if (key == "every")
        line.head.every = in.integer<int>(1, std::numeric_limits<int>::max());
    else
        in.skip();
}

// Magnitudes and counters are of the same elements.
void check_magnitudes(const HookLine& line, const char* begin) {
    const TensorPoint& point = line.point;
    if (line.counters.nonzero() == 0 || !std::isfinite(point.amax)) return;
    if (point.amax == 0) throw LineFault{begin, "amax is 0, and bins have elements"};
    if (const int binade = std::ilogb(point.amax); binade != line.counters.top)
        throw LineFault{begin, "amax is in binade " + std::to_string(binade) + ", top is " +
                                   std::to_string(line.counters.top)};
}

void add_tensor(const HookLine& line, const char* begin, LogPiece& piece) {
    LogRow row{.name = line.tensor, .point = line.point, .packed_begin = piece.packed.size()};
    if (line.point.amin > line.point.amax) throw LineFault{begin, "amin is above amax"};
    if (line.has_counts) {
        BinadeCounters counters = line.counters;
        const std::uint64_t sum = counters.nonzero() + counters.nan + counters.inf + counters.zero;
        if (counters.nonzero() > 0 && !line.has_top) throw LineFault{begin, "bins without top"};
        if (!line.has_n) counters.n = sum;
        if (counters.n != sum)
            throw LineFault{begin, "bins, nan, inf and zero add up to " + std::to_string(sum) + ", n is " +
                                       std::to_string(counters.n)};
        check_magnitudes(line, begin);
        row.point.nonfinite = row.point.nonfinite || counters.nan + counters.inf > 0;
        counters.pack(piece.packed);
    }
    row.packed_end = piece.packed.size();
    piece.rows.push_back(row);
}

void read_line(std::string_view text, HookLine& line, LogPiece& piece) {
    LineReader in(text, piece);
    in.expect('{');
    if (!in.take('}')) {
        do {
            const std::string_view key = in.string();
            in.expect(':');
            read_member(in, key, line);
        } while (in.take(','));
        in.expect('}');
    }
    in.end();
    if (line.has_head) {
        piece.head = line.head;
        return;
    }
    if (!line.step) in.fail(text.data(), "a record without a step");
    line.point.step = *line.step;
    if (!line.tensor.empty()) return add_tensor(line, text.data(), piece);
    if (line.has_loss) return piece.rows.push_back({.name = {}, .point = line.point, .loss = line.loss});
    std::string name;
    if (line.statistic.empty() || !line.has_value)
        in.fail(text.data(), "a record without a tensor, a loss or a value");
    std::string why;
    if (read_statistic(line.statistic, line.value, name, line.point, why))
        piece.rows.push_back({.name = piece.names.emplace_back(std::move(name)), .point = line.point});
    else if (why.empty())
        ++piece.skipped;
    else
        in.fail(text.data(), why);
}

}  // namespace

LogPiece parse_hook_lines(std::string_view text) {
    LogPiece piece;
    HookLine line;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view one = text.substr(begin, end - begin);
        if (one.find_first_not_of(" \t\r") != one.npos) try {
                std::vector<std::uint64_t> bins = std::move(line.counters.bins);  // its memory is kept
                line = {};
                bins.clear();
                line.counters.bins = std::move(bins);
                read_line(one, line, piece);
            } catch (const LineFault& fault) {
                piece.fault = {piece.lines, static_cast<std::size_t>(fault.at - text.data()), fault.why};
                return piece;
            }
        ++piece.lines;
        begin = end + 1;
    }
    return piece;
}

}  // namespace fp8lab
