// A scene: a state of a lab with a title, a sentence and notes. Instructors prepare scenes, students receive
// them, and lectures are made of them. Files *.f8scene are UTF-8 JSON, at most 8 MiB:
//
//   {
//     "fp8lab_scene": 1,                     the schema
//     "version": "0.1.0",                    of the application that wrote it
//     "lab": "delayed",
//     "title": "The spike",                  2-4 words: scene strip, lists
//     "sentence": "{a.saturated_steps} of {steps} steps saturate",   {metric} or {field}
//     "notes": "...",                        for the presenter; {runs ...}: a number of core/lesson/runs.h
//     "state": {"scenario": "spike", "seed": 5},       fields that differ from the lab's defaults
//     "tensors": [{"field": "file", "path": "w.npy"}], beside the scene; or {"field", "shape", "values"}
//     "steps": 2000,                         of a training lab, before it is shown
//     "locked": ["seed"], "hidden": ["margin"],        controls that cannot be moved, or seen
//     "predict": {"question": "...", "choices": ["2", "4"], "answer": 1},  asked before anything is seen
//     "figure": "timeline",                  what presentation shows; else the first
//     "numbers": [{"metric": "a.saturated_steps", "label": "steps saturate"}],   at most four;
//                                            a label may contain {metric}s, which follow the knob
//     "knob": "margin",                      the field that Up and Down move in presentation
//     "compare": {"margin": 1},              key B: with these fields, and back
//     "headline": {"metric": "a.saturated_steps", "value": 11, "tolerance": 0}   `check` compares it
//   }
//
// Unknown members are kept when the scene is written again. A scene of a newer schema is opened as far as it
// is known; Scene::notices says what is not.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/json_places.h"

namespace fp8lab {

inline constexpr int kSceneSchema = 1;
inline constexpr std::size_t kLargestScene = std::size_t{8} << 20;  // also of a deck

// What an instructor says, asks and does at a scene of a deck, a sentence or two each; empty: nothing.
struct Cue {
    int minutes = 0;  // planned; 0: the deck has no times
    std::string say, ask, act;
};

struct Scene {
    struct Number {
        std::string metric, label;
    };
    struct Vote {
        std::string question;
        std::vector<std::string> choices;  // 2-4
        int answer = -1;                   // -1: none is right
    };
    struct Headline {
        std::string metric;
        double value = 0;
        double tolerance = 0;  // relative
        std::string word;      // where the metric is one
    };
    struct Tensor {
        std::string field;               // that names a file
        std::string path;                // relative to the scene's folder; or
        std::vector<std::size_t> shape;  // values that are in the scene itself
        std::vector<float> values;
    };

    std::string where;  // its file, for messages
    std::filesystem::path folder;
    int schema = kSceneSchema;
    std::string lab, title, sentence, notes, figure, knob;
    nlohmann::ordered_json state = nlohmann::ordered_json::object();
    std::vector<Tensor> tensors;
    int steps = 0;
    std::vector<std::string> locked, hidden;
    std::optional<Vote> predict;
    std::vector<Number> numbers;
    nlohmann::ordered_json compare;  // null: nothing to compare with
    std::optional<Headline> headline;
    Cue cue;  // of the deck that shows it, not of its file

    std::vector<std::string> notices;  // what this version does not know of it, as sentences
    nlohmann::ordered_json document;   // as read: with the members that are not known, in their order
    JsonPlaces places;
};

// Throws input_error: no JSON (line and column), a member missing or of a wrong type (line and column), too
// large. labs/course/scene_run.h checks whether the lab has the fields.
Scene parse_scene(std::string_view text, const std::string& where);
// Also throws input_error for a file that is not regular; it never waits for a pipe or a device.
Scene read_scene(const std::filesystem::path& path);

// The file's text. Text in this form that parse_scene() read is returned byte for byte.
std::string scene_text(const Scene& scene);

// A scene in one line of plain ASCII, for chats and mails: "f8scene:" and base64. is_scene_line() looks at
// the first word only; scene_from_line() throws as parse_scene() does.
std::string scene_line(const Scene& scene);
bool is_scene_line(std::string_view text);
Scene scene_from_line(std::string_view text);

// A lecture: scenes in order.
//
//   {
//     "fp8lab_deck": 1,
//     "title": "FP8 in an hour",
//     "minutes": 60,                         those of its scenes together; left out: a deck without times
//     "prepare": ["Run `fp8lab doctor`."],   before the lecture, a sentence or two each; `code` in backticks
//     "scenes": [
//       {"scene": "L05-a-trace",             a path relative to the deck, else a shipped scene (".f8scene" may be left out)
//        "minutes": 4,
//        "say": "...",                       one sentence to say
//        "ask": "...",                       where the scene has no vote, or after it
//        "do": "...",                        live, by which keys
//        "notes": "..."}                     instead of the scene's
//     ]
//   }
struct Deck {
    std::string title;
    int minutes = 0;  // 0: no times
    std::vector<std::string> prepare;
    std::vector<Scene> scenes;
    std::vector<std::string> notices;

    // The planned minute at which a scene begins; of scenes.size() the end.
    int begins_at(std::size_t scene) const;
};
// Also throws input_error where the minutes of the scenes are not those of the deck.
Deck parse_deck(std::string_view text, const std::string& where, const std::filesystem::path& folder);
// Reads a deck; a single .f8scene or a folder of scenes is one too. Throws as read_scene().
Deck read_deck(const std::filesystem::path& path);

// What --scene, --present and `run` take: a path, or the name of a shipped scene or deck ("L05-b-ramp-real").
// Throws input_error naming the shipped ones.
std::filesystem::path find_scene(const std::string& name);

// The file for a name in a deck in `folder`: one of that folder, else a shipped one; empty: there is none.
std::filesystem::path deck_scene(const std::filesystem::path& folder, const std::string& name);

// The scenes and decks that come with the application, by file name.
std::vector<std::filesystem::path> shipped_scenes();
std::vector<std::filesystem::path> shipped_decks();

}  // namespace fp8lab
