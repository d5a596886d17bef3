#include "app/desk/touch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fp8lab {
namespace {

constexpr float kTapDrift = 8;       // px that a finger may move and still tap
constexpr int kFramesToTell = 2;     // after a press ImGui says whether a control holds the mouse
constexpr float kPinchNotch = 1.1F;  // of the distance, for a notch of the wheel

float distance(Touch::Finger a, Touch::Finger b) { return std::hypot(a.x - b.x, a.y - b.y); }

// `elsewhere`: so that what was pressed is not clicked.
void let_go(bool elsewhere, InputFeed& feed) {
    if (elsewhere) feed.pointer(-1, -1);
    feed.button(0, false);
}

}  // namespace

void Touch::changed(std::span<const Finger> fingers, bool began, InputFeed& feed) {
    feed.note();
    if (fingers.size() >= 2) {
        const Finger middle{(fingers[0].x + fingers[1].x) / 2, (fingers[0].y + fingers[1].y) / 2};
        const float apart = std::max(1.0F, distance(fingers[0], fingers[1]));
        if (doing_ == Doing::pressed || doing_ == Doing::dragging) let_go(doing_ == Doing::pressed, feed);
        if (doing_ == Doing::pinching && !began) {
            travel_ += middle.y - at_.y;
            notches_ += std::log(apart / apart_) / std::log(kPinchNotch);
        }
        doing_ = Doing::pinching;
        apart_ = apart;
        at_ = middle;
        feed.pointer(middle.x, middle.y);
        return;
    }
    if (fingers.empty()) {
        const bool flicked = doing_ == Doing::pressed && distance(start_, at_) >= kTapDrift;
        if (doing_ == Doing::pressed || doing_ == Doing::dragging) let_go(flicked, feed);
        doing_ = Doing::nothing;
        return;
    }
    const Finger finger = fingers.front();
    if (began) {
        start_ = at_ = finger;
        frames_ = 0;
        travel_ = notches_ = 0;
        doing_ = Doing::pressed;
        feed.pointer(finger.x, finger.y);
        feed.button(0, true);
        return;
    }
    if (doing_ == Doing::pinching) return;  // one of two fingers was lifted: it neither presses nor scrolls
    if (doing_ == Doing::pressed && distance(start_, finger) < kTapDrift) return;
    if (doing_ == Doing::scrolling) travel_ += finger.y - at_.y;
    at_ = finger;
    if (doing_ == Doing::dragging) feed.pointer(finger.x, finger.y);
}

float Touch::wheel(bool takes, float pixels_per_notch, InputFeed& feed) {
    if (doing_ == Doing::pressed && ++frames_ > kFramesToTell && distance(start_, at_) >= kTapDrift) {
        doing_ = takes ? Doing::dragging : Doing::scrolling;
        if (takes) {
            feed.pointer(at_.x, at_.y);
        } else {
            let_go(true, feed);
            feed.pointer(at_.x, at_.y);
            travel_ = at_.y - start_.y;
        }
    }
    if (doing_ == Doing::pressed && frames_ <= kFramesToTell) feed.note();  // until it is told what the finger does
    const float scrolled = std::exchange(travel_, 0.0F) / pixels_per_notch;
    return scrolled + std::exchange(notches_, 0.0F);
}

}  // namespace fp8lab
