// The list of keys that ? lays over a lecture.
#include <array>
#include <cmath>

#include "app/shell/present/present.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

struct LectureKey {
    std::string_view keys, effect;
};
constexpr std::array kLectureKeys = {
    LectureKey{"Right, PgDn", "ends a vote; next scene"},
    LectureKey{"Left, PgUp", "previous scene"},
    LectureKey{"Home, End", "first scene, last scene"},
    LectureKey{"1-4, A-D", "a vote, while the room is asked"},
    LectureKey{"Backspace", "takes the last vote back"},
    LectureKey{"Enter, Space", "shows the figure and the answer"},
    LectureKey{"Up, Down", "move the scene's control"},
    LectureKey{"B", "compares with the other state"},
    LectureKey{"Space", "runs a training, pauses it"},
    LectureKey{"P", "L8: multiplies the next batch by 1000"},
    LectureKey{"F", "freezes the picture, and frees it"},
    LectureKey{"T", "dark or projector theme"},
    LectureKey{"N", "the presenter's notes"},
    LectureKey{"Esc, F5", "back to the lab; F5 on home continues"},
};
constexpr float kWidthOfKeys = 150, kWidthOfList = 520, kRowOfList = 26, kHeadOfList = 52, kPadOfList = 24;

}  // namespace

void Presentation::draw_keys(Rect window) {
    const auto px = [&](float logical) { return std::round(context_.px(logical)); };
    ui::fill_rect(context_, window, {Role::surface, Tone::line, 0.7F});
    const float width = px(kWidthOfList);
    const float height = px(kHeadOfList + kRowOfList * static_cast<float>(kLectureKeys.size()) + kPadOfList);
    const float x = std::round((window.x0 + window.x1 - width) / 2);
    const float top = std::round((window.y0 + window.y1 - height) / 2);
    const Rect box{x, top, x + width, top + height};
    ui::fill_rect(context_, box, {Role::raised}, 6);
    ui::stroke_rect(context_, box, {Role::axis}, 6);
    ui::probe(context_, "present.keys", box);
    const float left = box.x0 + px(kPadOfList);
    ui::text_mid(context_, {left, box.y0 + px(30)}, "Keys of a lecture", {Role::text}, kBold15);
    ui::text_mid(context_, {box.x1 - px(kPadOfList), box.y0 + px(30)}, "any key closes this", {Role::muted},
                 kSans13, Anchor::right);
    float y = box.y0 + px(kHeadOfList + kRowOfList / 2);
    for (const LectureKey& key : kLectureKeys) {
        ui::text_mid(context_, {left, y}, key.keys, {Role::text}, kMono13);
        ui::text_mid(context_, {left + px(kWidthOfKeys), y}, key.effect, {Role::muted}, kSans13);
        y += px(kRowOfList);
    }
}

}  // namespace fp8lab
