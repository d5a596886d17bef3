// What the shell asks of its host, as the page of a browser answers: downloads, links, reloads.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "labs/course/link.h"
#include "tests/gui/screens/shell_desk.h"

using namespace fp8lab;

namespace {

std::string field(Lab& lab, const std::string& name) {
    const auto fields = lab.fields();
    return field_text(*find_field(fields, name));
}

struct Page {
    Scratch scratch;
    std::map<std::string, std::size_t> downloads;  // name, bytes
    Host host{.reloads = true,
              .deliver =
                  [this](const std::filesystem::path& file, std::span<const std::byte> bytes) {
                      downloads[file.filename().string()] = bytes.size();
                  },
              .link = [](std::string_view fragment) { return "https://here/#" + std::string(fragment); }};
    ProfileFolders folders() const { return scratch.path; }
};

std::string toast(test::ShellDesk& desk) {
    const auto& items = desk.gui.context.probes.items;
    const auto found = items.find("toast");
    return found == items.end() ? "" : found->second.words;
}

}  // namespace

TEST_CASE("a reload goes on where the page was, without a question, and tells once which training it ended") {
    const Page page;
    {
        test::ShellDesk desk({1440, 900}, test::explored(), page.folders(), page.host);
        desk.shell.open("train");
        desk.frame();
        desk.shell.lab()->advance(120);
        desk.frame();
        desk.shell.rest(0);
    }
    {
        test::ShellDesk desk({1440, 900}, test::explored(), page.folders(), page.host);
        CHECK_FALSE(desk.shows("recovery"));
        REQUIRE(desk.shell.lab() != nullptr);
        CHECK(desk.shell.lab()->info().id == "train");
        CHECK(toast(desk).find("L8 ended at step 100 or up to 99 later") != std::string::npos);
        desk.shell.open("");
        desk.frame();
        desk.shell.rest(0);
    }
    test::ShellDesk desk({1440, 900}, test::explored(), page.folders(), page.host);
    CHECK(desk.shell.lab() == nullptr);
    CHECK(toast(desk).empty());
}

TEST_CASE(
    "a link opens the lab as it stood, whatever was set here, or says what is wrong and changes nothing") {
    const Page page;
    test::ShellDesk desk({1440, 900}, test::explored(), page.folders(), page.host);
    desk.shell.open_link("lab=L5&margin=1");
    desk.frame();
    Lab& lab = *desk.shell.lab();
    CHECK(lab.info().id == "delayed");
    CHECK(field(lab, "margin") == "1");
    desk.shell.open_link("lab=L5&history=4");  // of a lab whose margin was the default
    CHECK(field(lab, "history") == "4");
    CHECK(field(lab, "margin") == "0");
    const auto before = lab.state();
    for (const char* bad :
         {"lab=L5&history=16&margin=many", "lab=L99", "lab=%", "scene=nowhere", "nonsense"}) {
        CAPTURE(bad);
        desk.shell.open_link(bad);
        desk.frame();
        CHECK(toast(desk).find("The link was not opened") != std::string::npos);
        CHECK(lab.state() == before);
    }
    desk.shell.open_link("scene=L05-b-ramp-real");
    CHECK(field(lab, "scenario") == "ramp");
}

TEST_CASE("what an export makes is handed over, and nothing is written into a folder") {
    Page page;
    test::ShellDesk desk({1440, 900}, test::explored(), page.folders(), page.host);
    desk.shell.open("bits");
    desk.frame();
    desk.key(ui::Key::e, true);
    desk.frame();
    REQUIRE(desk.shows("export.save"));
    CHECK_FALSE(desk.shows("export.folder"));
    desk.click("export.save");
    CHECK_FALSE(page.downloads.empty());
    for (const auto& [name, bytes] : page.downloads) {
        CHECK(name.ends_with(".png"));
        CHECK(bytes > 1000);
    }
    CHECK_FALSE(desk.shows("export.save"));
}
