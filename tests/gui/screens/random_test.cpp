// Random input: mouse, wheel and keys over every lab. Nothing may throw, and few controls may
// remain that it never pressed. FP8LAB_RANDOM_S=600 does it for ten minutes (best with preset asan). And a walk
// through every place that presses whatever it meets there.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "core/base/units.h"
#include "labs/ui/fonts.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;

namespace {

// "home.card.bits" and "history.value" are controls; "L5.4" in "exercise.L5.4" too, but the 256 cells of a
// map ("0x7E") are one.
std::string kind_of(const std::string& probe) {
    std::string out;
    bool hex = false;
    for (const char c : probe) {
        const bool digit = (c >= '0' && c <= '9') || (hex && c >= 'A' && c <= 'F');
        hex = (hex && digit) || (c == 'x' && out.ends_with('#'));
        out += digit ? '#' : c;
    }
    return out;
}

class RandomInput {
  public:
    explicit RandomInput(unsigned seed) : random_(seed) {
        setenv("XDG_DOCUMENTS_DIR", desk_.scratch.path.c_str(), 1);
    }
    void act() {
        switch (pick(16)) {
            case 0:
                return key();
            case 1:
                return wheel();
            case 2:
                return pick(4) == 0 || fresh().empty() ? lab()
                                                       : click();  // mostly where there is nothing new
            case 5:
                return sheet();
            case 3:
                return drag();
            case 4:
                return resize();
            default:
                return click();
        }
    }
    // Home, every lab with its tabs, and what lies over them: presses each control that it meets for the first time.
    void walk() {
        static constexpr std::array kOver = {ui::Key::k, ui::Key::g, ui::Key::e,
                                             ui::Key::s, ui::Key::p, ui::Key::o};
        constexpr std::size_t kTabs = 3;
        for (std::size_t at = 0; at <= lab_registry().size(); ++at)
            for (std::size_t place = 0; place < kTabs + kOver.size(); ++place)
                press_the_rest([&] {
                    go(at, static_cast<Tab>(place % kTabs));
                    if (place >= kTabs) desk_.key(kOver[place - kTabs], true);
                    frame();
                });
    }
    double share_pressed() const {
        return static_cast<double>(pressed_.size()) /
               static_cast<double>(std::max<std::size_t>(1, seen_.size()));
    }
    std::size_t seen() const { return seen_.size(); }
    std::string never_pressed() const {
        std::string out;
        for (const std::string& name : seen_)
            if (!pressed_.contains(name)) out += " " + name;
        return out;
    }

  private:
    int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    void frame() {
        if (desk_.shell.fonts_outdated()) {
            ui::load_fonts(desk_.gui.context);
            ImGui::GetIO().Fonts->SetTexID(nullptr);
        }
        desk_.gui.context.probes.items.clear();
        desk_.frame();
        for (const auto& [name, item] : desk_.gui.context.probes.items)
            if (in_reach(item)) seen_.insert(kind_of(name));
    }
    // A part of it can be pointed at, and nothing lies over it.
    static bool in_reach(const ui::Probes::Item& item) {
        return item.live && std::min(item.rect.x1, item.clip.x1) - std::max(item.rect.x0, item.clip.x0) > 2 &&
               std::min(item.rect.y1, item.clip.y1) - std::max(item.rect.y0, item.clip.y0) > 2;
    }
    std::vector<std::string> there() const {
        std::vector<std::string> names;
        for (const auto& [name, item] : desk_.gui.context.probes.items)
            if (in_reach(item)) names.push_back(name);
        return names;
    }
    std::vector<std::string> fresh() const {
        std::vector<std::string> names = there();
        std::erase_if(names, [&](const std::string& name) { return pressed_.contains(kind_of(name)); });
        return names;
    }
    // Mostly what was not pressed yet.
    std::optional<Point> target() {
        std::vector<std::string> names = fresh();
        if (names.empty() || pick(4) == 0) names = there();
        if (names.empty()) return std::nullopt;
        return target(names[static_cast<std::size_t>(pick(static_cast<int>(names.size())))]);
    }
    Point target(const std::string& name) {
        const auto& item = desk_.gui.context.probes.items.find(name)->second;
        pressed_.insert(kind_of(name));
        return Point{(std::max(item.rect.x0, item.clip.x0) + std::min(item.rect.x1, item.clip.x1)) / 2,
                     (std::max(item.rect.y0, item.clip.y0) + std::min(item.rect.y1, item.clip.y1)) / 2};
    }
    void click() {
        if (const auto at = target()) return click(*at);
        key();
    }
    void click(Point at) {
        desk_.gui.move(at);
        frame();
        desk_.gui.mouse(true);
        frame();
        desk_.gui.mouse(false);
        frame();
    }
    void drag() {
        const auto at = target();
        if (!at) return;
        desk_.gui.move(*at);
        frame();
        desk_.gui.mouse(true);
        frame();
        desk_.gui.move(
            {at->x + static_cast<float>(pick(400) - 200), at->y + static_cast<float>(pick(200) - 100)});
        frame();
        desk_.gui.mouse(false);
        frame();
    }
    void wheel() {
        ui::feed_wheel(static_cast<float>(pick(7) - 3));
        frame();
    }
    void key() {
        static constexpr std::array kKeys = {
            ui::Key::tab,    ui::Key::enter,   ui::Key::space,   ui::Key::left,   ui::Key::right,
            ui::Key::up,     ui::Key::down,    ui::Key::escape,  ui::Key::escape, ui::Key::f1,
            ui::Key::f2,     ui::Key::f3,      ui::Key::f4,      ui::Key::f5,     ui::Key::f6,
            ui::Key::k,      ui::Key::g,       ui::Key::z,       ui::Key::y,      ui::Key::r,
            ui::Key::e,      ui::Key::s,       ui::Key::o,       ui::Key::b,      ui::Key::h,
            ui::Key::t,      ui::Key::n,       ui::Key::f,       ui::Key::p,      ui::Key::comma,
            ui::Key::period, ui::Key::digit_1, ui::Key::digit_3, ui::Key::digit_7};
        const int typed = ' ' + pick(90);  // no slash: what it saves stays among the scratch documents
        if (typed != '/') ui::feed_text(std::string(1, static_cast<char>(typed)));
        desk_.key(kKeys[static_cast<std::size_t>(pick(static_cast<int>(kKeys.size())))], pick(3) == 0,
                  pick(6) == 0);
        frame();
    }
    // What lies over the window, or fills it.
    void sheet() {
        static constexpr std::array kKeys = {ui::Key::k, ui::Key::g, ui::Key::e, ui::Key::s, ui::Key::p};
        desk_.key(kKeys[static_cast<std::size_t>(pick(kKeys.size()))], true);
        frame();
        for (int left = pick(20); left > 0; --left) click();
    }
    void lab() {
        const int at = pick(static_cast<int>(lab_registry().size()) + 1);
        go(static_cast<std::size_t>(at), static_cast<Tab>(at > 0 ? pick(3) : 0));
    }
    // Home is 0, the labs from 1 on.
    void go(std::size_t at, Tab tab) {
        desk_.key(ui::Key::escape);
        if (desk_.shell.presentation().active()) desk_.key(ui::Key::escape);
        desk_.shell.open(at == 0 ? "" : lab_registry()[at - 1].id);
        if (at > 0) desk_.shell.show(tab);
        frame();
        frame();
    }
    // First what the last press has brought, which the next may take away; then back to the place, until nothing
    // new is there.
    template <class Back>
    void press_the_rest(Back back) {
        constexpr int kMost = 200;
        std::vector<std::string> before;
        back();
        for (int left = kMost; left > 0; --left) {
            if (fresh().empty()) back();
            const std::vector<std::string> names = fresh();
            if (names.empty()) return;
            const auto is_new = [&](const std::string& name) {
                return std::ranges::find(before, name) == before.end();
            };
            const auto newest = std::ranges::find_if(names, is_new);
            before = there();
            click(target(newest == names.end() ? names.front() : *newest));
        }
    }
    void resize() {
        static const std::array<ImVec2, 4> kSizes = {
            ImVec2{1024, 640}, {1440, 900}, {1440, 900}, {1920, 1080}};
        ImGui::GetIO().DisplaySize = kSizes[static_cast<std::size_t>(pick(4))];
        frame();
    }

    std::mt19937 random_;
    test::ShellDesk desk_{{1440, 900}};
    std::set<std::string> seen_, pressed_;
};

}  // namespace

TEST_CASE("random input over all labs throws nothing and presses two in five controls that it meets") {
    const char* wanted = std::getenv("FP8LAB_RANDOM_S");
    const double seconds = wanted == nullptr ? 0 : std::atof(wanted);
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    long events = 0;
    RandomInput input(20261121);
    while (wanted == nullptr ? events < 500 : elapsed() < seconds) {
        input.act();
        ++events;
    }
    MESSAGE(events << " events, " << 100 * input.share_pressed()
                   << " % of the controls pressed; not:" << input.never_pressed());
    CHECK(input.share_pressed() > 0.4);
    if (seconds >= 600) CHECK(input.share_pressed() >= 0.95);
}

TEST_CASE("a walk through every place throws nothing and presses 85 % of the controls that it meets") {
    RandomInput input(1);
    input.walk();
    MESSAGE(input.seen() << " controls, " << 100 * input.share_pressed()
                         << " % pressed; not:" << input.never_pressed());
    CHECK(input.seen() > 300);
    CHECK(input.share_pressed() >= 0.85);
}
