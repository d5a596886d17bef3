// Claim cards under a lesson: what a tutorial says, and what the lab gives instead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/lesson/claim.h"
#include "labs/lab.h"
#include "labs/ui/context.h"

namespace fp8lab {

class ClaimCards {
  public:
    // At the cursor. `locked`: an exercise is under way, whose log the experiment would spoil.
    void draw(ui::Context& context, Lab& lab, bool locked);

  private:
    bool any(std::string_view lab);
    const std::vector<Claim>& claims();
    std::optional<std::vector<Claim>> claims_;  // read when first shown
    std::string problem_;
};

}  // namespace fp8lab
