#include "labs/ui/fit.h"

#include <vector>

#include "labs/ui/widgets.h"

namespace fp8lab::ui {
namespace {

// tail_share: of the letters that stay, how many are of the end.
std::string cut(const Context& context, std::string_view words, Font font, float width_px,
                double tail_share) {
    if (text_width(context, words, font) <= width_px) return std::string(words);
    std::vector<std::size_t> letters;  // where each begins; UTF-8
    for (std::size_t i = 0; i < words.size(); ++i)
        if ((static_cast<unsigned char>(words[i]) & 0xC0) != 0x80) letters.push_back(i);
    const auto keeping = [&](std::size_t count) {
        const auto tail = static_cast<std::size_t>(static_cast<double>(count) * tail_share);
        const std::string_view head = words.substr(0, letters[count - tail]),
                               end = tail == 0 ? "" : words.substr(letters[letters.size() - tail]);
        return std::string(head) + "\u2026" + std::string(end);
    };
    std::size_t fits = 0, too_many = letters.size();  // the most letters that fit, found by halves
    while (too_many - fits > 1) {
        const std::size_t count = (fits + too_many) / 2;
        (text_width(context, keeping(count), font) <= width_px ? fits : too_many) = count;
    }
    return keeping(fits);
}

}  // namespace

std::string cut_end(const Context& context, std::string_view words, Font font, float width_px) {
    return cut(context, words, font, width_px, 0);
}

std::string cut_middle(const Context& context, std::string_view words, Font font, float width_px) {
    return cut(context, words, font, width_px, 0.6);
}

}  // namespace fp8lab::ui
