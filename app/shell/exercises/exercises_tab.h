// The Exercises tab: which exercise is open, the attempt under way, what panel and stage show of it, and what
// is kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/lesson/journal.h"
#include "core/lesson/progress.h"
#include "labs/course/exercise_run.h"
#include "labs/ui/context.h"
#include "labs/ui/plot/plot.h"

namespace fp8lab {

class ExercisesTab {
  public:
    struct Hooks {
        std::function<void(std::string title, std::string line)> say;  // a toast
        // Called before something is lost that Ctrl Z can bring back. Without a title there is no message.
        std::function<void(Lab&, std::string title, std::string line)> lose;
    };
    ExercisesTab(ui::Context& context, const ProfileFolders& folders, Hooks hooks);

    // What is open in a lab, and the attempt under way in it.
    struct Aside {
        std::size_t selected = 0;
        bool again = false;
        std::vector<double> draft;
        std::map<std::string, std::string> typed;
        struct Attempt {
            const Exercise* exercise;
            Prediction prediction;
            std::vector<Evidence::EventGroup> groups;
            int hints;
        };
        std::optional<Attempt> run;
    };
    Aside aside(const Lab& lab) const;
    // An attempt is repeated on the lab. Throws what replay() does.
    void bring_back(Lab& lab, const Aside& aside);

    const Progress& progress() const { return progress_; }
    bool retry() { return progress_.retry(); }  // what could not be saved; true: all is
    float share(const Lab& lab) const;          // of its exercises that are passed; NaN where it has none

    void draw_panel(Lab& lab);  // at the cursor
    // A prediction is due: what answers it is covered, and the lab is not used before.
    bool predicting(const Lab& lab) const;
    void draw_covers(const Lab& lab, Rect stage);  // after the view has drawn it
    // One line for the other tabs while an attempt is under way; its height, logical px, 0: there is none.
    // True: pressed.
    float strip_height(const Lab& lab) const;
    bool draw_strip(const Lab& lab, Rect area);

    bool under_way(const Lab& lab) const { return session(lab).run != nullptr; }
    void lay_over(const Lab& lab);        // what was drawn, over the figure that it is about
    void follow(Lab& lab);                // once a frame, after the views
    void reveal(Lab& lab) const;          // what its passed exercises show, unless an attempt is under way
    bool restart(Lab& lab);               // Reset all while an attempt is under way: from its start again
    bool has_hint(const Lab& lab) const;  // one more to open
    void next_hint(const Lab& lab);
    // The attempt's start, which a single control goes back to; null: there is none under way.
    const State* start(const Lab& lab) const;
    void note(Journal& journal, const Lab& lab, const std::string& at);
    // Throws what replay() does, and nlohmann's for values of another shape.
    void restore(Lab& lab, const std::map<std::string, nlohmann::json>& values);
    void select(const Lab& lab, std::size_t exercise);
    void begin(Lab& lab, Prediction prediction);  // the selected exercise

  private:
    struct Session {  // of one lab
        std::size_t selected = 0;
        std::unique_ptr<ExerciseRun> run;
        bool again = false;                        // a passed or predicted exercise is to be predicted anew
        std::vector<double> draft;                 // of the prediction; empty: not touched yet
        std::map<std::string, std::string> typed;  // answers, by name
        ui::PlotState axes;
        std::size_t noted = 0;  // event groups of the run that the journal has
        int hints_seen = 0;     // of the run, when it was last drawn
    };
    const Session& session(const Lab& lab) const;
    Session& session(const Lab& lab);
    const Exercise* selected(const Lab& lab) const;
    const ExerciseRun* running(
        const Lab& lab) const;  // the selected one's attempt; null: it is not under way
    bool is_open(const Lab& lab, const Exercise& exercise) const;
    void finish(Lab& lab);    // the attempt has passed
    void do_again(Lab& lab);  // the selected one, which was passed

    bool draw_head(const Lab& lab, const Exercise& exercise, std::size_t index);
    void draw_closed(Lab& lab, const Exercise& exercise);
    void draw_ask(Lab& lab, const Exercise& exercise);
    void draw_running(Lab& lab, const ExerciseRun& run);
    void draw_passed(Lab& lab, const Exercise& exercise, const Evidence& evidence);
    void keep_explanation(Evidence evidence, const std::string& words);
    void draw_answers(Session& session, const Exercise& exercise);
    void draw_conditions(const Exercise& exercise, const std::vector<Condition>& conditions, bool verdicts);
    void draw_prediction(const Exercise& exercise, const Prediction& prediction,
                         const std::vector<double>& measured);
    void draw_hints(Session& session);
    void draw_evidence(Lab& lab, const Evidence& evidence);

    void edit_number(Session& session, const NumberPrediction& spec);
    void edit_choice(Session& session, const ChoicePrediction& spec);
    void edit_curve(Session& session, const CurvePrediction& spec, Rect area);

    ui::Context& context_;
    Progress progress_;
    Hooks hooks_;
    std::map<std::string, Session, std::less<>> sessions_;  // by lab
};

// A ring on its track, `share` of it clockwise from noon; full: a disc with a tick.
void draw_ring(const ui::Context& context, Point center, float share);

}  // namespace fp8lab
