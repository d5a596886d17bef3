// The view of L1: the bits of one code, its arithmetic, the map of all codes and the end of the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "labs/bits/model.h"
#include "labs/table/view.h"

namespace fp8lab::bits {

class BitsView final : public table::TableView<Bits> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context& context, ui::Key key) override;  // 0 to 9: toggles that bit
    std::span<const ViewKey> keys() const override;

  private:
    std::string more_words() const override { return ""; }
    // Rows of tabs for the format, and only the special values that it allows.
    bool draw_own(ui::Context&, const table::Row&, const Field& default_field) override;
    void draw_below(ui::Context&, float width) override;
    void explore_entry(ui::Context& context);
    bool edit_entry(ui::Context& context);  // true when a text was entered

    int last_bit_ = 0;  // outlined: at first the one that turns 448 into NaN
    bool typing_ = false, opens_ = false;
    std::string typed_;                      // the text field: a code or a number
    std::string answer_;                     // what became of it
    std::optional<std::uint32_t> answered_;  // the code that the answer is about; none: it was refused
};

}  // namespace fp8lab::bits
