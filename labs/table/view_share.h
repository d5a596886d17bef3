// The line of a panel that tells how far a computation of seconds is (long.h), with a button that stops it, or goes on.
#pragma once

#include <string>

#include "labs/table/long.h"
#include "labs/ui/context.h"

namespace fp8lab::table {

enum class ShareButton { none, stop, resume };
// "GPTQ of every scheme, 40 %" with its button, `name`; which one was pressed.
ShareButton share_line(ui::Context& context, const std::string& name, const std::string& words, double share,
                       bool stopped);

// Nothing where none runs or was stopped.
template <class Lab, class Spec, class Result>
void draw_share(ui::Context& context, Lab& lab, const std::string& name, const std::string& words,
                Long<Spec, Result>& part) {
    if (!part.busy() && !part.stopped()) return;
    switch (share_line(context, name, words, part.share(), part.stopped())) {
        case ShareButton::stop:
            return part.stop();
        case ShareButton::resume:
            part.resume();
            return lab.update();
        case ShareButton::none:
            return;
    }
}

}  // namespace fp8lab::table
