// L11's view without a display: every control acts on the model, in every experiment and size.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "core/base/rng.h"
#include "core/files/files.h"
#include "core/tensors/safetensors.h"
#include "labs/lower/view.h"
#include "tests/gui/screens/lab_screen.h"
#include "tests/scratch.h"

using namespace fp8lab;
using namespace fp8lab::lower;

namespace {

using Screen = test::LabScreen<LowerLab, LowerView>;

}  // namespace

TEST_CASE("L11: the switch shows one experiment, its figures and its fields") {
    Screen screen;
    CHECK((screen.shows("lower.pareto") && screen.shows("uniform") && !screen.shows("tau")));
    screen.click("experiment.2");
    CHECK(screen.lab->params.experiment == "cascade");
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK((screen.shows("lower.cascade") && screen.shows("lower.margins") && screen.shows("tau")));
    CHECK_FALSE(screen.shows("lower.pareto"));
    screen.set("experiment=kv");
    CHECK((screen.shows("lower.kv_memory") && screen.shows("lower.kv_error") && !screen.shows("network")));
    screen.gui.context.probes.items.clear();
    screen.set("experiment=tokens");
    CHECK((screen.shows("lower.tokens") && screen.shows("important") && !screen.shows("cache")));
    CHECK_FALSE(screen.shows("high_1"));
    screen.gui.context.probes.items.clear();
    screen.set("token_by=layers");
    CHECK((screen.shows("high_1") && screen.shows("high_8") && !screen.shows("important")));
    screen.click("high_5");
    CHECK(screen.lab->params.wide.mask() == 16);
    screen.set("experiment=ranges");
    CHECK(
        (screen.shows("lower.outlier_ratio") && screen.shows("lower.contrast") && screen.shows("lower.w1")));
}

TEST_CASE("L11: a chip changes one layer and keeps the others, whatever gave them their format") {
    Screen screen;
    screen.set("uniform=nvfp4");
    screen.click("lower.w2");
    REQUIRE(screen.shows("lower.w2.0"));
    screen.click("lower.w2.3");  // the fourth of mix_formats()
    screen.frame();
    const Params& p = screen.lab->params;
    CHECK(p.uniform == "mix");
    CHECK(p.w[1] == "mxfp8");
    CHECK((p.w[0] == "nvfp4" && p.w[2] == "nvfp4" && p.w[3] == "nvfp4"));
    CHECK(p.a[1] == "w");
    CHECK(screen.lab->outcome->mix.activations[1]->id == "mxfp8");
    screen.click("lower.a2");
    screen.click("lower.a2.0");
    screen.frame();
    CHECK(screen.lab->outcome->mix.activations[1]->id == "bf16");
    screen.set("lower=weights");
    CHECK_FALSE(screen.shows("lower.a2"));
    CHECK(screen.lab->outcome->mix.activations[0]->id == "bf16");
}

TEST_CASE("L11: the mixes are shown when asked for, the knob sets a budget, a dot is taken") {
    Screen screen;
    CHECK(screen.lab->cloud() == nullptr);
    screen.drag("lower.mix", -80);
    CHECK(screen.lab->params.budget == kMostBits);  // not before
    screen.click("lower.reveal");
    screen.frame();
    REQUIRE(screen.lab->cloud() != nullptr);
    CHECK(screen.lab->cloud()->all.points.size() == 4096);
    screen.drag("lower.mix", -200);
    screen.frame();
    const double budget = screen.lab->params.budget;
    CHECK(budget < 8);
    const auto best = best_within(screen.lab->cloud()->all.points, budget);
    CHECK(screen.lab->outcome->mix == screen.lab->cloud()->all.mix(*best));
    screen.click("lower.take_best");
    screen.frame();
    CHECK(screen.lab->params.budget == kMostBits);
    CHECK(screen.lab->outcome->mix == screen.lab->cloud()->all.mix(*best));
    CHECK(screen.words("lower.result") == fmt::format("{:.2f}", screen.lab->outcome->own.bits));
}

TEST_CASE("L11: a press on a figure sets what is on its axis") {
    Screen screen({1100, 900});
    screen.set("experiment=ranges");
    const Rect ratios = screen.gui.rect("lower.outlier_ratio");
    screen.click(Point{ratios.x0 + 0.601F * ratios.width(), (ratios.y0 + ratios.y1) / 2});
    CHECK(screen.lab->params.outlier_ratio == 64);
    const Rect contrasts = screen.gui.rect("lower.contrast");
    screen.click(Point{contrasts.x0 + 0.834F * contrasts.width(), (contrasts.y0 + contrasts.y1) / 2});
    CHECK(screen.lab->params.contrast == 4);
    screen.set("experiment=tokens");
    const Rect shares = screen.gui.rect("lower.token_share");
    screen.click(Point{shares.x0 + 0.5F * shares.width(), shares.y0 + 30});
    CHECK(screen.lab->params.wide.share_pct == doctest::Approx(50).epsilon(0.02));
    screen.set("experiment=cascade");
    const Rect taus = screen.gui.rect("lower.tau");
    screen.click(Point{taus.x0 + 0.9F * taus.width(), taus.y0 + 4});
    CHECK(screen.lab->params.tau == doctest::Approx(0.9));
}

TEST_CASE("L11: the stage is whole at every size, in every experiment and for every network") {
    for (const ImVec2 size : {ImVec2{560, 536}, {860, 760}, {944, 540}, {1500, 1000}})
        for (const float scale : {0.75F, 1.0F, 2.0F})
            for (const std::string experiment : {"mix", "ranges", "cascade", "kv", "tokens"}) {
                Screen screen({size.x * scale, size.y * scale}, scale);
                CAPTURE(size.x);
                CAPTURE(scale);
                CAPTURE(experiment);
                screen.set("experiment=" + experiment);
                CHECK(test::draw_data_fault().empty());
                const char* figure = experiment == "mix"       ? "lower.pareto"
                                     : experiment == "ranges"  ? "lower.outlier_ratio"
                                     : experiment == "cascade" ? "lower.cascade"
                                     : experiment == "tokens"  ? "lower.token_share"
                                                               : "lower.kv_memory";
                const Rect plot = screen.gui.rect(figure);
                CHECK(plot.height() > 60 * scale);
                CHECK(plot.x1 <= screen.area.x1 + 1);
                CHECK(plot.y1 <= screen.area.y1 + 1);
                if (experiment != "mix") continue;
                const Rect chip = screen.gui.rect("lower.w4");
                CHECK(chip.y1 <= screen.area.y1 + 1);
            }
    Screen screen;
    for (const char* network : {"digits-2", "digits-3", "teacher"})
        for (const char* experiment : {"mix", "ranges", "cascade"}) {
            screen.set(std::string("experiment=") + experiment);
            screen.set(std::string("network=") + network);
            CHECK(test::draw_data_fault().empty());
        }
}

TEST_CASE("L11: more layers than have room scroll, and each has its chips") {
    const Scratch scratch;
    SafeTensors file;
    file.metadata = {{"command_line", "--task digits --activation relu --loss cross-entropy --seed 1"}};
    constexpr std::size_t kLayers = 12;
    for (std::size_t l = 1; l <= kLayers; ++l) {
        const std::size_t in = l == 1 ? 64 : 16, out = l == kLayers ? 10 : 16;
        SafeTensor w{{out, in}, std::vector<float>(in * out)};
        Rng(7, l).fill_normal(w.values, 0.3F);
        file.tensors["w" + std::to_string(l)] = w;
        file.tensors["b" + std::to_string(l)] = {{out}, std::vector<float>(out)};
    }
    write_file(scratch / "deep.safetensors", to_safetensors(file));
    Screen screen;
    set_field(screen.lab.fields(), "file=" + scratch / "deep.safetensors");
    screen.set("network=own");
    const auto visible = [&](const std::string& name) {
        const auto& item = screen.gui.context.probes.items.find(name)->second;
        return item.rect.y0 >= item.clip.y0 - 1 && item.rect.y1 <= item.clip.y1 + 1;
    };
    CHECK(visible("lower.w1"));
    CHECK_FALSE(visible("lower.w12"));
    screen.gui.move(screen.gui.center("lower.w1"));
    screen.frame();
    for (int i = 0; i < 12; ++i) {
        ImGui::GetIO().MouseWheel = -1;
        screen.frame();
    }
    CHECK(visible("lower.w12"));
    screen.click("lower.w12");
    screen.click("lower.w12.5");
    screen.frame();
    CHECK(screen.lab->outcome->mix.weights[11] == mix_formats()[5]);
    CHECK(screen.lab->outcome->mix.weights[10]->id == "mxfp8");
}

TEST_CASE("L11: the mark of a format in the figure is that format for every layer, a click chooses it") {
    Screen screen;
    screen.set("uniform=nvfp4");
    const Figure figure = screen.lab.figures().front();
    REQUIRE(figure.id == "pareto");
    const auto& rows = screen.lab->outcome->uniforms;
    const auto row =
        std::ranges::find_if(rows, [](const OutputRow& one) { return one.format->id == "mxfp8"; });
    REQUIRE(row != rows.end());
    const Point mark = screen.place("lower.pareto", figure, row->bits, row->score.divergence);
    screen.gui.move(mark);
    screen.frame();
    CHECK(ImGui::GetMouseCursor() == ImGuiMouseCursor_Hand);
    screen.click(mark);
    CHECK(screen.lab->params.uniform == "mxfp8");
}
