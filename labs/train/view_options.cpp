// The options of arm B's recipe as switches.
#include "labs/train/model_options.h"
#include "labs/train/view.h"
#include "labs/ui/widgets.h"

namespace fp8lab::train {

void TrainView::option_switches(ui::Context& c) {
    const std::vector<Field> fields = lab_.fields();
    const Field& text = *find_field(fields, "options");
    if (ui::withheld(c, text)) return;
    for (const OptionSwitch& option : train::option_switches(lab_.params())) {
        std::string value = chosen_option(lab_.params(), option);
        const std::string before = value;
        Field field = choice(option.info, &value, option.choices);
        field.info.name = "train." + option.info.name;
        ui::edit(c, field);
        if (value != before) *std::get<std::string*>(text.value) = options_with(lab_.params(), option, value);
    }
    edit(c, "options");
}

}  // namespace fp8lab::train
