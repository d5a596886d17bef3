#include "core/json/json_places.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/units.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;

// Walks the text as nlohmann's parser does and looks up after each value how far the reader has come.
class Walker : public nlohmann::json_sax<Json> {
  public:
    Walker(std::string_view text, const std::size_t& read, const std::string& where, JsonLimits limits)
        : text_(text), read_(read), where_(where), limits_(limits) {}

    JsonPlaces places;

    bool null() override { return value(); }
    bool boolean(bool) override { return value(); }
    bool number_integer(number_integer_t) override { return value(); }
    bool number_unsigned(number_unsigned_t) override { return value(); }
    bool number_float(number_float_t, const string_t&) override { return value(); }
    bool string(string_t&) override { return value(); }
    bool binary(binary_t&) override { return value(); }
    bool start_object(std::size_t) override { return open(false); }
    bool start_array(std::size_t) override { return open(true); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override {
        Level& level = levels_.back();
        if (!level.names.insert(name).second)
            throw input_error(where_,
                              fmt::format("{}: '{}' stands here twice", text_of(at()), quote_from(name)));
        level.step = "/";
        for (const char c : name) level.step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
        end_ = read_;
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
        // "[json.exception.parse_error.101] parse error at line 3, column 7: ..."
        const std::string words = error.what();
        const auto from = words.find("line ");
        throw input_error(where_, from == std::string::npos ? words : words.substr(from));
    }

  private:
    struct Level {
        bool array;
        std::string pointer;  // of the array or object
        std::size_t index = 0;
        std::string step = {};  // the member at hand: "/margin"
        std::set<std::string, std::less<>> names = {};
    };
    // Pointers are kept for every value: a long name before many values would fill the memory.
    static constexpr std::size_t kLongestPointer = 1024;
    // The first character of the value whose token was read just now.
    Place at() {
        while (end_ < text_.size() && std::string_view(" \t\r\n,:").find(text_[end_]) != std::string::npos)
            ++end_;
        for (; counted_ < end_; ++counted_) {
            const char c = text_[counted_];
            if (c == '\n')
                place_ = {place_.line + 1, 1};
            else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
                ++place_.column;  // code points
        }
        return place_;
    }
    static std::string text_of(Place place) {
        return fmt::format("line {}, column {}", place.line, place.column);
    }
    void note() {
        if (!levels_.empty() && levels_.back().array)
            levels_.back().step = "/" + std::to_string(levels_.back().index++);
        const Place here = at();
        if (++values_ > limits_.values)
            throw input_error(where_, fmt::format("{}: more than {} values", text_of(here), limits_.values));
        if (place_is_kept()) places[pointer()] = here;
    }
    bool place_is_kept() const {
        return levels_.empty() ||
               levels_.back().pointer.size() + levels_.back().step.size() <= kLongestPointer;
    }
    std::string pointer() const {
        return levels_.empty() ? "" : levels_.back().pointer + levels_.back().step;
    }
    bool value() {
        note();
        end_ = read_;
        return true;
    }
    bool open(bool array) {
        note();
        end_ = read_;
        if (static_cast<int>(levels_.size()) >= limits_.depth)
            throw input_error(where_,
                              fmt::format("{}: nested deeper than {}", text_of(place_), limits_.depth));
        // Below one that is not kept none is: any step makes this one too long.
        levels_.push_back({array, place_is_kept() ? pointer() : std::string(kLongestPointer, '/')});
        return true;
    }
    bool close() {
        levels_.pop_back();
        end_ = read_;
        return true;
    }

    std::string_view text_;
    const std::size_t& read_;
    const std::string& where_;
    JsonLimits limits_;
    std::size_t values_ = 0;
    std::size_t end_ = 0, counted_ = 0;  // end of the token before; how far place_ has counted
    Place place_;
    std::vector<Level> levels_;
};

// Characters, with a count that outlives the copies the parser makes.
struct Reader {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    const char* at = nullptr;
    std::size_t* count = nullptr;
    reference operator*() const { return *at; }
    Reader& operator++() {
        ++at;
        ++*count;
        return *this;
    }
    Reader operator++(int) {
        Reader before = *this;
        ++*this;
        return before;
    }
    bool operator==(const Reader& other) const { return at == other.at; }
    bool operator!=(const Reader& other) const { return at != other.at; }
};

}  // namespace

JsonPlaces json_places(std::string_view text, const std::string& where, JsonLimits limits) {
    if (text.size() > limits.bytes)
        throw input_error(where, fmt::format("is {}; such a file has at most {}", format_bytes(text.size()),
                                             format_bytes(limits.bytes)));
    std::size_t read = 0;
    Walker walker{text, read, where, limits};
    Json::sax_parse(Reader{text.data(), &read}, Reader{text.data() + text.size(), &read}, &walker);
    return std::move(walker.places);
}

std::string place_text(const JsonPlaces& places, std::string_view pointer) {
    for (;;) {
        if (const auto it = places.find(pointer); it != places.end())
            return fmt::format("line {}, column {}", it->second.line, it->second.column);
        const auto slash = pointer.rfind('/');
        if (slash == std::string_view::npos) return "line 1, column 1";
        pointer = pointer.substr(0, slash);
    }
}

}  // namespace fp8lab
