// The views, in the order of registry.cpp.
#include <array>

#include "labs/adding/view.h"
#include "labs/bits/view.h"
#include "labs/blocks/view.h"
#include "labs/delayed/view.h"
#include "labs/error/view.h"
#include "labs/ruler/view.h"
#include "labs/train/view.h"
#include "labs/view.h"
#include "labs/window/view.h"

namespace fp8lab {
namespace {

// The entry's id says which model the lab is.
template <class View, class Model>
std::unique_ptr<LabView> make(Lab& lab) {
    return std::make_unique<View>(static_cast<Model&>(lab));
}

}  // namespace

std::span<const ViewEntry> view_registry() {
    static constexpr std::array kViews = {
        ViewEntry{"bits", make<bits_lab::BitsView, bits_lab::BitsLab>},
        ViewEntry{"ruler", make<ruler::RulerView, ruler::RulerLab>},
        ViewEntry{"error", make<error::ErrorView, error::ErrorLab>},
        ViewEntry{"window", make<window_lab::WindowView, window_lab::WindowLab>},
        ViewEntry{"delayed", make<delayed::DelayedView, delayed::DelayedLab>},
        ViewEntry{"blocks", make<blocks::BlocksView, blocks::BlocksLab>},
        ViewEntry{"adding", make<adding::AddingView, adding::AddingLab>},
        ViewEntry{"train", make<train::TrainView, train::TrainLab>},
    };
    return kViews;
}

}  // namespace fp8lab
