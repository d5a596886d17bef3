// The view of L1: the bits of one code, its arithmetic, the map of all codes and the end of the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "labs/bits/model.h"
#include "labs/view.h"

namespace fp8lab::bits {

class BitsView final : public LabView {
  public:
    explicit BitsView(BitsLab& lab) : lab_(lab) {}
    void stage(ui::Context& context, Rect area) override;
    void explore(ui::Context& context, float width) override;
    std::vector<std::pair<std::string, std::string>> status() const override;
    bool key(ui::Context& context, ui::Key key) override;  // 0 to 9: toggles that bit
    std::span<const ViewKey> keys() const override;

  private:
    void explore_format(ui::Context& context);
    void explore_entry(ui::Context& context);
    bool edit_entry(ui::Context& context);  // true when a text was entered

    BitsLab& lab_;
    int last_bit_ = 0;  // outlined: at first the one that turns 448 into NaN
    bool typing_ = false, opens_ = false;
    std::string typed_;                      // the text field: a code or a number
    std::string answer_;                     // what became of it
    std::optional<std::uint32_t> answered_;  // the code that the answer is about; none: it was refused
};

}  // namespace fp8lab::bits
