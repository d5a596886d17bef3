// L17's view without a display: every control acts on the model, in the parts methods and kv.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "labs/serve/view.h"
#include "tests/all.h"
#include "tests/gui/screens/lab_screen.h"

using namespace fp8lab;
using namespace fp8lab::serve;

namespace {

using Screen = test::LabScreen<ServeLab, ServeView>;

// The mark of a scheme to nearest in the figure of methods.
Point mark_of(const Screen& screen, std::string_view scheme) {
    const auto& stems = screen.lab->stems->stems;
    const auto stem = std::ranges::find(stems, scheme, [](const Stem& one) { return one.scheme->id; });
    return screen.place("serve.methods", methods_figure(*screen.lab->stems, *screen.lab->chosen),
                        static_cast<double>(stem - stems.begin()) + 1, stem->of(Method::nearest));
}

void wait(Screen& screen) {
    while (screen.lab.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    screen.frame();
}

}  // namespace

TEST_CASE("L17: a mark chooses its scheme, a switch what is lowered, and the numbers follow") {
    Screen screen;
    CHECK(screen.words("serve.result") == "0.0173");
    screen.click(mark_of(screen, "mxfp4"));
    CHECK(screen.lab->params.scheme == "mxfp4");
    screen.click("lower.1");
    CHECK(screen.lab->params.lower == "both");
    screen.set("scheme=nvfp4");
    screen.set("method=gptq");
    CHECK(screen.words("serve.result") == "0.0269");
    CHECK(screen.words("serve.layers_title") ==
          "GPTQ raises the error of every weight matrix and lowers the error of every output");
    CHECK(screen.gui.context.regions.contains("layers"));
    CHECK(screen.gui.context.regions.contains("gains"));
}

TEST_CASE("L17: the order of columns is behind More, and a choice where the method is GPTQ") {
    Screen screen({860, 1600});
    screen.set("method=gptq");
    screen.click("serve.more");
    screen.click("order.1");
    CHECK(screen.lab->params.order == "act");
    CHECK(screen.words("serve.result") == "0.00111");
    screen.set("method=awq");
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK((screen.shows("rows") && !screen.shows("order.1")));
}

TEST_CASE("L17: the amax moves by powers of two where it has an effect, and shows its own figure") {
    Screen screen;
    CHECK_FALSE(screen.shows("amax"));
    screen.set("lower=both");
    REQUIRE(screen.shows("amax"));
    CHECK((screen.shows("serve.methods") && !screen.shows("serve.amax")));
    screen.drag("amax", 40);
    const double factor = screen.lab->params.amax;
    CHECK(factor > 1);
    CHECK(std::exp2(std::round(std::log2(factor))) == factor);
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK((screen.shows("serve.amax") && !screen.shows("serve.methods")));
}

TEST_CASE("L17: more layers than have room scroll, and a refusal is a sentence in place of the figures") {
    Screen screen;
    screen.set("model=own");  // of other parts
    CHECK_FALSE(screen.shows("model"));
    screen.lab.set_wake([] {});  // as in a window: a refusal is told
    screen.set("network=own");
    CHECK(screen.shows("path"));
    screen.set("path=" FP8LAB_SOURCE "/no/such.safetensors");
    wait(screen);
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK(screen.lab->problem.find("such.safetensors") != std::string::npos);
    CHECK_FALSE(screen.shows("serve.methods"));
    screen.set("path=" FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors");
    wait(screen);
    screen.frame();
    CHECK(screen.lab->problem.empty());
    CHECK(screen.shows("serve.methods"));
    CHECK(screen.lab->chosen->layers.size() == 9);
}

TEST_CASE("L17: a computation of seconds shows how far it is, and stops when it is asked to") {
    Screen screen;
    screen.lab.set_wake([] {});
    screen.set("path=" FP8LAB_SOURCE "/assets/models/transformer-s1.safetensors");
    screen.set("network=own");
    REQUIRE(screen.lab->stems.busy());
    REQUIRE(screen.shows("serve.share"));
    screen.click("serve.share");
    CHECK(screen.lab->stems.stopped());
    wait(screen);
    screen.click("serve.share");
    CHECK(screen.lab->stems.busy());
    screen.set("network=digits-s1");
    wait(screen);
    screen.gui.context.probes.items.clear();
    screen.frame();
    CHECK_FALSE(screen.shows("serve.share"));
    CHECK(screen.words("serve.result") == "0.0173");
}

TEST_CASE("L17: a row of the table and a place of the figure choose a cache and the size of K") {
    Screen screen;
    screen.set("experiment=kv");
    CHECK(screen.words("serve.result") == "0.00213");
    screen.click("serve.cache.int8");
    CHECK(screen.lab->params.cache == "int8");
    screen.click(screen.place("serve.kv_scale", kv_figure(*screen.lab->kv), 64, 0.1));
    CHECK(screen.lab->params.k_factor == 64);
    screen.drag("k_factor", 400);
    CHECK(screen.lab->params.k_factor == 256);
    CHECK(screen.gui.context.regions.contains("caches"));
    CHECK(screen.gui.context.regions.contains("saturated"));
}
