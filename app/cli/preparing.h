// What a trainer prepares, as progress on stderr. A signal ends it before its next part.
#pragma once

#include <memory>

#include "core/base/stop.h"
#include "core/files/progress_line.h"
#include "core/trainer/preparation.h"

namespace fp8lab::cli {

inline Preparation told_on_stderr(bool shown = true) {
    return {[progress = std::make_shared<ProgressLine>(shown)](const std::string& what) {
                end_if_interrupted();
                if (what.empty())
                    progress->erase();
                else
                    progress->at("preparing " + what);
            },
            {}};
}

}  // namespace fp8lab::cli
