#include "app/desk/input_feed.h"

#include <imgui.h>

#include <utility>

#include "labs/ui/input.h"

namespace fp8lab {

void InputFeed::key(const InputEvent& event) {
    note();
    queue_.add(event);
}

void InputFeed::pointer(float x, float y) {
    note();
    pointer_ = {x, y};
    moved_ = true;
}

void InputFeed::button(int button, bool down) {
    note();
    queue_.add({.kind = InputEvent::Kind::button,
                .down = down,
                .button = button,
                .x = pointer_.at(0),
                .y = pointer_.at(1)});
}

bool InputFeed::take() { return std::exchange(heard_, false) || !queue_.empty() || ui::input_waits(); }

void InputFeed::feed_keys(bool keys_wait) {
    for (const InputEvent& event : queue_.take_frame(keys_wait)) {
        switch (event.kind) {
            case InputEvent::Kind::key:
                ui::feed_system_key(event.key, event.down, event.mods);
                break;
            case InputEvent::Kind::character:
                ui::feed_character(event.character);
                break;
            case InputEvent::Kind::button:
                if (event.button < static_cast<int>(held_.size()))
                    held_.at(static_cast<std::size_t>(event.button)) = event.down;
                [[fallthrough]];
            case InputEvent::Kind::motion:
                pointer_then_ = std::array{event.x, event.y};
        }
    }
}

void InputFeed::feed_mouse(bool backend_tells) {
    if (pointer_then_) {
        ui::feed_mouse(pointer_then_->at(0), pointer_then_->at(1));
        pointer_was_then_ = true;
    } else if (std::exchange(pointer_was_then_, false) || (moved_ && !backend_tells)) {
        ui::feed_mouse(pointer_.at(0), pointer_.at(1));
        moved_ = false;
    }
    pointer_then_.reset();
    for (std::size_t i = 0; i < held_.size(); ++i) {
        if (ImGui::GetIO().MouseDown[i] != held_.at(i)) ui::feed_button(static_cast<int>(i), held_.at(i));
    }
}

}  // namespace fp8lab
