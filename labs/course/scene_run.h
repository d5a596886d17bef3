// Applies scenes to labs, with or without a window, and makes scenes from labs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/lesson/scene.h"
#include "labs/course/link.h"
#include "labs/lab.h"

namespace fp8lab {

// The lab of the scene. Throws input_error with the scene's file, line and column where there is none.
const LabEntry& lab_of(const Scene& scene);

// Sets the default parameters, then those of the scene. Fields of a newer schema that the lab does not have
// are left out and named in the result, after Scene::notices. Tensors whose values are in the scene are
// written to `folder`, which is created. Does not train: the caller does Scene::steps. Throws input_error
// with line and column: a scene of another lab, or a field, value, metric or figure that the lab has neither
// in the scene's state, nor in its second state, nor at other values of the knob; then the lab is unchanged.
std::vector<std::string> apply_scene(Lab& lab, const Scene& scene, const std::filesystem::path& folder);

// A new lab in the state of the scene, trained and at rest.
std::unique_ptr<Lab> run_scene(const Scene& scene, const std::filesystem::path& folder);

// Compares the scene's headline with the lab: empty where they agree, else a sentence.
std::string headline_problem(const Scene& scene, const Lab& lab);

// A scene of the lab's present state. It has only fields that differ from the defaults.
Scene scene_of(Lab& lab, const std::string& title, const std::string& notes = {});

// What opens the lab's present state (labs/course/link.h). Throws input_error for a lab that shows a file of this machine.
Link link_of(Lab& lab);

// Scene::sentence with its {name}s filled in: "11 of 16 steps saturate".
std::string sentence_text(const Scene& scene, Lab& lab);
// Scene::notes with the numbers of ten trainings filled in (core/lesson/runs.h); as they are where this version does not
// know one.
std::string notes_text(const Scene& scene);
// Whether the lab has every number of the sentence by now; one that trains has some only after a step.
bool sentence_is_known(const Scene& scene, Lab& lab);
// The same for any text, for example the label of a number: "scale = {scale_rule}" becomes "scale = 448 /
// amax".
std::string filled_text(std::string_view text, Lab& lab);
// A metric or field as text: "34.7 dB", "11", "e4m3". Where the lab has none of that name at present: "does
// not apply", or "-" in a lab that trains and may still compute it.
std::string number_text(Lab& lab, std::string_view name);

}  // namespace fp8lab
