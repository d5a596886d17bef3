// The sheet of keys: every command with a key, the lab's own keys, and what focus and mouse do, written from
// the tables that do it.
#pragma once

#include <span>
#include <string>

#include "app/shell/sheets/commands.h"
#include "labs/ui/context.h"
#include "labs/view.h"

namespace fp8lab {

// False: it was closed. lab: "L5 Delayed scaling"; empty: home. run: the id of a command that was pressed at
// the foot.
bool draw_key_sheet(ui::Context& context, std::span<const ShellCommand> commands,
                    std::span<const ViewKey> lab_keys, const std::string& lab, std::string& run);

}  // namespace fp8lab
