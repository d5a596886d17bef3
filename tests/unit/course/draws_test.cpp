// Headlines that are computed from one random draw: each names its seed, or is the same for every seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "labs/course/scene_run.h"
#include "labs/lab.h"
#include "labs/list.h"
#include "labs/seeded.h"
#include "labs/set_fields.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

constexpr int kSeeds = 10;

// The field that the draws of a lab follow from; empty: it draws nothing.
std::string seed_field(Lab& lab) {
    for (const char* name : {"seed", "kv_seed"}) {
        const auto fields = lab.fields();
        if (find_field(fields, name) != nullptr) return name;
    }
    return {};
}

// The headlines that change with the seed and do not name it. A lab that trains does three steps with each.
std::vector<std::string> unnamed(Lab& lab) {
    const std::string field = seed_field(lab);
    // L16 trains another of the ten seeds in each deal, and its titles name the one that is trained: the shift is one for all.
    std::optional<int> shift;
    std::map<std::string, std::string> first;  // by figure
    std::vector<std::string> out;
    const auto fields = lab.fields();
    const int seeds =
        std::min(kSeeds, static_cast<int>(find_field(fields, field)->max));  // L18 has five models
    for (int seed = 1; seed <= seeds; ++seed) {
        set_fields(lab, std::vector{field + "=" + std::to_string(seed)});
        if (lab.live()) {
            lab.act("restart");
            lab.advance(3);
        }
        for (const Figure& figure : lab.figures()) {
            // Of a tensor in the newest step: a caption, which has no room for more.
            if (lab.live() && figure.id == "histogram") continue;
            int trained = 0;
            for (int s = 1; s <= kSeeds; ++s)
                if (figure.title.ends_with(seed_text(s))) trained = s;
            const int by = (trained - seed + kSeeds) % kSeeds;
            const bool named = trained > 0 && by == shift.value_or(by);
            if (named) shift = by;
            const std::string& before = first.try_emplace(figure.id, figure.title).first->second;
            if (!named && figure.title != before)
                out.push_back(figure.id + ", seed " + std::to_string(seed) + ": " + figure.title);
            if (!named) continue;
            const std::string bare = figure.title.substr(0, figure.title.size() - seed_text(trained).size());
            if (std::ranges::count(figure.words, bare + ".") > 0) out.push_back("words: " + bare);
        }
    }
    return out;
}

// Each experiment of a lab, or the lab as it starts.
void check_experiments(const LabEntry& entry) {
    const auto lab = entry.make();
    if (seed_field(*lab).empty()) return;
    const auto fields = lab->fields();
    const Field* experiment = find_field(fields, "experiment");
    std::vector<std::string> settings = {""};
    if (experiment != nullptr) {
        settings.clear();
        for (const Choice& choice : experiment->choices) settings.push_back("experiment=" + choice.id);
    }
    for (const std::string& setting : settings) {
        CAPTURE(setting);
        if (!setting.empty()) set_fields(*lab, std::vector{setting});
        if (lab->info().id == "experts")  // a training of the fewest steps has all its titles
            set_fields(*lab, std::vector<std::string>{"steps=100"});
        for (const std::string& headline : unnamed(*lab)) FAIL_CHECK(headline);
    }
}

void check_scenes(std::string_view id) {
    const Scratch scratch;
    for (const auto& path : shipped_scenes()) {
        const Scene scene = read_scene(path);
        if (find_lab(scene.lab).id != id) continue;
        const auto lab = find_lab(scene.lab).make();
        if (seed_field(*lab).empty() || lab->live()) return;
        CAPTURE(scene.title);
        apply_scene(*lab, scene, scratch.path);
        for (const std::string& headline : unnamed(*lab)) FAIL_CHECK(headline);
    }
}

}  // namespace

// A test of its own for each lab of the list, so that they run at once.
#define FP8LAB_DRAWS(lab)                                                                 \
    TEST_CASE("headlines of " #lab ": true of each of ten seeds, or named by the seed") { \
        check_experiments(lab::entry());                                                  \
        if (std::getenv("FP8LAB_TEST_ALL") != nullptr) check_scenes(lab::entry().id);     \
    }
FP8LAB_LABS(FP8LAB_DRAWS)
#undef FP8LAB_DRAWS

TEST_CASE("a headline that names its seed says it in the words too, and only where it was asked") {
    std::vector<Figure> figures(2);
    figures[0].id = "data", figures[0].title = "2 % are lost", figures[0].words = {"2 % are lost.", "More."};
    figures[1].id = "other", figures[1].title = "Nothing is drawn";
    const auto named = of_seed(7, figures, {"data"});
    CHECK(named[0].title == "2 % are lost (seed 7)");
    CHECK(named[0].words == std::vector<std::string>{"2 % are lost (seed 7).", "More."});
    CHECK(named[1].title == "Nothing is drawn");
    CHECK(of_seed(7, figures)[1].title == "Nothing is drawn (seed 7)");
    CHECK(of_seed(7, {Figure{}})[0].title.empty());
}
