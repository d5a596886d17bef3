// Functions stay below 60 lines. Those that were longer when this test was written are counted, file by file, in
// long_functions.txt; no file may have more of them than it says there, and one that has fewer lowers its number.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;
constexpr int kMostLines = 60;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The end of what begins at `at` and is no code: a comment, a string, a character, a line of the preprocessor. `at`:
// code.
std::size_t end_of_text(const std::string& code, std::size_t at) {
    const char before = at > 0 ? code[at - 1] : '\n';
    if (code.compare(at, 2, "//") == 0 || (code[at] == '#' && before == '\n')) return code.find('\n', at);
    if (code.compare(at, 2, "/*") == 0) return code.find("*/", at) + 2;
    if (code.compare(at, 2, "R\"") == 0 && !is_word(before)) {
        const std::size_t open = code.find('(', at);
        const std::string close = ")" + code.substr(at + 2, open - at - 2) + "\"";
        return code.find(close, open) + close.size();
    }
    const char quote = code[at];
    if (quote != '"' && (quote != '\'' || is_word(before))) return at;  // 1'000 is a number
    std::size_t end = at + 1;
    while (code[end] != quote) end += code[end] == '\\' ? 2 : 1;
    return end + 1;
}

// What stands before a brace says what the brace holds.
bool begins_function(const std::string& head) {
    static const std::regex kOther(
        R"(^\s*(namespace|enum|extern|(template\s*<[^{]*>\s*)?(struct|class|union))\b)");
    return head.find('(') != std::string::npos && head.find_last_not_of(" \n") != head.rfind('=') &&
           !std::regex_search(head, kOther);
}

// How many functions of the file have more than kMostLines, from the first line of the head to the closing brace. What
// stands in a function (lambdas, local classes) is part of it.
int long_functions(const std::string& code) {
    int found = 0, line = 1, first = 1, depth = 0, depth_of_function = -1;
    std::string head;
    for (std::size_t at = 0; at < code.size();) {
        if (const std::size_t end = std::min(end_of_text(code, at), code.size()); end > at) {
            line += static_cast<int>(std::count(code.begin() + static_cast<std::ptrdiff_t>(at),
                                                code.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
            at = end;
            continue;
        }
        const char c = code[at++];
        if (c == '\n') ++line;
        if (c == '{') {
            if (depth_of_function < 0 && begins_function(head)) depth_of_function = depth;
            ++depth;
        } else if (c == '}' && --depth == depth_of_function) {
            found += line - first + 1 > kMostLines;
            depth_of_function = -1;
        }
        if (c == '{' || c == '}' || c == ';') {
            head.clear();
        } else if (depth_of_function < 0) {
            if (head.find_first_not_of(" \n") == std::string::npos) first = line;
            head += c;
        }
    }
    return found;
}

std::map<std::string, int> counted() {
    std::ifstream file(FP8LAB_SOURCE "/tests/unit/house/long_functions.txt");
    std::map<std::string, int> out;
    std::string path;
    for (int count = 0; file >> path >> count;) out[path] = count;
    return out;
}

}  // namespace

TEST_CASE("no file has more functions above 60 lines than are counted, and none that are not counted") {
    std::map<std::string, int> found;
    for (const char* folder : {"app", "core", "kernels", "labs", "tests"})
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(FP8LAB_SOURCE) / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh")
                continue;
            std::ifstream file(entry.path());
            const std::string code{std::istreambuf_iterator<char>(file), {}};
            if (const int count = long_functions(code); count > 0)
                found[fs::relative(entry.path(), FP8LAB_SOURCE).string()] = count;
        }
    const std::map<std::string, int> told = counted();
    for (const auto& [path, count] : found) {
        INFO(path << ": functions above " << kMostLines
                  << " lines; long_functions.txt counts the second number");
        CHECK(count == (told.contains(path) ? told.at(path) : 0));
    }
    for (const auto& [path, count] : told) {
        INFO(path << " has none any more: take its line out of long_functions.txt");
        CHECK(found.contains(path));
    }
}

TEST_CASE("a function is measured from its head to its brace, whatever braces its texts have") {
    const auto lines = [](int n) {
        std::string out;
        for (int i = 0; i < n; ++i) out += "    x = '{'; // }\n";
        return out;
    };
    CHECK(long_functions("void f() {\n" + lines(58) + "}\n") == 0);
    CHECK(long_functions("void f() {\n" + lines(59) + "}\n") == 1);
    CHECK(long_functions("void f(\n    int a) {\n" + lines(58) + "}\n") == 1);
    CHECK(long_functions("namespace n {\nstruct S {\n" + lines(99) + "};\n}\n") == 0);
    CHECK(long_functions("namespace n {\nvoid f() { auto g = [](int) {\n" + lines(60) +
                         "}; }\nvoid h() {}\n}\n") == 1);
    CHECK(long_functions("constexpr T kRows[] = {\n" + lines(80) + "};\n") == 0);
    CHECK(long_functions("const std::string a = R\"x({ \" )x\";\nvoid f() {\n" + lines(10) + "}\n") == 0);
}
