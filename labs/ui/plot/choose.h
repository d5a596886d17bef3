// Marks of a plot that stand for a choice, as the rows of a table do: a size, a recipe.
#pragma once

#include <functional>
#include <optional>

#include "labs/ui/plot/plot.h"

namespace fp8lab::ui {

// Call it after plot(). The sample under the mouse, where `stands` is true of it, gets a ring and the mouse a hand;
// returned in the frame in which it was clicked without a drag. The caller changes a field, so that it is recorded.
std::optional<PlotResult::Hit> chosen_mark(Context& context, const PlotResult& plot,
                                           const std::function<bool(const PlotResult::Hit&)>& stands);

}  // namespace fp8lab::ui
