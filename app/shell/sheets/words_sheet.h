// The figures of a lab as sentences and tables, to be read and copied. ImGui shows no accessibility tree:
// this, the command line and the files of an export are what a screen reader gets.
#pragma once

#include <string>
#include <vector>

#include "core/figure/words.h"
#include "labs/lab.h"
#include "labs/ui/context.h"

namespace fp8lab {

class WordsSheet {
  public:
    void read(const Lab& lab);  // the figures as they stand; call it when the sheet is opened
    struct Done {
        bool closed = false;
        std::string title, line;  // what was copied; empty: nothing yet
    };
    // Reads the figures again, which may have been computed meanwhile; not those of a training, which would
    // change while they are read.
    Done draw(ui::Context& context, const Lab& lab);

  private:
    struct Page {
        Figure figure;
        std::vector<std::string> words;
        FigureTable table;
    };
    void draw_page(ui::Context& context, const Page& page, Done& done);
    static void draw_table(ui::Context& context, const FigureTable& table);
    std::vector<Page> pages_;
};

}  // namespace fp8lab
