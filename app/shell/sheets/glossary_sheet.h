// The glossary over the window: the terms on the left, searched while one types, the one selected on the
// right, with its figure, its source, the terms it is related to and the labs in which it is at work.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "app/shell/sheets/finder.h"
#include "app/shell/sheets/term_picture.h"
#include "core/lesson/glossary.h"
#include "labs/ui/context.h"

namespace fp8lab {

class GlossarySheet {
  public:
    // labs: id -> "L5 Delayed scaling". term: id; empty: from the start.
    void open(const Glossary& glossary, std::map<std::string, std::string> labs, std::string_view term = {});
    // False: it was closed. `go_to`: a lab that was asked for.
    bool draw(ui::Context& context, const Glossary& glossary, std::string& go_to);

  private:
    void show(const Glossary& glossary, std::string_view term);
    void draw_term(ui::Context& context, const Glossary& glossary, const Term& term, std::string& go_to);
    void draw_links(ui::Context& context, const Glossary& glossary, const Term& term, std::string& go_to);

    Finder finder_;
    std::vector<FindRow> rows_;
    std::map<std::string, std::string> labs_;
    TermPictures pictures_;
};

}  // namespace fp8lab
