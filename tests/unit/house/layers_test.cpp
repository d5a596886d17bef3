// The arrows of architecture.md, held to the include lines: app -> labs -> core, kernels -> core.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

struct Include {
    std::string file, target;  // both relative to the repository
};

std::vector<fs::path> sources_below(const std::string& folder) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(FP8LAB_SOURCE) / folder)) {
        const std::string extension = entry.path().extension().string();
        if (extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh")
            out.push_back(entry.path());
    }
    return out;
}

std::vector<Include> includes_below(const std::string& folder) {
    static const std::regex kInclude(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
    std::vector<Include> out;
    for (const fs::path& path : sources_below(folder)) {
        std::ifstream in(path);
        std::smatch match;
        for (std::string line; std::getline(in, line);)
            if (std::regex_search(line, match, kInclude))
                out.push_back({fs::relative(path, FP8LAB_SOURCE).string(), match[1]});
    }
    return out;
}

// The same lines counted without the expression that reads them: none is missed.
std::size_t lines_of_includes(const std::string& folder) {
    std::size_t count = 0;
    for (const fs::path& path : sources_below(folder)) {
        std::ifstream in(path);
        for (std::string line; std::getline(in, line);) {
            std::erase_if(line, [](char c) { return c == ' ' || c == '\t'; });
            count += line.starts_with("#include") ? 1 : 0;
        }
    }
    return count;
}

bool has(const std::vector<Include>& all, const std::string& file, const std::string& target) {
    for (const Include& one : all)
        if (one.file == file && one.target == target) return true;
    return false;
}

bool starts_with_any(const std::string& text, const Strings& prefixes) {
    for (const auto& prefix : prefixes)
        if (text.starts_with(prefix)) return true;
    return false;
}

const Strings kWindow = {"GLFW/", "GL/", "backends/imgui"};
const Strings kGui = {"imgui", "GLFW/", "GL/", "backends/imgui"};
const Strings kCuda = {"cuda", "cublas", "nvToolsExt"};

// The rooms of a folder, each with those that it stands on; it may include these and what they stand on.
using Arrows = std::map<std::string, Strings>;

std::set<std::string> room_and_below(const Arrows& arrows, const std::string& room) {
    std::set<std::string> out = {room};
    for (const auto& next : arrows.at(room)) out.merge(room_and_below(arrows, next));
    return out;
}

// Files in the folder itself stand above all of its rooms.
void check_rooms(const std::string& folder, const Arrows& arrows) {
    for (const auto& entry : fs::directory_iterator(fs::path(FP8LAB_SOURCE) / folder)) {
        if (!entry.is_directory()) continue;
        const std::string room = entry.path().filename().string();
        CAPTURE(room);
        REQUIRE(arrows.contains(room));
        const auto allowed = room_and_below(arrows, room);
        for (const auto& [file, target] : includes_below(folder + "/" + room)) {
            if (!target.starts_with(folder + "/")) continue;
            const std::string below = target.substr(folder.size() + 1);
            CAPTURE(file);
            CAPTURE(target);
            CHECK(allowed.contains(below.substr(0, below.find('/'))));
        }
    }
}

}  // namespace

TEST_CASE("core includes no GUI, no CUDA and no layer above it") {
    const auto all = includes_below("core");
    CHECK(all.size() == lines_of_includes("core"));
    CHECK(has(all, "core/formats/codec.cpp", "core/formats/codec.h"));
    for (const auto& [file, target] : all) {
        CAPTURE(file);
        CAPTURE(target);
        CHECK_FALSE(starts_with_any(target, kGui));
        CHECK_FALSE(starts_with_any(target, kCuda));
        CHECK_FALSE(starts_with_any(target, {"labs/", "app/", "kernels/"}));
    }
}

TEST_CASE("the kernels include no GUI, no lab and no application") {
    const auto all = includes_below("kernels");
    CHECK(all.size() == lines_of_includes("kernels"));
    CHECK(has(all, "kernels/gemm/gemm.cpp", "kernels/gemm/gemm.h"));
    for (const auto& [file, target] : all) {
        CAPTURE(file);
        CAPTURE(target);
        CHECK_FALSE(starts_with_any(target, kGui));
        CHECK_FALSE(starts_with_any(target, {"labs/", "app/"}));
    }
    for (const std::string folder : {"app", "labs"})
        for (const auto& [file, target] : includes_below(folder)) {
            CAPTURE(file);
            CHECK_FALSE(target.starts_with("kernels/"));  // core/backend is the only door
        }
}

TEST_CASE("each folder of core includes only the folders below it") {
    const Arrows arrows = {
        {"threads", {}},
        {"base", {"threads"}},
        {"json", {"base"}},
        {"run", {"scaling"}},
        {"files", {"json"}},
        {"formats", {"files"}},
        {"ranks", {"formats"}},
        {"tensors", {"formats"}},
        {"stats", {"formats"}},
        {"scaling", {"stats"}},
        {"inspect", {"scaling", "tensors"}},
        {"convert", {"scaling", "tensors"}},
        {"python", {"scaling", "tensors"}},
        {"verify", {"inspect"}},
        {"figure", {"base"}},
        {"lesson", {"figure", "files"}},
        {"nn", {"scaling", "tensors", "ranks"}},
        {"trainer", {"nn"}},
        {"inference", {"trainer"}},
        {"backend", {"trainer"}},
        {"plan", {"backend"}},
    };
    check_rooms("core", arrows);
}

TEST_CASE("each room of the kernels includes only the rooms below it") {
    const Arrows arrows = {
        {"device", {}},
        {"scaling", {"device"}},
        {"casts", {"scaling"}},
        {"loss", {"casts"}},
        {"optimizer", {"casts"}},
        {"gemm", {"device"}},
        {"layers", {"casts"}},
        {"ranks", {"optimizer"}},
        {"bench", {"gemm", "loss", "layers", "ranks"}},
        {"prefill", {"bench"}},
        {"infer", {"prefill"}},
        {"checks", {"gemm", "casts"}},
        {"arm", {"gemm", "layers", "ranks"}},
        {"mlp", {"arm", "loss"}},
        {"transformer", {"arm"}},
        {"trainer", {"mlp", "transformer", "bench", "checks"}},
    };
    check_rooms("kernels", arrows);
}

TEST_CASE("each room of the shell includes only the rooms below it") {
    const Arrows arrows = {
        {"sheets", {}}, {"export", {"sheets"}}, {"exercises", {}}, {"present", {}}, {"profile", {}},
    };
    check_rooms("app/shell", arrows);
}

TEST_CASE("a lab's model knows no GUI, and no lab knows another") {
    for (const auto& [file, target] : includes_below("labs")) {
        CAPTURE(file);
        CAPTURE(target);
        CHECK_FALSE(target.starts_with("app/"));
        CHECK_FALSE(starts_with_any(target, kWindow));
        CHECK_FALSE(starts_with_any(target, kCuda));
        const std::string folder = fs::path(file).parent_path().string();  // labs/bits
        const bool is_toolkit = folder.starts_with("labs/ui"),
                   is_shared = folder == "labs/course" || folder == "labs/grading",
                   is_live = folder == "labs/live",
                   is_lab = folder != "labs" && !is_toolkit && !is_shared && !is_live;
        const bool in_a_folder = target.starts_with("labs/") && target.find('/', 5) != std::string::npos;
        const std::string name = fs::path(file).filename().string();
        const bool of_models = folder == "labs/table" && !name.starts_with("view");
        if (name.starts_with("model") || name.starts_with("exercises") || of_models)
            CHECK_FALSE(starts_with_any(target, {"imgui", "labs/ui/", "labs/view"}));
        if (is_toolkit && target.starts_with("labs/")) CHECK(target.starts_with("labs/ui/"));
        const std::string lab =
            folder.substr(0, folder.find('/', 5));  // a lab may have rooms: labs/serve/parts
        if (is_lab && in_a_folder)
            CHECK(starts_with_any(target, {lab + "/", "labs/ui/", "labs/live/", "labs/table/"}));
        // What labs that train share: they are tables as others, and their views are drawn with the toolkit.
        const bool is_view = name.starts_with("view");
        if (is_live && !is_view) CHECK_FALSE(starts_with_any(target, {"imgui", "labs/ui/", "labs/view"}));
        if (is_live && in_a_folder)
            CHECK(starts_with_any(target, {folder + "/", "labs/table/", is_view ? "labs/ui/" : folder}));
        // What labs share in a course, and above it what is handed in.
        if (is_shared) CHECK_FALSE(starts_with_any(target, {"imgui", "labs/view"}));
        if (is_shared && in_a_folder) CHECK(starts_with_any(target, {folder + "/", "labs/course/"}));
    }
}

TEST_CASE("the shell knows no window: no GLFW, no OpenGL, nothing of app/window") {
    for (const auto& [file, target] : includes_below("app/shell")) {
        CAPTURE(file);
        CAPTURE(target);
        CHECK_FALSE(starts_with_any(target, kWindow));
        CHECK_FALSE(starts_with_any(target, {"app/desk/", "app/window/", "app/browser/", "app/cli/"}));
    }
    for (const auto& [file, target] : includes_below("app/window")) {
        CAPTURE(file);
        CHECK_FALSE(target.starts_with("app/cli/"));
    }
    for (const auto& [file, target] : includes_below("app/desk")) {  // what a window and a page share
        CAPTURE(file);
        CHECK_FALSE(starts_with_any(target, kWindow));
        CHECK_FALSE(starts_with_any(target, {"app/window/", "app/browser/", "app/cli/"}));
    }
    for (const auto& [file, target] : includes_below("app/frame")) {
        CAPTURE(file);
        CHECK_FALSE(starts_with_any(target, kGui));
        CHECK_FALSE(starts_with_any(target, {"labs/", "app/shell/", "app/window/", "app/cli/"}));
    }
}

TEST_CASE("the files beside the labs know no lab") {
    for (const auto& [file, target] : includes_below("labs")) {
        if (fs::path(file).parent_path() != "labs") continue;
        CAPTURE(file);
        CAPTURE(target);
        if (target.starts_with("labs/") && target.find('/', 5) != std::string::npos)
            CHECK((file == "labs/view.h" && target.starts_with("labs/ui/")));
    }
}

TEST_CASE("no folder has more than 25 source files") {
    for (const std::string top : {"app", "core", "kernels", "labs"}) {
        std::map<std::string, int> count;
        for (const fs::path& path : sources_below(top)) ++count[path.parent_path().string()];
        for (const auto& [folder, files] : count) CHECK_MESSAGE(files <= 25, folder);
    }
}

TEST_CASE("one folder multiplies matrices with OpenBLAS or with Eigen in its place") {
    std::set<std::string> callers;
    for (const std::string folder : {"core", "labs", "app"})
        for (const auto& [file, target] : includes_below(folder))
            if (target == "cblas.h") callers.insert(file);
    CHECK(callers == std::set<std::string>{"core/nn/gemm/openblas.cpp"});
}

TEST_CASE("no source asks whether it is compiled for a browser: what differs has files of its own") {
    const std::string mark = std::string("EMSCRIP") + "TEN", header = std::string("emscrip") + "ten";
    for (const std::string top : {"app", "core", "kernels", "labs", "tests"})
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(FP8LAB_SOURCE) / top)) {
            const std::string file = fs::relative(entry.path(), FP8LAB_SOURCE).string();
            if (!entry.is_regular_file() || file.starts_with("app/browser/")) continue;
            std::ifstream in(entry.path(), std::ios::binary);
            const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
            CAPTURE(file);
            CHECK(text.find(mark) == std::string::npos);
            CHECK(text.find("<" + header) == std::string::npos);
        }
}

TEST_CASE("ImGui's internals are touched in one file only") {
    std::set<std::string> files;
    for (const std::string folder : {"app", "labs"})
        for (const auto& [file, target] : includes_below(folder))
            if (target == "imgui_internal.h") files.insert(file);
    CHECK(files.size() <= 1);
}

TEST_CASE("no source file is longer than 600 lines") {
    for (const std::string folder : {"app", "core", "kernels", "labs", "tests"}) {
        for (const fs::path& path : sources_below(folder)) {
            std::ifstream in(path);
            int lines = 0;
            for (std::string line; std::getline(in, line);) ++lines;
            CAPTURE(path.string());
            CHECK(lines <= 600);
        }
    }
}

TEST_CASE("the version of ImGui, and what only some versions have, is known to one unit only") {
    for (const std::string folder : {"app", "labs", "tests"}) {
        for (const fs::path& path : sources_below(folder)) {
            const std::string name = path.generic_string();
            if (name.ends_with("/labs/ui/input.h") || name.ends_with("/labs/ui/input.cpp") ||
                name.ends_with("/tests/unit/house/layers_test.cpp"))
                continue;
            std::ifstream in(path);
            const std::string text{std::istreambuf_iterator<char>(in), {}};
            CAPTURE(path.string());
            for (const char* word :
                 {"IMGUI_VERSION_NUM", "ImGuiKey", "KeysDown", "KeyMap", "GLFW_KEY_", "ItemAllowOverlap"})
                CHECK_MESSAGE(text.find(word) == std::string::npos, word);
        }
    }
}
