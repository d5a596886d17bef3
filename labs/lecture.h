// A lecture without its pictures: which scene is on, what the room voted, what was moved since. The labs are
// the lecture's own, so that what stands on the desk is found again as it was left.
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
    // folder: where tensors go that a scene brings. wake: as Lab::set_wake(). Starts with the first scene;
    // throws input_error where any of the scenes does not fit its lab, before one is shown.
    Lecture(Deck deck, std::filesystem::path folder, std::function<void()> wake = {});
    // One scene: the lab on the desk, as it stands and goes on.
    Lecture(Lab& desk, std::filesystem::path folder);

    const Deck& deck() const { return deck_; }
    std::size_t at() const { return at_; }
    const Scene& scene() const { return deck_.scenes[at_]; }
    Lab& lab() { return *lab_; }

    void go(std::size_t index);  // from the scene's own state, each time; beyond the ends nothing happens
    void forward();              // shows what was asked for, else the next scene
    void back();

    // A prediction is due: the room votes, and nothing of the lab is to be seen.
    bool asking() const;
    void vote(std::size_t choice);  // one more for it
    void take_back();               // the last one
    void reveal();
    const std::array<int, 4>& votes() const { return memory_[at_].votes; }
    int voters() const;

    void compare();  // the scene's other state, and back
    bool comparing() const { return comparing_; }
    void nudge(int steps);  // the scene's knob: integers by 1, what is logarithmic by factors of 2
    void toggle_run();      // of a lab that trains
    // Nothing was moved since the scene was opened: its sentence holds.
    bool as_told();
    std::string sentence();  // the scene's, else the finding of the figure
    Figure figure() const;   // the one that the scene is about, without its title

  private:
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

}  // namespace fp8lab
