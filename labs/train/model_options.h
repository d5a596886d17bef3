// Switches for what arm B's recipe takes as text (Params::options): "w2d=1:rht=1:wide=first". The text stays the
// one place where they are kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/fields.h"
#include "labs/train/model_params.h"

namespace fp8lab::train {

struct OptionSwitch {
    FieldInfo info;  // its name is the key in the text
    std::vector<Choice> choices;
};
// Those that arm B's recipe takes; none where the text is not valid.
std::vector<OptionSwitch> option_switches(const Params& params);

// The id of the choice that holds, whether the text or the recipe's own row says so; empty: none of them does.
std::string chosen_option(const Params& params, const OptionSwitch& option);

// The text with another choice: without the key where the recipe's row has it so, the other keys as they were.
std::string options_with(const Params& params, const OptionSwitch& option, std::string_view choice);

}  // namespace fp8lab::train
