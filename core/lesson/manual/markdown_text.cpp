#include "core/lesson/manual/markdown_text.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace fp8lab {
namespace {

using TextLines = std::vector<std::string>;

// Columns: one per character, whatever bytes it has.
std::size_t columns_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TextLines wrapped(std::string_view words, std::size_t width) {
    TextLines out(1);
    std::size_t used = 0;
    while (!words.empty()) {
        const auto end = std::min(words.find_first_of(" \n"), words.size());
        const std::string_view word = words.substr(0, end);
        words.remove_prefix(std::min(end + 1, words.size()));
        if (word.empty()) continue;
        const std::size_t columns = columns_of(word);
        if (used > 0 && used + 1 + columns > width) {
            out.emplace_back();
            used = 0;
        }
        if (used > 0) out.back() += ' ';
        out.back() += word;
        used += columns + (used > 0 ? 1 : 0);
    }
    return out;
}

// The widths of the columns: what their cells need, and less of the widest where that is too much.
std::vector<std::size_t> column_widths(std::span<const TextLines> rows, std::size_t width) {
    std::vector<std::size_t> out;
    for (const TextLines& row : rows) {
        out.resize(std::max(out.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) out[i] = std::max(out[i], columns_of(row[i]));
    }
    constexpr std::size_t kNarrowest = 12, kBetween = 2;
    while (!out.empty() && std::accumulate(out.begin(), out.end(), kBetween * (out.size() - 1)) > width) {
        auto widest = std::ranges::max_element(out);
        if (*widest <= kNarrowest) break;
        --*widest;
    }
    return out;
}

class TextWriter {
  public:
    explicit TextWriter(const TextOptions& options) : options_(options) {}

    void block(const MarkdownBlock& block) {
        if (block.kind != BlockKind::row) end_table();
        if (block.kind == BlockKind::row) return row(block);
        gap(block.kind);
        switch (block.kind) {
            case BlockKind::code:
                return code(block);
            case BlockKind::rule:
                out_ += std::string(options_.width, '-') + "\n";
                return;
            case BlockKind::item: {
                const std::string mark = block.bullet.empty() ? "- " : block.bullet + ". ";
                return paragraph(block,
                                 std::string(2 * static_cast<std::size_t>(block.level - 1), ' ') + mark);
            }
            case BlockKind::heading:
                return paragraph(block, std::string(static_cast<std::size_t>(block.level), '#') + " ");
            default:
                return paragraph(block, "");
        }
    }
    std::string end() {
        end_table();
        return std::move(out_);
    }

  private:
    std::string cell(const MarkdownCell& runs) const {
        std::string out;
        for (const MarkdownRun& run : runs) {
            out += run.code ? "`" + run.text + "`" : run.text;
            const std::string behind =
                run.link.empty() || !options_.behind_link ? "" : options_.behind_link(run);
            if (!behind.empty()) out += " (" + behind + ")";
        }
        return out;
    }
    // An empty line between blocks, none between the items of a list.
    void gap(BlockKind kind) {
        if (!out_.empty() && !(kind == BlockKind::item && last_ == kind)) out_ += '\n';
        last_ = kind;
    }
    void paragraph(const MarkdownBlock& block, const std::string& mark) {
        std::string begin = mark;
        for (const std::string& line : wrapped(cell(block.cells.front()), options_.width - mark.size())) {
            out_ += begin + line + "\n";
            begin.assign(mark.size(), ' ');
        }
    }
    void code(const MarkdownBlock& block) {
        if (const std::string note = options_.above_code ? options_.above_code(block) : ""; !note.empty())
            out_ += note + "\n";
        std::string text = words_of(block.cells.front());
        while (text.ends_with('\n')) text.pop_back();
        for (std::size_t at = 0; at <= text.size();) {
            const auto end = std::min(text.find('\n', at), text.size());
            out_ += end > at ? "    " + text.substr(at, end - at) + "\n" : "\n";
            at = end + 1;
        }
    }
    void row(const MarkdownBlock& block) {
        if (block.header) end_table();
        TextLines cells;
        for (const MarkdownCell& one : block.cells) cells.push_back(cell(one));
        rows_.push_back(std::move(cells));
    }
    void end_table() {
        if (rows_.empty()) return;
        gap(BlockKind::row);
        const auto widths = column_widths(rows_, options_.width);
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            table_row(rows_[i], widths);
            if (i > 0) continue;
            TextLines rule;
            for (const std::size_t width : widths) rule.emplace_back(width, '-');
            table_row(rule, widths);
        }
        rows_.clear();
    }
    void table_row(const TextLines& cells, const std::vector<std::size_t>& widths) {
        std::vector<TextLines> columns;
        std::size_t height = 1;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            columns.push_back(wrapped(cells[i], widths[i]));
            height = std::max(height, columns.back().size());
        }
        for (std::size_t line = 0; line < height; ++line) {
            std::string out;
            for (std::size_t i = 0; i < columns.size(); ++i) {
                const std::string words = line < columns[i].size() ? columns[i][line] : "";
                out += words + std::string(widths[i] + 2 - std::min(widths[i], columns_of(words)), ' ');
            }
            out.erase(out.find_last_not_of(' ') + 1);
            out_ += out + "\n";
        }
    }

    const TextOptions& options_;
    std::string out_;
    BlockKind last_ = BlockKind::paragraph;
    std::vector<TextLines> rows_;  // of the table that is open, the head first
};

}  // namespace

std::string markdown_text(std::span<const MarkdownBlock> blocks, const TextOptions& options) {
    TextWriter writer(options);
    for (const MarkdownBlock& block : blocks) writer.block(block);
    return writer.end();
}

}  // namespace fp8lab
