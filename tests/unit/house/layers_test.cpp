// The arrows of architecture.md, held to the include lines: app -> labs -> core, kernels -> core.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
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

bool starts_with_any(const std::string& text, const Strings& prefixes) {
    for (const auto& prefix : prefixes)
        if (text.starts_with(prefix)) return true;
    return false;
}

const Strings kWindow = {"GLFW/", "GL/", "backends/imgui"};
const Strings kGui = {"imgui", "GLFW/", "GL/", "backends/imgui"};
const Strings kCuda = {"cuda", "cublas", "nvToolsExt"};

}  // namespace

TEST_CASE("core includes no GUI, no CUDA and no layer above it") {
    const auto all = includes_below("core");
    CHECK(all.size() > 100);
    for (const auto& [file, target] : all) {
        CAPTURE(file);
        CAPTURE(target);
        CHECK_FALSE(starts_with_any(target, kGui));
        CHECK_FALSE(starts_with_any(target, kCuda));
        CHECK_FALSE(starts_with_any(target, {"labs/", "app/", "kernels/"}));
    }
}

TEST_CASE("each folder of core includes only the folders below it") {
    // base <- formats <- stats <- scaling <- nn <- backend; figure stands on base alone, lesson on figure,
    // tensors on formats.
    const std::map<std::string, std::set<std::string>> allowed = {
        {"base", {"base"}},
        {"formats", {"base", "formats"}},
        {"tensors", {"base", "formats", "tensors"}},
        {"stats", {"base", "formats", "stats"}},
        {"scaling", {"base", "formats", "stats", "scaling"}},
        {"figure", {"base", "figure"}},
        {"lesson", {"base", "figure", "lesson"}},
        {"nn", {"base", "formats", "tensors", "stats", "scaling", "nn"}},
        {"backend", {"base", "formats", "tensors", "stats", "scaling", "nn", "backend"}},
    };
    for (const auto& entry : fs::directory_iterator(fs::path(FP8LAB_SOURCE) / "core"))
        if (entry.is_directory())
            CHECK_MESSAGE(allowed.contains(entry.path().filename().string()), entry.path().string());
    for (const auto& [folder, below] : allowed) {
        for (const auto& [file, target] : includes_below("core/" + folder)) {
            if (!target.starts_with("core/")) continue;
            const std::string other = target.substr(5, target.find('/', 5) - 5);
            CAPTURE(file);
            CAPTURE(target);
            CHECK(below.contains(other));
        }
    }
}

TEST_CASE("a lab's model knows no GUI, and no lab knows another") {
    for (const auto& [file, target] : includes_below("labs")) {
        CAPTURE(file);
        CAPTURE(target);
        CHECK_FALSE(target.starts_with("app/"));
        CHECK_FALSE(starts_with_any(target, kWindow));
        CHECK_FALSE(starts_with_any(target, kCuda));
        const std::string folder = fs::path(file).parent_path().string();  // labs/bits
        const bool is_toolkit = folder.starts_with("labs/ui"), is_lab = folder != "labs" && !is_toolkit;
        if (fs::path(file).filename().string().starts_with("model") ||
            fs::path(file).filename().string().starts_with("exercises"))
            CHECK_FALSE(starts_with_any(target, {"imgui", "labs/ui/", "labs/view"}));
        if (is_toolkit && target.starts_with("labs/")) CHECK(target.starts_with("labs/ui/"));
        if (is_lab && target.starts_with("labs/") && target.find('/', 5) != std::string::npos)
            CHECK(starts_with_any(target, {folder + "/", "labs/ui/"}));
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
    for (const std::string folder : {"app", "core", "labs", "tests"}) {
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
