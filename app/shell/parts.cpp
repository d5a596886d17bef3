#include "app/shell/parts.h"

#include "core/base/error.h"

namespace fp8lab {

Parts::Parts(ui::Context& context, Settings settings, Machine machine, ProfileFolders folders, Host host)
    : common{context, std::move(settings), std::move(machine), std::move(folders), std::move(host)},
      labs(common, exercises, [this] { over.open(Sheet::none); }),
      exercises(context, common.folders,
                {.say = [this](std::string title,
                               std::string line) { common.toasts.say(std::move(title), std::move(line)); },
                 .lose =
                     [this](Lab& lab, std::string title, std::string line) {
                         Labs::Entry& entry = labs.entry_of(lab);
                         past.set_aside(entry, past.what_is(entry));
                         if (!title.empty()) common.toasts.say_undoable(std::move(title), std::move(line));
                     }}),
      past(common, labs, exercises),
      keeping(common, labs, exercises),
      presentation(context),
      scenes(common, labs, past, presentation),
      over(common, labs, exercises, commands) {
    context.theme = common.settings.theme;
    commands = make_commands(*this);
    over.offer([this] { return scenes.finds(); });
    try {
        remap(commands, common.folders.config / "keys.json");
    } catch (const Error& error) {
        common.toasts.warn("Keys as they were", error.what());
    }
    if (!exercises.progress().problem().empty())
        common.toasts.warn("Progress", exercises.progress().problem());
}

}  // namespace fp8lab
