#include "app/frame/frame_pace.h"

#include <algorithm>
#include <limits>

namespace fp8lab {
namespace {

constexpr double kFrame_s = 1.0 / 30;  // between frames that no input asked for
// With software OpenGL a frame takes tens of ms of the very cores that train: drawing gets a quarter of the
// time at most.
constexpr double kIdleShare = 4;
constexpr double kClock_s = 1;     // the presenter's
constexpr double kCaret_s = 0.25;  // a blinking caret
constexpr int kSettleFrames = 2;   // after input: ImGui shows the effect of a click one frame later

}  // namespace

double FramePace::due_s(const Now& now) {
    if (now.input) settle_ = kSettleFrames + 1;
    if (settle_ > 0) {
        --settle_;
        return 0;
    }
    const double pause = now.runs    ? std::max(kFrame_s, kIdleShare * drawing_s_)
                         : now.clock ? kClock_s
                         : now.types ? kCaret_s
                                     : std::numeric_limits<double>::infinity();
    return std::max(0.0, start_s_ + pause - now.time_s);
}

}  // namespace fp8lab
