// The state of a lecture, without drawing: the current scene, the votes, the changes since. A lecture has
// labs of its own, so that the labs in the window stay as they were.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/lesson/scene.h"
#include "labs/lab.h"

namespace fp8lab {

class Lecture {
  public:
    // folder: receives the tensors that are in scenes. wake: as Lab::set_wake(). Starts with the first scene.
    // Throws input_error where any scene does not fit its lab.
    Lecture(Deck deck, std::filesystem::path folder, std::function<void()> wake = {});
    // A lecture of one scene: the lab in the window, in its present state.
    Lecture(Lab& desk, std::filesystem::path folder);

    const Deck& deck() const { return deck_; }
    std::size_t at() const { return at_; }
    const Scene& scene() const { return deck_.scenes[at_]; }
    Lab& lab() { return *lab_; }

    void go(std::size_t index);  // shows the scene in its own state; an index out of range does nothing
    void forward();              // reveals the answer of a vote, else shows the next scene
    void back();

    // The scene asks for a vote first; the lab must not be shown yet.
    bool asking() const;
    void vote(std::size_t choice);  // adds one vote
    void take_back();               // removes the last vote
    void reveal();
    const std::array<int, 4>& votes() const { return memory_[at_].votes; }
    int voters() const;

    void compare();  // switches between the scene's two states
    bool comparing() const { return comparing_; }
    // Changes the scene's knob: integers by 1, logarithmic fields by factors of 2, a choice to the next one.
    void nudge(int steps);
    void toggle_run();  // starts or pauses a lab that trains
    // True while nothing was changed since the scene was opened, so that its sentence is true.
    bool as_told();
    std::string sentence();  // the scene's, else the title of the figure
    Figure figure() const;   // the scene's figure, without its title

  private:
    void take_edits();
    struct Memory {
        std::array<int, 4> votes{};
        std::vector<std::size_t> order;  // who voted last can take it back
        bool revealed = false;
    };
    void set(std::string_view name, const std::string& text);
    void start_training();

    Deck deck_;
    std::filesystem::path folder_;
    std::function<void()> wake_;
    std::map<std::string, std::unique_ptr<Lab>, std::less<>> labs_;
    Lab* lab_ = nullptr;
    bool desk_ = false;
    std::vector<Memory> memory_;
    std::size_t at_ = 0;
    bool comparing_ = false;
    nlohmann::json told_;    // the lab's state as the scene has it
    nlohmann::json before_;  // the fields that compare() changed
};

// "0 to 4 of 90 min": when the deck plans this scene; empty: it has no times.
std::string plan_text(const Deck& deck, std::size_t scene);
// "on time", "2 min late", "1 min early": so many seconds after the start, in this scene. Less than a minute is on time.
std::string pace_text(const Deck& deck, std::size_t scene, double seconds);

}  // namespace fp8lab
