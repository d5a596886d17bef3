// L13's view without a display: every control acts on the model, in every state and size.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "labs/transformer/view.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::transformer;

namespace {

struct Screen : test::LabScreen<TransformerLab, TransformerView> {
    using LabScreen::LabScreen;
    void wait() {
        for (int i = 0; i < 20000 && lab.busy(); ++i) {
            frame();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        REQUIRE_FALSE(lab.busy());
        frame();
    }
};

}  // namespace

TEST_CASE("L13: a press on a box selects its tensor, on a cell the tensor of that row, arrow keys go on") {
    Screen screen({860, 800});
    CHECK(screen.lab.params().tensor == "1.down.x");
    screen.click("transformer.block.1");
    CHECK(screen.lab.params().tensor == "2.down.x");
    screen.click(
        Point{screen.gui.center("transformer.box.qkv").x, screen.gui.rect("transformer.box.qkv").y0 + 20});
    CHECK(screen.lab.params().tensor == "2.qkv.x");
    const Rect column = screen.gui.rect("transformer.box.out");
    screen.click(Point{column.x0 + 10, column.y0 + 0.7F * column.height()});  // dy lost
    CHECK(screen.lab.params().tensor == "2.out.dy");
    screen.click("transformer.tensor.1");
    CHECK(screen.lab.params().tensor == "2.out.w");
    const Rect head = screen.gui.rect("transformer.box.head");
    screen.click(Point{head.x0 + 10, head.y0 + 20});
    CHECK(screen.lab.params().tensor == "head.w");
    screen.click("transformer.block.0");
    CHECK(screen.lab.params().tensor == "1.down.x");
}

TEST_CASE("L13: run, pause, align, reset, the switches act on arm B") {
    Screen screen({860, 800});
    screen.set("batch=4");
    screen.click("transformer.align");
    CHECK(screen.lab.params().align_step == 0);  // no step is done
    screen.click("transformer.step");
    screen.wait();
    CHECK(screen.lab.step() == 1);
    screen.click("transformer.align");
    CHECK(screen.lab.params().align_step == 1);
    screen.click("transformer.run");
    for (int i = 0; i < 20000 && screen.lab.step() < 6; ++i) screen.frame();
    screen.click("transformer.run");  // pauses
    screen.wait();
    CHECK(screen.lab.step() >= 6);
    CHECK(screen.lab.aligned_at() == 1);
    CHECK(screen.words("transformer.block.title").find("of what enters down becomes 0") != std::string::npos);
    screen.click("transformer.attention.1");
    screen.click("transformer.act.1");
    CHECK(arm_b_text(screen.lab.params()) == recipe_text(parse_recipe("delayed:scope=attn:act=smooth")));
    screen.click("transformer.task.1");
    CHECK(screen.lab.waiting() == std::vector<std::string>{"task"});
    screen.click("transformer.reset");
    CHECK(screen.lab.step() == 0);
    CHECK(screen.lab.spec().task == TaskKind::copying);
}

TEST_CASE("L13: seventeen presses of the full stop are seventeen steps, a typed step is run to") {
    Screen screen({860, 800});
    screen.set("batch=4");
    std::vector<std::string> told;
    screen.lab.set_listener([&](std::string_view action) { told.emplace_back(action); });
    for (int i = 0; i < 17; ++i) {
        CHECK(screen.view.key(screen.gui.context, ui::Key::period));
        screen.frame();
    }
    screen.wait();
    CHECK(screen.lab.step() == 17);
    CHECK(told == std::vector<std::string>(17, "step"));
    const auto type = [&](const char* text) {
        screen.click("transformer.at_step");
        screen.frame();
        ui::feed_text(text);
        screen.frame();
        test::tap(ui::Key::enter, [&] { screen.frame(); });
        screen.wait();
    };
    type("22");
    CHECK(screen.lab.step() == 22);
    CHECK(told.back() == "run to 22");
    type("5");  // is past
    CHECK(screen.lab.step() == 22);
    CHECK(told.back() == "run to 22");
    CHECK(screen.words("transformer.said").find("Reset") != std::string::npos);
    type("601");
    CHECK(told.back() == "run to 22");
    CHECK(screen.words("transformer.said").find("600") != std::string::npos);
}

TEST_CASE("L13: before a run there are recorded curves under their name, and how long a run takes") {
    Screen screen({860, 800});
    CHECK(screen.words("transformer.loss.recorded").find("recorded") != std::string::npos);
    CHECK(screen.words("transformer.time").starts_with("about "));
    screen.set("batch=4");
    screen.click("transformer.step");
    screen.wait();
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK_FALSE(screen.shows("transformer.loss.recorded"));
    CHECK(screen.words("transformer.time").ends_with(" left"));
}

TEST_CASE("L13: of copying the panel tells the steps to 99 %, and no gap of losses near 0 is drawn") {
    Screen screen({860, 800});
    screen.set("batch=4");
    screen.click("transformer.step");
    screen.wait();
    CHECK(screen.shows("transformer.gap"));
    CHECK(screen.words("transformer.gap_headline").ends_with(" %"));
    screen.click("transformer.reset");
    screen.set("task=copying");
    screen.click("transformer.step");
    screen.wait();
    CHECK_FALSE(screen.shows("transformer.gap"));
    CHECK(screen.words("transformer.gap_headline") == "–");
}

TEST_CASE("L13: with blocks of 128 attention stays in BF16, with BF16 nothing is narrow") {
    Screen screen({860, 800});
    screen.set("arm_b=block128");
    screen.click("transformer.attention.1");
    CHECK(screen.lab.params().attention == "bf16");
    screen.set("arm_b=bf16");
    screen.click("transformer.head.1");
    CHECK(screen.lab.params().head == "bf16");
}

TEST_CASE("L13: the stage is whole at every size") {
    for (const ImVec2 size : {ImVec2{560, 536}, {860, 780}, {944, 540}, {1500, 1000}})
        for (const float scale : {0.75F, 1.0F, 2.0F})
            for (const char* task : {"task=text", "task=copying"}) {
                Screen screen({size.x * scale, size.y * scale}, scale);
                CAPTURE(size.x);
                CAPTURE(scale);
                screen.set(task);
                CHECK(test::draw_data_fault().empty());
                const Rect box = screen.gui.rect("transformer.box.head"),
                           first = screen.gui.rect("transformer.box.norm1");
                CHECK(box.x1 <= screen.area.x1 + 1);
                CHECK(first.x0 >= screen.area.x0);
                CHECK(box.width() > 38 * scale);
                CHECK(screen.gui.rect("transformer.loss").height() > 50 * scale);
                CHECK(screen.shows("transformer.text") == (size.y > 700));
                if (size.x < 700) {
                    screen.click("transformer.pictures.1");
                    CHECK(screen.shows("transformer.histogram"));
                    screen.click("transformer.pictures.2");
                    CHECK(screen.shows("transformer.text"));
                } else {
                    CHECK(screen.gui.rect("transformer.histogram").height() > 60 * scale);
                }
            }
}

TEST_CASE(
    "L13: without a GPU the recorded steps are beside the histogram, a bar an arm, each card and each "
    "shape") {
    for (const ImVec2 stage : {ImVec2{860, 800}, {900, 560}, {640, 560}}) {
        Screen screen(stage);
        const auto text = [&](const std::string& probe) {
            return screen.gui.context.probes.items.at(probe).words;
        };
        const std::string tabs = stage.x > 660 ? "transformer.picture." : "transformer.pictures.";
        const bool low = stage.y < 700, narrow = stage.x <= 660;
        screen.click(tabs + std::to_string(1 + (low ? 1 : 0) + (narrow ? 1 : 0)));
        CHECK(text("transformer.recorded.title").find("times as fast as bf16") != std::string::npos);
        for (const char* recipe : {"bf16", "delayed", "current", "rowwise", "block128"})
            CHECK(text(std::string("transformer.recorded.") + recipe) != "");
        const std::string blocks = text("transformer.recorded.how");
        CHECK(blocks.find("12 blocks, d 768") != std::string::npos);
        screen.click("transformer.recorded_shape.2");
        CHECK(text("transformer.recorded.how").find("held-out loss") != std::string::npos);
    }
}

TEST_CASE("L13: a picture that was chosen stays when the window's size changes which there are beside it") {
    Screen screen({860, 800});
    screen.click("transformer.picture.1");
    REQUIRE(screen.shows("transformer.recorded.title"));
    for (const float height : {560.0F, 800.0F}) {  // lower, the text of the arms is a picture as well
        screen.area.y1 = screen.area.y0 + height;
        screen.gui.context.probes.items.clear();
        screen.frame();
        screen.frame();
        CAPTURE(height);
        CHECK(screen.shows("transformer.picture.2") == (height < 700));
        CHECK(screen.shows("transformer.recorded.title"));
    }
}
