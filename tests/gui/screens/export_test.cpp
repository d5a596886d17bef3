// Ctrl+E: figures, report and submission as files, without a display.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/shell/export/png.h"
#include "core/files/files.h"
#include "core/lesson/bundle.h"
#include "tests/gui/screens/shell_desk.h"
#include "tests/unit/made_evidence.h"

using namespace fp8lab;

namespace {

namespace fs = std::filesystem;

// A home of the test's own, so that nothing lands in the person's documents.
struct Documents {
    Documents() { ::setenv("XDG_DOCUMENTS_DIR", scratch.path.c_str(), 1); }
    ~Documents() { ::unsetenv("XDG_DOCUMENTS_DIR"); }
    std::set<std::string> files() const {
        std::set<std::string> out;
        std::error_code none;
        for (const auto& entry : fs::directory_iterator(scratch.path / "fp8lab", none))
            out.insert(entry.path().filename().string());
        return out;
    }
    std::string text(const std::string& name) const { return read_text(scratch.path / "fp8lab" / name); }
    Scratch scratch;
};

struct Desk : Documents, test::ShellDesk {
    explicit Desk(const char* lab = "ruler", ImVec2 size = {1440, 900}) : ShellDesk(size) {
        shell.open(lab);
        frame();
        frame();
    }
    void ctrl_e() {
        key(ui::Key::e, true);
        frame();
    }
    void choose(const char* control, int index) { click(std::string(control) + "." + std::to_string(index)); }
};

std::string only(const std::set<std::string>& files) {
    REQUIRE(files.size() == 1);
    return *files.begin();
}

}  // namespace

TEST_CASE("a figure is saved as PNG, SVG and CSV, with its parameters inside, and the toast says where") {
    Desk desk;
    const auto figures = desk.shell.lab()->figures();
    const char* const kMarks[] = {"\x89PNG\r\n\x1a\n", "<svg ", "# figure: "};
    for (int format = 0; format < 3; ++format) {
        desk.ctrl_e();
        REQUIRE(desk.shows("export.save"));
        desk.choose("export.format", format);
        desk.click("export.save");
        CHECK_FALSE(desk.shows("export.save"));
        CHECK(desk.shows("toast"));
    }
    const auto files = desk.files();
    CHECK(files.size() == 3 * figures.size());
    for (const std::string& name : files) {
        CAPTURE(name);
        CHECK(name.starts_with("L02_"));
        const std::string text = desk.text(name);
        const std::string extension = fs::path(name).extension().string();
        CHECK(text.starts_with(kMarks[extension == ".png" ? 0 : extension == ".svg" ? 1 : 2]));
        for (const Field& field : desk.shell.lab()->fields())
            if (!field_text(field).empty())
                CHECK_MESSAGE(text.find(field.info.name) != std::string::npos, field.info.name);
        CHECK(text.find("cpu-emulated") != std::string::npos);
    }
}

TEST_CASE("a file is never replaced without asking") {
    Desk desk;
    desk.ctrl_e();
    desk.choose("export.format", 2);
    desk.click("export.save");
    REQUIRE_FALSE(desk.files().empty());
    std::string name = *desk.files().begin();
    const auto save_again = [&] {
        desk.ctrl_e();
        desk.choose("export.format", 2);
        desk.click("export.save");
        return desk.shows("export.save");
    };
    const auto keep_mine = [&] { write_file(desk.Documents::scratch.path / "fp8lab" / name, "mine"); };
    keep_mine();
    // The name has the minute in it: where that has changed since, nothing is asked and the newer file is meant.
    bool asked = save_again();
    for (int minutes = 0; !asked && minutes < 2; ++minutes) {
        CHECK(desk.text(name) == "mine");
        name = *desk.files().rbegin();
        keep_mine();
        asked = save_again();
    }
    REQUIRE(asked);
    CHECK(desk.text(name) == "mine");
    desk.click("export.cancel");
    REQUIRE(save_again());
    CHECK(desk.text(name) == "mine");
    desk.click("export.save");  // Replace
    CHECK_FALSE(desk.shows("export.save"));
    CHECK(desk.text(name) != "mine");
}

TEST_CASE(
    "the submission is handed in from the Exercises tab and can be parsed, so can the report be written") {
    Desk desk("bits");
    const Evidence evidence = test::solved(test::exercise("L1.1"));
    fs::create_directories(desk.ShellDesk::scratch.path / "exercises");
    write_file(desk.ShellDesk::scratch.path / "exercises/L1.1.json", evidence_text(evidence));
    desk.shell.show(Tab::exercises);
    desk.frame();
    desk.frame();
    desk.shell.say("", "");
    desk.click("exercise.hand_in");
    desk.click("export.save");
    const std::string name = only(desk.files());
    CHECK(name == "submission.f8lab");
    const Bundle bundle = parse_bundle(desk.text(name), name);
    CHECK(bundle.evidence == std::vector{evidence_text(evidence)});
    desk.click("toast.close");  // it tells where the file is, over the button
    desk.click("exercise.hand_in");
    desk.choose("export.what", 1);
    desk.click("export.save");
    CHECK(desk.text("report.html").starts_with("<!DOCTYPE html>"));
}

TEST_CASE("what cannot be saved says why, and the panel stays") {
    Desk desk;
    std::ofstream(desk.Documents::scratch.path / "fp8lab") << "a file where the folder should be";
    desk.ctrl_e();
    desk.click("export.save");
    CHECK(desk.shows("export.save"));
    CHECK(test::draw_data_fault() == "");
    desk.key(ui::Key::e);  // the lab below takes no key
    desk.key(ui::Key::escape);
    CHECK_FALSE(desk.shows("export.save"));
}

TEST_CASE("under the export panel nothing can be pressed, and Tab stays in it") {
    Desk desk;
    desk.ctrl_e();
    const auto before = desk.shell.lab()->state();
    for (int i = 0; i < 12; ++i) {
        desk.key(ui::Key::tab);
        CHECK((desk.gui.context.focus.name.starts_with("export.") || desk.gui.context.focus.name.empty()));
    }
    desk.click("rail.home");
    CHECK(desk.shell.lab() != nullptr);  // closed the panel, and did nothing else
    CHECK(desk.shell.lab()->state() == before);
}

TEST_CASE("texts in a PNG: chunks after the header, with checksums, words beyond ASCII as iTXt") {
    const std::vector<std::uint8_t> pixel = {1, 2, 3};
    const auto plain = encode_png(1, 1, pixel);
    const auto png = encode_png(1, 1, pixel, {{"seed", "4"}, {"title", "2\u2212 steps"}});
    const std::string text(reinterpret_cast<const char*>(png.data()), png.size());
    CHECK(std::equal(plain.begin(), plain.begin() + 33, png.begin()));
    CHECK(std::equal(plain.begin() + 33, plain.end(),
                     png.end() - static_cast<std::ptrdiff_t>(plain.size() - 33)));
    CHECK(text.find(std::string("tEXtseed\0004", 10)) == 37);
    CHECK(text.substr(47, 4) == std::string("\xa8\x3f\0\xbd", 4));  // zlib.crc32(b"tEXtseed\x004")
    CHECK(text.find("iTXttitle") != std::string::npos);
}

TEST_CASE("a relative folder lies among the documents, not where the program was started") {
    Desk desk;
    desk.ctrl_e();
    desk.click("export.folder");
    for (int i = 0; i < 2; ++i) desk.frame();
    desk.key(ui::Key::a, true);
    ui::feed_text("week");
    desk.frame();
    desk.key(ui::Key::enter);
    desk.frame();
    desk.click("export.save");
    CHECK_FALSE(fs::exists("week"));
    bool found = false;
    for (const auto& entry : fs::directory_iterator(desk.Documents::scratch.path / "fp8lab"))
        found |= entry.is_directory() && entry.path().filename().string().find("week") != std::string::npos;
    CHECK(found);
}

TEST_CASE("the lab may change under the open panel, or be gone") {
    Desk desk("train");
    desk.ctrl_e();
    desk.click("export.figure");
    desk.click("export.figure." + std::to_string(desk.shell.lab()->figures().size()));  // the last
    desk.shell.open("bits");
    desk.frame();
    desk.frame();
    desk.choose("export.format", 2);
    desk.click("export.save");
    CHECK_FALSE(desk.files().empty());
    desk.ctrl_e();
    desk.choose("export.what", 0);
    desk.shell.open("");
    desk.frame();
    desk.click("export.save");  // nothing was done: there is no report to make of it
    CHECK(desk.shows("export"));
    CHECK(desk.shell.lab() == nullptr);
}
