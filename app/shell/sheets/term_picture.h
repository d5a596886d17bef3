// The figures of glossary terms on the screen, each made when it is first shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/figure/figure.h"
#include "labs/ui/context.h"

namespace fp8lab {

class TermPictures {
  public:
    // At the ImGui cursor, in the full width less `margin` (px at scale 1) on the right, as the probe `name`.
    // Draws nothing where the term has no figure (labs/course/term_figures.h).
    void draw(ui::Context& context, std::string_view name, std::string_view term, float margin = 0);

  private:
    std::map<std::string, std::optional<Figure>, std::less<>> figures_;  // by term
};

}  // namespace fp8lab
