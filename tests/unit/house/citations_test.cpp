// What a source cites is in the repository: "numerics.md 3.2" is section 3.2 of assets/docs/numerics.md, and
// cli.md with a comma and a quoted heading is that heading. The number of an issue or of a finding that
// readers do not have is no citation.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kSource = FP8LAB_SOURCE;

struct Citation {
    std::string document;  // "numerics.md", "assets/docs/cli.md"
    std::string section;   // "3.2", or a heading in words; empty: the document as a whole
};

std::string slurp(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A comment that runs over several lines as one, since a citation may be broken between them.
std::string joined(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\n') {
            out += text[i];
            continue;
        }
        const std::size_t at = std::min(text.find_first_not_of(" \t", i + 1), text.size());
        const std::size_t mark = text.compare(at, 2, "//") == 0 ? 2 : text.compare(at, 1, "#") == 0 ? 1 : 0;
        out += ' ';
        i = std::min(text.find_first_not_of(" \t", at + mark), text.size()) - 1;
    }
    return out;
}

// "3.2" at the start of a text; empty where there is no number. A full stop that ends a sentence is not part.
std::string number_at(std::string_view text) {
    std::size_t n = 0;
    while (n < text.size() &&
           (is_digit(text[n]) || (n > 0 && text[n] == '.' && n + 1 < text.size() && is_digit(text[n + 1]))))
        ++n;
    return std::string(text.substr(0, n));
}

std::vector<Citation> citations(const std::string& source) {
    const std::string text = joined(source);
    std::vector<Citation> out;
    for (std::size_t at = text.find(".md"); at != text.npos; at = text.find(".md", at + 3)) {
        std::size_t begin = at, end = at + 3;
        while (begin > 0 && (is_name(text[begin - 1]) || text[begin - 1] == '/')) --begin;
        while (begin < at && text[begin] == '/') ++begin;
        if (begin == at || (end < text.size() && is_name(text[end]))) continue;
        Citation& found = out.emplace_back(Citation{text.substr(begin, end - begin), {}});
        const std::string_view rest = std::string_view(text).substr(end);
        if (rest.starts_with(" ")) found.section = number_at(rest.substr(1));
        if (rest.starts_with(", \"")) found.section = rest.substr(3, rest.find('"', 3) - 3);
    }
    return out;
}

// Numbers of bars, findings and issues, and sections of a document that is not named as a file. An issue can
// be looked up where its project stands before it.
std::vector<std::string> orphans(const std::string& source) {
    const std::string text = joined(source);
    std::vector<std::string> out;
    for (const std::string_view what : {"bar ", "Bar ", "finding ", "Finding ", "issue ", "Issue ",
                                        "numerics ", "Numerics ", "curriculum ", "Curriculum ", "LOOK "})
        for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) {
            constexpr std::string_view kSection = "section ";
            const std::string_view before = std::string_view(text).substr(0, at);
            if (at > 0 && is_name(text[at - 1])) continue;
            if (before.ends_with("TransformerEngine ") || before.ends_with("TE ")) continue;
            std::string_view rest = std::string_view(text).substr(at + what.size());
            if (rest.starts_with(kSection)) rest.remove_prefix(kSection.size());
            const std::string number = number_at(rest);
            if (!number.empty()) out.push_back(std::string(what) + number);
        }
    return out;
}

// "3.2" and "Names" for the headings "### 3.2 Delayed scaling" and "## Names".
std::set<std::string> sections(const std::string& document) {
    static const std::regex kHeading(R"(^#+ +(?:([0-9]+(?:\.[0-9]+)*)\.? +)?(.*)$)");
    std::set<std::string> out;
    std::size_t begin = 0;
    while (begin < document.size()) {
        const std::size_t end = std::min(document.find('\n', begin), document.size());
        const std::string line = document.substr(begin, end - begin);
        std::smatch heading;
        if (line.starts_with("#") && std::regex_match(line, heading, kHeading)) {
            if (heading[1].matched) out.insert(heading[1]);
            out.insert(heading[2]);
        }
        begin = end + 1;
    }
    return out;
}

// How often a number follows the name of a document: counted apart from citations(), which must not miss one.
std::size_t numbers_after_documents(const std::string& source) {
    static const std::regex kNumbered(R"re([\w/-]\.md [0-9])re");
    const std::string text = joined(source);
    return static_cast<std::size_t>(
        std::distance(std::sregex_iterator(text.begin(), text.end(), kNumbered), std::sregex_iterator()));
}

// Why a citation leads nowhere; empty: it leads to a heading. `from`: the folder of the file that cites.
std::string problem(const Citation& citation, const fs::path& from) {
    for (const fs::path& folder : {kSource / "assets/docs", kSource, from}) {
        const fs::path file = folder / citation.document;
        if (!fs::is_regular_file(file)) continue;
        if (citation.section.empty() || sections(slurp(file)).contains(citation.section)) return {};
        return citation.document + " has no section " + citation.section;
    }
    return citation.document + " is not in assets/docs";
}

bool is_source(const fs::path& path) {
    static const std::set<std::string> kExtensions = {".h",  ".cpp", ".cu",   ".cuh",  ".md",
                                                      ".sh", ".py",  ".json", ".cmake"};
    return kExtensions.contains(path.extension().string()) || path.filename() == "CMakeLists.txt";
}

// The sources of the house; not what tests read (files of older versions, fuzz inputs) nor decisions, which
// tell what once was.
std::vector<fs::path> sources() {
    std::vector<fs::path> out = {kSource / "CMakeLists.txt", kSource / "README.md"};
    for (const char* folder : {"app", "assets", "core", "kernels", "labs", "packaging", "scripts", "tests"})
        for (const auto& entry : fs::recursive_directory_iterator(kSource / folder)) {
            const std::string name = entry.path().lexically_relative(kSource).string();
            const bool is_data = name.starts_with("tests/compat") || name.starts_with("tests/fuzz/corpus") ||
                                 name.starts_with("assets/docs/decisions");
            if (entry.is_regular_file() && is_source(entry.path()) && !is_data) out.push_back(entry.path());
        }
    return out;
}

}  // namespace

TEST_CASE("every citation in the sources leads to a document and a heading in assets/docs") {
    std::size_t numbered = 0, counted = 0;
    std::set<std::string> cited;  // documents, by number
    for (const fs::path& path : sources()) {
        const std::string text = slurp(path);
        counted += numbers_after_documents(text);
        CAPTURE(path.string());
        for (const Citation& citation : citations(text)) {
            CHECK(problem(citation, path.parent_path()) == "");
            if (number_at(citation.section).empty()) continue;
            ++numbered;
            cited.insert(fs::path(citation.document).filename().string());
        }
        const bool is_code = path.extension() != ".json" && path.extension() != ".md";
        if (is_code)
            for (const std::string& orphan : orphans(text))
                CHECK_MESSAGE(false, orphan, " can be looked up nowhere");
    }
    CHECK(numbered == counted);
    const std::string ending = ".md";
    CHECK(cited.contains("numerics" + ending));
    CHECK(cited.contains("curriculum" + ending));
}

// The names are put together here, so that this file cites nothing that is not there.
TEST_CASE("a made-up citation is found and leads nowhere") {
    const std::string ending = ".md";
    const std::string numerics = "numerics" + ending, look = "LOOK" + ending, cli = "cli" + ending;
    const auto problems = [](const std::string& text) {
        std::string out;
        for (const Citation& citation : citations(text))
            out += problem(citation, kSource / "core/figure") + ";";
        return out;
    };
    CHECK(problems("// as " + numerics + " 3.2 has it") == ";");
    CHECK(problems("// as " + numerics + "\n    // 3.2 has it") == ";");  // broken between two lines
    CHECK(problems("// assets/docs/" + numerics + " 1.4, and " + cli + ", \"Names\"") == ";;");
    CHECK(problems("// as " + numerics + " 3.99 has it") == numerics + " has no section 3.99;");
    CHECK(problems("// as " + numerics + "\n// 47 has it") == numerics + " has no section 47;");
    CHECK(problems("// " + cli + ", \"No such heading\"") == cli + " has no section No such heading;");
    CHECK(problems("// the tables of " + look + " section 2") == look + " is not in assets/docs;");
    CHECK(problems("// nothing is cited here") == "");
}

TEST_CASE("mentions that nobody can look up are found") {
    const std::string bar = "Bar", finding = "finding", issue = "issue", numerics = "numerics";
    CHECK(orphans("// " + bar + " 2 of " + issue + " 5: kill -9").size() == 2);
    CHECK(orphans("// " + finding + " 4, as " + numerics + " section 5 says").size() == 2);
    CHECK(orphans("// TransformerEngine " + issue + " 805").empty());
    CHECK(orphans("// a progress bar, 3 findings, " + numerics + ".md" + " 3.2").empty());
}

TEST_CASE("headings: numbers with and without a full stop, and words") {
    const auto found = sections("# Numerics\n## 1. Formats\n### 1.1 Values and codes\ntext # 9\n## Names\n");
    CHECK(found == std::set<std::string>{"1", "1.1", "Formats", "Names", "Numerics", "Values and codes"});
}
