// The manual over the window: its pages on the left, searched while one types, the one selected on the right. It opens again
// at the page, and the place in it, where it was closed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/shell/sheets/finder.h"
#include "core/lesson/manual/manual.h"
#include "labs/ui/context.h"

namespace fp8lab {

class ManualSheet {
  public:
    // More pages, asked for when the manual is opened for the first time.
    void add(std::function<ManualPart()> part) { more_.push_back(std::move(part)); }
    // id: of a page; empty: the one of before. Throws input_error: the manual cannot be read.
    void open(std::string_view id = {});
    const std::vector<ManualPart>& parts();  // throws input_error as open() does

    struct Done {
        bool closed = false;
        std::string term = {}, lab = {};  // ids of what was asked for
    };
    Done draw(ui::Context& context);

  private:
    void follow(std::string_view link, Done& done);
    const ManualPage& page(std::size_t row) const { return *pages_[row]; }

    Finder finder_;
    std::vector<std::function<ManualPart()>> more_;
    std::vector<ManualPart> parts_;
    std::vector<const ManualPage*> pages_;  // of parts_, a row each
    std::vector<FindRow> rows_;
    std::string shown_;  // id of the page
};

}  // namespace fp8lab
