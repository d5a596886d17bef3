#include "labs/course/lecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "labs/course/scene_run.h"

namespace fp8lab {

Lecture::Lecture(Deck deck, std::filesystem::path folder, std::function<void()> wake)
    : deck_(std::move(deck)),
      folder_(std::move(folder)),
      wake_(std::move(wake)),
      memory_(deck_.scenes.size()) {
    for (const Scene& scene : deck_.scenes) {  // a lecture must not fail at its seventh scene
        const auto trial = lab_of(scene).make();
        apply_scene(*trial, scene, folder_);
    }
    go(0);
}

Lecture::Lecture(Lab& desk, std::filesystem::path folder)
    : folder_(std::move(folder)), lab_(&desk), desk_(true), memory_(1) {
    deck_.title = desk.info().title;
    deck_.scenes.push_back(scene_of(desk, std::string(desk.info().short_title)));
    told_ = desk.state();
}

void Lecture::go(std::size_t index) {
    if (index >= deck_.scenes.size() || desk_) return;
    if (lab_ != nullptr && lab_->live()) lab_->reset();  // a lab that is not shown does not train
    at_ = index;
    comparing_ = false;
    auto& lab = labs_[scene().lab];
    if (!lab) {
        lab = lab_of(scene()).make();
        if (wake_) lab->set_wake(wake_);
    }
    lab_ = lab.get();
    apply_scene(*lab_, scene(), folder_);
    take_edits();
    told_ = lab_->state();
    if (!asking()) start_training();
}

// What the lab refuses is thrown again by the next update(), whose caller tells it.
void Lecture::take_edits() {
    try {
        lab_->update();
    } catch (const std::exception&) {
        return;
    }
}

void Lecture::start_training() {
    if (lab_->live() && scene().steps > 0) lab_->act("run to " + std::to_string(scene().steps));
}

void Lecture::forward() {
    if (asking())
        reveal();
    else
        go(at_ + 1);
}

void Lecture::back() {
    if (at_ > 0) go(at_ - 1);
}

bool Lecture::asking() const { return scene().predict && !memory_[at_].revealed; }

void Lecture::vote(std::size_t choice) {
    if (!asking() || choice >= scene().predict->choices.size()) return;
    ++memory_[at_].votes.at(choice);
    memory_[at_].order.push_back(choice);
}

void Lecture::take_back() {
    Memory& memory = memory_[at_];
    if (memory.order.empty() || !asking()) return;
    --memory.votes.at(memory.order.back());
    memory.order.pop_back();
}

void Lecture::reveal() {
    if (!asking()) return;
    memory_[at_].revealed = true;
    start_training();
}

int Lecture::voters() const { return std::accumulate(votes().begin(), votes().end(), 0); }

void Lecture::set(std::string_view name, const std::string& text) {
    const auto fields = lab_->fields();
    if (const Field* const field = find_field(fields, name)) set_field(*field, text);
}

void Lecture::compare() {
    if (scene().compare.is_null() || asking()) return;
    if (comparing_) {
        lab_->restore(before_);
    } else {
        const nlohmann::json now = lab_->state();
        before_ = nlohmann::json::object();
        for (const auto& [name, value] : scene().compare.items()) before_[name] = now.at(name);
        lab_->restore(nlohmann::json(scene().compare));
    }
    comparing_ = !comparing_;
    take_edits();
}

void Lecture::nudge(int steps) {
    if (asking()) return;
    for (const Field& field : lab_->fields()) {
        if (field.info.name != scene().knob) continue;
        const auto moved = [&](double value, double step) {
            const double to = field.logarithmic ? value * std::exp2(steps) : value + steps * step;
            return std::clamp(to, field.min, field.max);
        };
        if (auto* const* whole = std::get_if<int*>(&field.value))
            **whole = static_cast<int>(std::lround(moved(**whole, 1)));
        if (auto* const* real = std::get_if<double*>(&field.value))
            **real = moved(**real, (field.max - field.min) / 50);
        if (auto* const* word = std::get_if<std::string*>(&field.value); word && !field.choices.empty()) {
            const auto now = std::ranges::find(field.choices, **word, &Choice::id) - field.choices.begin();
            const auto to = std::clamp<std::ptrdiff_t>(now + steps, 0, std::ssize(field.choices) - 1);
            **word = field.choices[static_cast<std::size_t>(to)].id;
        }
    }
    take_edits();
}

void Lecture::toggle_run() {
    if (!lab_->live() || asking()) return;
    lab_->act(lab_->busy() ? "pause" : "run");
}

bool Lecture::as_told() { return lab_->state() == told_; }

std::string Lecture::sentence() {
    if (!desk_ && as_told() && !scene().sentence.empty()) return sentence_text(scene(), *lab_);
    const auto figures = lab_->figures();
    const auto it = std::ranges::find_if(figures, [&](const Figure& f) { return f.id == scene().figure; });
    return it != figures.end() ? it->title : figures.empty() ? "" : figures.front().title;
}

Figure Lecture::figure() const {
    auto figures = lab_->figures();
    if (figures.empty()) return {};
    const auto it = std::ranges::find_if(figures, [&](const Figure& f) { return f.id == scene().figure; });
    Figure figure = it == figures.end() ? std::move(figures.front()) : std::move(*it);
    figure.title.clear();
    return figure;
}

std::string plan_text(const Deck& deck, std::size_t scene) {
    if (deck.minutes == 0) return {};
    return fmt::format("{} to {} of {} min", deck.begins_at(scene), deck.begins_at(scene + 1), deck.minutes);
}

std::string pace_text(const Deck& deck, std::size_t scene, double seconds) {
    const int minutes = static_cast<int>(seconds / 60);
    const int late = minutes - deck.begins_at(scene + 1);
    const int early = static_cast<int>(deck.begins_at(scene) - seconds / 60);
    if (late >= 1) return fmt::format("{} min late", late);
    if (early >= 1) return fmt::format("{} min early", early);
    return "on time";
}

}  // namespace fp8lab
