#include "app/shell/present/present.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/backend/recording.h"
#include "core/figure/paint.h"
#include "labs/course/scene_run.h"
#include "labs/ui/draw.h"
#include "labs/ui/plot/imgui_canvas.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

constexpr float kPresentMargin = 40, kStrip = 46;
constexpr double kLateVote_s = 1.5;

// 1920x1080 at twice the desk's sizes; smaller windows in proportion, never below the desk's own.
float scale_of(Rect window) {
    return std::max(1.0F, 2 * std::min(window.width() / 1920, window.height() / 1080));
}

Marker marker_of(const std::string& metric) {
    if (metric.find("underflow") != std::string::npos || metric.find("lost_") != std::string::npos)
        return Marker::triangle_down;
    if (metric.find("overflow") != std::string::npos || metric.find("saturated") != std::string::npos)
        return Marker::triangle_up;
    return Marker::none;
}

// "RECORDED, H200", "CPU EMULATED": where the numbers come from, and the GPU whose they are.
std::string badge_of(const Lab& lab) {
    const std::string device = lab.device();
    std::string out(ui::badge_words(lab.provenance()));
    if (!device.empty()) out += ", " + short_gpu_name(device.substr(0, device.find_first_of(",:")));
    return out;
}

}  // namespace

void Presentation::start(std::unique_ptr<Lecture> lecture, bool deck) {
    started_ = std::chrono::steady_clock::now();
    deck_ = deck;
    open(std::move(lecture));
}

void Presentation::open(std::unique_ptr<Lecture> lecture) {
    if (!active()) {
        desk_theme_ = context_.theme;
        desk_scale_ = context_.scale;
    }
    lecture_ = std::move(lecture);
    keys_ = false;
    context_.theme = theme_;
    context_.focus = {};
    plot_ = {};
    shown_ = 0;
}

void Presentation::stop() {
    if (!active()) return;
    views_.clear();
    if (deck_) {
        if (lecture_->lab().live() && lecture_->lab().busy()) lecture_->lab().act("pause");
        left_ = std::move(lecture_);
    }
    lecture_.reset();
    frozen_.reset();
    context_.theme = desk_theme_;
    context_.scale = desk_scale_;
    context_.focus = {};
}

bool Presentation::resume() {
    if (!left_) return false;
    deck_ = true;
    open(std::move(left_));
    return true;
}

double Presentation::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

LabView& Presentation::view() {
    Lab* lab = &lecture_->lab();
    auto& view = views_[lab];
    if (!view) view = make_view(*lab);
    return *view;
}

// Keys that step are repeated while they are held. Which key gives a question mark depends on the layout, so
// the character is asked for.
void Presentation::take_keys() {
    for (const ui::Key key : ui::all_keys()) {
        if (!active()) return;
        const bool repeats = key == ui::Key::up || key == ui::Key::down;
        if (ui::pressed(key, repeats)) this->key(key);
    }
    for (const ImWchar c : ImGui::GetIO().InputQueueCharacters)
        if (active()) typed(c);
}

void Presentation::typed(unsigned character) {
    if (std::exchange(keys_, false)) return;
    // A key and its character may come in one frame or in two that follow each other. The "?" whose key has
    // closed the list does not open it again.
    if (character == '?' && ImGui::GetFrameCount() - keys_closed_ > 1) keys_ = true;
}

void Presentation::key(ui::Key key) {
    Lecture& lecture = *lecture_;
    const bool asking = lecture.asking();
    if (std::exchange(keys_, false)) {  // any key closes the list
        keys_closed_ = ImGui::GetFrameCount();
        return;
    }
    if (key == ui::Key::escape || key == ui::Key::f5) return stop();
    if (key == ui::Key::f && !asking) {
        if (frozen_)
            frozen_.reset();
        else
            frozen_ = take();
        return;
    }
    if (key == ui::Key::t) {
        theme_ = theme_ == Theme::projector ? Theme::dark : Theme::projector;
        context_.theme = theme_;
        return;
    }
    if (key == ui::Key::n) {
        notes_ = !notes_;
        return;
    }
    const auto turn = [&](auto&& act) {  // another scene: what was frozen is gone
        frozen_.reset();
        act();
    };
    const bool again = std::exchange(no_vote_, false);
    if (key == ui::Key::right || key == ui::Key::page_down) {
        no_vote_ = asking && lecture.voters() == 0 && !again;  // asked once whether it is to go on without
        return no_vote_ ? void() : turn([&] { lecture.forward(); });
    }
    if (key == ui::Key::left || key == ui::Key::page_up) return turn([&] { lecture.back(); });
    if (key == ui::Key::home) return turn([&] { lecture.go(0); });
    if (key == ui::Key::end) return turn([&] { lecture.go(lecture.deck().scenes.size() - 1); });
    if (asking) {
        if (key >= ui::Key::digit_1 && key <= ui::Key::digit_4)
            lecture.vote(static_cast<std::size_t>(key - ui::Key::digit_1));
        if (key >= ui::Key::a && key <= ui::Key::d) lecture.vote(static_cast<std::size_t>(key - ui::Key::a));
        if (key == ui::Key::backspace) lecture.take_back();
        if (key == ui::Key::enter || key == ui::Key::keypad_enter || key == ui::Key::space) lecture.reveal();
        return;
    }
    if (frozen_ || is_late_vote(key)) return;
    if (key == ui::Key::b) return lecture.compare();
    if (key == ui::Key::up) return lecture.nudge(1);
    if (key == ui::Key::down) return lecture.nudge(-1);
    if (key == ui::Key::p && lecture.lab().can_poison()) return lecture.lab().act("poison");
    if (key == ui::Key::space && lecture.lab().live()) return lecture.toggle_run();
    view().key(context_, key);
}

// A vote that comes when the figure is shown already. The lab does not get its key. B compares if there was no vote,
// and otherwise only once the key cannot be meant as a late vote.
bool Presentation::is_late_vote(ui::Key key) const {
    if (!lecture_->scene().predict) return false;
    if (key == ui::Key::b) return lecture_->voters() > 0 && ImGui::GetTime() < asked_s_ + kLateVote_s;
    const bool letter = key >= ui::Key::a && key <= ui::Key::d;
    const bool digit = key >= ui::Key::digit_1 && key <= ui::Key::digit_4;
    return letter || digit || key == ui::Key::backspace || key == ui::Key::enter ||
           key == ui::Key::keypad_enter;
}

Presentation::Picture Presentation::take() {
    Picture picture{.sentence = lecture_->sentence(), .numbers = {}, .figure = lecture_->figure()};
    for (const Scene::Number& number : lecture_->scene().numbers)
        picture.numbers.push_back({number_text(lecture_->lab(), number.metric),
                                   filled_text(number.label, lecture_->lab()), marker_of(number.metric)});
    return picture;
}

void Presentation::frame(Rect window) {
    if (context_.scale != scale_of(window)) {  // drawn when the fonts of that size are there
        context_.scale = scale_of(window);
        context_.wants_redraw = true;
        return ui::fill_rect(context_, window, {Role::surface});
    }
    if (shown_ != lecture_->at()) {
        plot_ = {};
        shown_ = lecture_->at();
    }
    std::string failure;
    if (!frozen_) {
        try {
            lecture_->lab().update();
        } catch (const std::exception& error) {  // as at the desk: the lab stops, the window goes on
            failure = error.what();
        }
    }
    ui::fill_rect(context_, window, {Role::surface});
    const Rect strip{window.x0, window.y1 - context_.px(kStrip), window.x1, window.y1};
    const Rect area{window.x0 + context_.px(kPresentMargin), window.y0 + context_.px(24),
                    window.x1 - context_.px(kPresentMargin), strip.y0 - context_.px(12)};
    if (lecture_->asking()) asked_s_ = ImGui::GetTime();
    if (lecture_->asking())
        draw_question(area);
    else if (!failure.empty())
        draw_sentence("This lab stopped. " + failure, area);
    else
        show(frozen_ ? *frozen_ : take(), area);
    draw_strip(strip);
    if (keys_) draw_keys(window);
}

float Presentation::draw_sentence(const std::string& words, Rect area) {
    float y = area.y0 + context_.px(20);
    for (const auto line : ui::wrap_lines(context_, words, kBold24, area.width())) {
        ui::text_mid(context_, {area.x0, y}, line, {Role::text}, kBold24);
        y += context_.px(32);
    }
    ui::probe(context_, "present.sentence", {area.x0, area.y0, area.x1, y}, {}, words);
    return y;
}

void Presentation::show(const Picture& picture, Rect area) {
    float y = draw_sentence(picture.sentence, area) + context_.px(6);
    if (!picture.numbers.empty()) {
        draw_numbers(picture.numbers, {area.x0, y, area.x1, y + context_.px(50)});
        y += context_.px(60);
    }
    Rect figure{area.x0, y, area.x1, area.y1};
    if (lecture_->voters() > 0) {
        draw_room({area.x0, area.y1 - context_.px(20), area.x1, area.y1});
        figure.y1 -= context_.px(28);
    }
    view().present(context_, picture.figure, plot_, figure);
    if (lecture_->lab().stale() && !frozen_)
        ui::fill_rect(context_, figure, {Role::surface, Tone::line, 0.5F});
}

void Presentation::draw_numbers(const std::vector<Number>& numbers, Rect area) {
    const float pitch = area.width() / static_cast<float>(std::max<std::size_t>(numbers.size(), 3));
    float x = area.x0;
    for (std::size_t i = 0; i < numbers.size(); ++i, x += pitch) {
        const Number& number = numbers[i];
        const float y = area.y0 + context_.px(14);
        float left = x;
        if (number.marker != Marker::none) {
            const bool none = number.text.starts_with("0 ") || number.text == "0";
            ui::ImGuiCanvas canvas(context_);
            const Role role = number.marker == Marker::triangle_up ? Role::sat : Role::under;
            const Point at{left / context_.scale + 7, y / context_.scale};
            paint_marker(canvas, at, number.marker, 6, {none ? Role::axis : role, Tone::line});
            if (none) paint_marker(canvas, at, number.marker, 3.5F, {Role::surface});
            left += context_.px(22);
        }
        ui::text_mid(context_, {left, y}, number.text, {Role::text}, kMono24);
        std::string label = number.label;
        const float room = pitch - context_.px(12);
        if (ui::text_width(context_, label, kSans13) > room)  // its first words, whole ones
            label = std::string(ui::wrap_lines(context_, label, kSans13, room).front());
        ui::text_mid(context_, {x, area.y0 + context_.px(40)}, label, {Role::muted}, kSans13);
        ui::probe(context_, "present.number." + std::to_string(i), {x, area.y0, x + pitch, area.y1}, {},
                  number.text);
    }
}

void Presentation::draw_question(Rect area) {
    const Scene::Vote& vote = *lecture_->scene().predict;
    const float top = draw_sentence(vote.question, area) + context_.px(16);
    const float gap = context_.px(16);
    const float bottom = area.y1 - context_.px(28);
    const auto rows = static_cast<float>((vote.choices.size() + 1) / 2);
    const float width = (area.width() - gap) / 2;
    const float height = std::min((bottom - top - gap * (rows - 1)) / rows, context_.px(150));
    for (std::size_t i = 0; i < vote.choices.size(); ++i) {
        const float x = area.x0 + (i % 2 == 0 ? 0 : width + gap);
        const float y = top + static_cast<float>(i / 2) * (height + gap);
        draw_choice(i, {x, y, x + width, y + height});
    }
    ui::text_mid(context_, {area.x0, area.y1 - context_.px(10)},
                 no_vote_ ? "No vote yet. Right again shows the figure without one."
                          : "1-4 or A-D: a vote   Backspace: take it back   Enter or Right: see",
                 {no_vote_ ? Role::text : Role::muted}, no_vote_ ? kBold13 : kSans13);
    ui::probe(context_, "present.vote_hint", {area.x0, area.y1 - context_.px(20), area.x1, area.y1}, {},
              no_vote_ ? "no vote yet" : "");
}

void Presentation::draw_choice(std::size_t choice, Rect box) {
    const int votes = lecture_->votes().at(choice), all = std::max(1, lecture_->voters());
    const std::string letter(1, static_cast<char>('A' + choice));
    const ui::Press press = ui::press(context_, "present.vote." + letter, box);
    if (press.clicked) lecture_->vote(choice);
    ui::fill_rect(context_, box, {Role::raised}, 6);
    const float share = static_cast<float>(votes) / static_cast<float>(all);
    if (votes > 0)  // the tally fills the box from the left
        ui::fill_rect(context_, {box.x0, box.y0, box.x0 + box.width() * share, box.y1}, {Role::field}, 6);
    ui::stroke_rect(context_, box, {press.hovered ? Role::axis : Role::line}, 6);
    const float y = (box.y0 + box.y1) / 2;
    ui::text_mid(context_, {box.x0 + context_.px(20), y}, letter, {Role::muted}, kMono24);
    ui::text_mid(context_, {box.x0 + context_.px(56), y}, lecture_->scene().predict->choices[choice],
                 {Role::text}, {Face::sans, 24});
    ui::text_mid(context_, {box.x1 - context_.px(20), y}, std::to_string(votes), {Role::text}, kMono24,
                 Anchor::right);
    ui::probe(context_, "present.votes." + letter, box, {}, std::to_string(votes));
}

// What the room had said, under what is.
void Presentation::draw_room(Rect area) {
    const Scene::Vote& vote = *lecture_->scene().predict;
    const float y = (area.y0 + area.y1) / 2;
    float x = area.x0;
    const auto put = [&](const std::string& words, Role role, Font font) {
        ui::text_mid(context_, {x, y}, words, {role}, font);
        x += ui::text_width(context_, words, font) + context_.px(12);
    };
    put("The room said", Role::muted, kSans13);
    for (std::size_t i = 0; i < vote.choices.size(); ++i) {
        const bool right = static_cast<int>(i) == vote.answer;
        put(fmt::format("{} {:.0f} %{}", vote.choices[i],
                        100.0 * lecture_->votes().at(i) / lecture_->voters(), right ? " (right)" : ""),
            right ? Role::text : Role::muted, right ? kBold13 : kSans13);
    }
    ui::probe(context_, "present.room", area);
}

// Count, planned minutes, provenance and which of two states; from the right. Returns where they begin.
float Presentation::draw_state(Rect strip) {
    const float y = (strip.y0 + strip.y1) / 2;
    const std::string count = fmt::format("{} / {}", lecture_->at() + 1, lecture_->deck().scenes.size());
    float right = strip.x1 - context_.px(kPresentMargin);
    ui::text_mid(context_, {right, y}, count, {Role::text}, {Face::mono, 15}, Anchor::right);
    right -= ui::text_width(context_, count, {Face::mono, 15}) + context_.px(16);
    if (const std::string plan = plan_text(lecture_->deck(), lecture_->at()); !plan.empty()) {
        ui::text_mid(context_, {right, y}, plan, {Role::muted}, kMono13, Anchor::right);
        const float left = right - ui::text_width(context_, plan, kMono13);
        ui::probe(context_, "present.plan", {left, strip.y0, right, strip.y1}, {}, plan);
        right = left - context_.px(16);
    }
    const std::string badge = badge_of(lecture_->lab());
    const float wide = ui::text_width(context_, badge, kMono13) + context_.px(34);
    const Rect box{right - wide, y - context_.px(12), right, y + context_.px(12)};
    ui::stroke_rect(context_, box, {Role::axis}, 4);
    ui::probe(context_, "present.badge", box, {}, badge);
    ui::badge_glyph(context_, lecture_->lab().provenance(), {box.x0 + context_.px(14), y});
    ui::text_mid(context_, {box.x0 + context_.px(24), y}, badge, {Role::text}, kMono13);
    right = box.x0 - context_.px(16);
    const std::string state = frozen_                               ? "frozen"
                              : lecture_->comparing()               ? "B"
                              : lecture_->scene().compare.is_null() ? ""
                                                                    : "A";
    if (state.empty()) return right;
    ui::text_mid(context_, {right, y}, state, {Role::text}, kBold15, Anchor::right);
    ui::probe(context_, "present.state", {right - context_.px(20), strip.y0, right, strip.y1}, {}, state);
    return right - ui::text_width(context_, state, kBold15) - context_.px(16);
}

void Presentation::draw_strip(Rect strip) {
    ui::fill_rect(context_, strip, {Role::raised});
    ui::hline(context_, strip.x0, strip.x1, strip.y0, {Role::line});
    const float y = (strip.y0 + strip.y1) / 2, left = strip.x0 + context_.px(kPresentMargin - 12),
                right = draw_state(strip);
    const auto& scenes = lecture_->deck().scenes;
    // The titles around the one that is on, as many as there is room for.
    const auto width_of = [&](std::size_t i) {
        return ui::text_width(context_, std::to_string(i + 1) + "  " + scenes[i].title, kBold13) +
               context_.px(24);
    };
    std::size_t first = lecture_->at(), last = first;
    float used = width_of(first);
    for (bool grown = true; grown;) {
        grown = false;
        if (last + 1 < scenes.size() && used + width_of(last + 1) <= right - left) {
            used += width_of(++last);
            grown = true;
        }
        if (first > 0 && used + width_of(first - 1) <= right - left) {
            used += width_of(--first);
            grown = true;
        }
    }
    float x = left;
    ImGui::PushClipRect({left, strip.y0}, {right, strip.y1}, true);
    for (std::size_t i = first; i <= last; ++i) {
        const bool on = i == lecture_->at();
        const float width = width_of(i);
        if (on)
            ui::fill_rect(context_, {x, y - context_.px(14), x + width, y + context_.px(14)}, {Role::accent},
                          4);
        const std::string number = std::to_string(i + 1);
        ui::text_mid(context_, {x + context_.px(12), y}, number, {on ? Role::inverse : Role::muted}, kMono13);
        ui::text_mid(context_, {x + context_.px(20) + ui::text_width(context_, number, kMono13), y},
                     scenes[i].title, {on ? Role::inverse : Role::text}, on ? kBold13 : kSans13);
        ui::probe(context_, "present.scene." + number, {x, strip.y0, x + width, strip.y1}, {},
                  on ? "on" : "");
        x += width;
    }
    ImGui::PopClipRect();
}

}  // namespace fp8lab
