// A scene on a lab: into the window, without one, and back out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/lesson/scene.h"
#include "labs/lab.h"

namespace fp8lab {

// The lab that the scene is about. Throws input_error with the scene's file, line and column: there is none.
const LabEntry& lab_of(const Scene& scene);

// Default parameters, then the scene's. Fields of a newer schema that the lab does not have are left out and
// named in what is returned, after Scene::notices. Tensors whose values are in the scene are written to
// `folder` (created). Does not train: the caller does Scene::steps. Throws input_error with line and column:
// another lab's scene, a field, value, metric or figure that the lab does not have, neither in the scene's
// state, nor in the one that it is compared with, nor where the scene's knob moves; the lab is then as it
// was.
std::vector<std::string> apply_scene(Lab& lab, const Scene& scene, const std::filesystem::path& folder);

// A lab of its own, brought there and trained, until it rests.
std::unique_ptr<Lab> run_scene(const Scene& scene, const std::filesystem::path& folder);

// What the scene's headline says against what the lab has: empty where they agree, else a sentence.
std::string headline_problem(const Scene& scene, const Lab& lab);

// The lab as it stands. Only fields that differ from the lab's defaults are written down.
Scene scene_of(Lab& lab, const std::string& title, const std::string& notes = {});

// Scene::sentence with its {name}s filled in: "11 of 16 steps saturate".
std::string sentence_text(const Scene& scene, Lab& lab);
// The same for any text, a number's label for one: "scale = {scale_rule}" becomes "scale = 448 / amax".
std::string filled_text(std::string_view text, Lab& lab);
// A metric, or a field, as people read it: "34.7 dB", "11", "e4m3". Where the lab has none of that name now:
// "does not apply"; "-" in a lab that trains, where it may still come.
std::string number_text(Lab& lab, std::string_view name);

}  // namespace fp8lab
