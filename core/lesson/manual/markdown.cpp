#include "core/lesson/manual/markdown.h"

#include <md4c.h>

#include <utility>

namespace fp8lab {
namespace {

// md4c calls back for the start and end of blocks and spans, and for text. What is collected is a flat list
// of blocks.
class Collector {
  public:
    std::vector<MarkdownBlock> blocks;

    void enter(MD_BLOCKTYPE type, void* detail) {
        switch (type) {
            case MD_BLOCK_H:
                begin({BlockKind::heading, static_cast<int>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level)});
                break;
            case MD_BLOCK_P:
                if (!in_item()) begin({BlockKind::paragraph});
                break;
            case MD_BLOCK_UL:
                lists_.push_back(0);
                break;
            case MD_BLOCK_OL:
                lists_.push_back(static_cast<int>(static_cast<MD_BLOCK_OL_DETAIL*>(detail)->start));
                break;
            case MD_BLOCK_LI:
                begin_item();
                break;
            case MD_BLOCK_CODE:
                begin({BlockKind::code});
                blocks.back().info = words(static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->info);
                break;
            case MD_BLOCK_HR:
                blocks.push_back({BlockKind::rule});
                break;
            case MD_BLOCK_TR:
                blocks.push_back({BlockKind::row});
                break;
            case MD_BLOCK_TH:
                blocks.back().header = true;
                blocks.back().cells.emplace_back();
                break;
            case MD_BLOCK_TD:
                blocks.back().cells.emplace_back();
                break;
            default:
                break;
        }
    }
    void leave(MD_BLOCKTYPE type) {
        if (type == MD_BLOCK_UL || type == MD_BLOCK_OL) lists_.pop_back();
        if (type == MD_BLOCK_LI) items_ -= 1;
    }
    void enter(MD_SPANTYPE type, void* detail) {
        if (type == MD_SPAN_A) link_ = words(static_cast<MD_SPAN_A_DETAIL*>(detail)->href);
        if (type == MD_SPAN_IMG && !blocks.empty() && blocks.back().kind == BlockKind::paragraph &&
            blocks.back().cells.front().empty()) {
            blocks.back().kind = BlockKind::picture;
            blocks.back().picture = words(static_cast<MD_SPAN_IMG_DETAIL*>(detail)->src);
        }
        span(type, 1);
    }
    void leave(MD_SPANTYPE type) {
        if (type == MD_SPAN_A) link_.clear();
        span(type, -1);
    }
    void span(MD_SPANTYPE type, int change) {
        if (type == MD_SPAN_STRONG || type == MD_SPAN_EM) bold_ += change;
        if (type == MD_SPAN_CODE) code_ += change;
    }
    void text(MD_TEXTTYPE type, std::string_view more_words) {
        if (blocks.empty() || blocks.back().cells.empty()) return;
        const bool line_end = type == MD_TEXT_SOFTBR || type == MD_TEXT_BR;
        const bool keep_lines = blocks.back().kind == BlockKind::code;
        MarkdownCell& cell = blocks.back().cells.back();
        std::string more = line_end && !keep_lines ? " " : std::string(more_words);
        if (!link_.empty() && !cell.empty() && cell.back().link == link_)
            cell.back().text += more;  // the words of a link stay one run
        else
            cell.push_back({std::move(more), bold_ > 0, code_ > 0, link_});
    }

  private:
    static std::string words(const MD_ATTRIBUTE& attribute) { return {attribute.text, attribute.size}; }
    bool in_item() const { return items_ > 0 && !blocks.empty() && blocks.back().kind == BlockKind::item; }
    void begin(MarkdownBlock block) {
        block.cells.emplace_back();
        blocks.push_back(std::move(block));
    }
    void begin_item() {
        items_ += 1;
        int& number = lists_.back();
        begin({BlockKind::item, static_cast<int>(lists_.size()),
               number > 0 ? std::to_string(number) : std::string{}});
        if (number > 0) number += 1;
    }

    std::vector<int> lists_;  // the next number of each open list; 0: bullets
    int items_ = 0, bold_ = 0, code_ = 0;
    std::string link_;
};

}  // namespace

std::vector<MarkdownBlock> parse_markdown(std::string_view text) {
    Collector collector;
    MD_PARSER parser = {};
    parser.flags = MD_FLAG_TABLES | MD_FLAG_NOHTML;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* user) {
        static_cast<Collector*>(user)->enter(type, detail);
        return 0;
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* user) {
        static_cast<Collector*>(user)->leave(type);
        return 0;
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* user) {
        static_cast<Collector*>(user)->enter(type, detail);
        return 0;
    };
    parser.leave_span = [](MD_SPANTYPE type, void*, void* user) {
        static_cast<Collector*>(user)->leave(type);
        return 0;
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* words, MD_SIZE size, void* user) {
        static_cast<Collector*>(user)->text(type, {words, size});
        return 0;
    };
    md_parse(text.data(), static_cast<MD_SIZE>(text.size()), &parser, &collector);
    return std::move(collector.blocks);
}

std::string words_of(const MarkdownCell& cell) {
    std::string out;
    for (const MarkdownRun& run : cell) out += run.text;
    return out;
}

}  // namespace fp8lab
