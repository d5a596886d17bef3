#include "manual_pages.h"

#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/lesson/glossary.h"
#include "core/lesson/manual/markdown.h"
#include "labs/course/manual.h"
#include "labs/lab.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace manual_test {
namespace {

using Json = nlohmann::json;

// process.h has these, and a function whose name is that of the namespace.
std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// ```sh needs=torch exit=2
struct Fence {
    std::string language, needs;
    int exit = 0;
};
Fence fence_of(const std::string& info) {
    Fence out;
    std::istringstream words(info);
    words >> out.language;
    for (std::string word; words >> word;) {
        if (word.starts_with("needs=")) out.needs = word.substr(6);
        if (word.starts_with("exit=")) out.exit = std::stoi(word.substr(5));
    }
    return out;
}

// The folder in which a page runs, with its own profile.
class Room {
  public:
    Room() { std::filesystem::create_directory(scratch_ / "room"); }

    // What a reader is told to have. False: it is not there.
    bool prepare(const std::string& needs) {
        namespace fs = std::filesystem;
        const fs::path source = FP8LAB_SOURCE;
        if (needs == "no-gpu") return bash("fp8lab doctor | grep -q '^gpu  *no:'") == 0;
        const auto keep = fs::copy_options::recursive | fs::copy_options::skip_existing;
        if (needs == "exercises") fs::copy(source / "tests/compat/ba6ae7b/profile", scratch_ / "home", keep);
        if (needs == "model")
            fs::copy(source / "tests/unit/convert/golden/model.safetensors",
                     scratch_ / "room/model.safetensors", keep);
        return true;
    }
    // The exit code; output() and errors() are of it.
    int bash(const std::string& commands) {
        std::ofstream(scratch_ / "commands") << commands;
        const std::string words =
            "cd " + (scratch_ / "room") +
            " && env -u DISPLAY -u WAYLAND_DISPLAY FP8LAB_HOME=" + (scratch_ / "home") +
            " PATH=" + quoted(std::filesystem::path(FP8LAB_BINARY).parent_path().string()) +
            ":\"$PATH\" bash -euo pipefail ../commands >../out 2>../err </dev/null";
        const int status = std::system(words.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::string output() const { return slurp(scratch_ / "out"); }
    std::string errors() const { return slurp(scratch_ / "err"); }
    std::string file(const std::string& name) const { return slurp(scratch_ / ("room/" + name)); }

  private:
    Scratch scratch_;
};

std::string last_command(const std::string& commands) {
    const auto at = commands.rfind("\nfp8lab ");
    std::string out = at == commands.npos ? commands : commands.substr(at + 1);
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

class Reader {
  public:
    Reader(const ManualPage& page, bool with_torch) : page_(page), with_torch_(with_torch) {}

    Outcome read() {
        for (const MarkdownBlock& block : parse_markdown(page_.text)) {
            if (block.kind == BlockKind::code) {
                const std::string words = words_of(block.cells.front());
                const Fence fence = fence_of(block.info);
                if (fence.language == "sh") run(fence, words);
                if (fence.language == "text") compare_lines(words);
                continue;
            }
            for (const MarkdownCell& cell : block.cells)
                for (const MarkdownRun& words : cell)
                    if (const auto number = seen_number(words.link)) compare(*number, words.text);
        }
        return std::move(out_);
    }

  private:
    void fault(const std::string& what) { out_.faults.push_back(page_.id + ": " + what); }

    void run(const Fence& fence, const std::string& commands) {
        command_ = last_command(commands);
        json_.reset();
        printed_.reset();
        if ((fence.needs == "torch" && !with_torch_) || !room_.prepare(fence.needs)) {
            out_.skipped.insert(fence.needs);
            return;
        }
        const int code = room_.bash(commands);
        printed_ = room_.output();
        ++out_.commands;
        if (code != fence.exit)
            fault("exit code " + std::to_string(code) + " of\n" + commands + room_.errors());
    }
    void compare_lines(const std::string& quoted_lines) {
        if (!printed_) return;
        std::istringstream lines(quoted_lines);
        std::size_t at = 0;
        for (std::string line; std::getline(lines, line);) {
            const auto found = printed_->find(line, at);
            if (found == std::string::npos) return fault("not printed by " + command_ + ": " + line);
            at = found + line.size();
            ++out_.lines;
        }
    }
    void compare(const SeenNumber& number, const std::string& shown) {
        if (!printed_ && !command_.empty()) return;  // skipped
        ++out_.numbers;
        const Json* value = find(number.path);
        if (value == nullptr) return fault("no " + number.path + " in the JSON of " + command_);
        if (value->is_string()) {
            if (*value != shown) fault(shown + " is " + value->get<std::string>() + ": " + number.path);
            return;
        }
        if (!value->is_number()) return fault(number.path + " is no number");
        std::string plain = std::regex_replace(shown, std::regex(","), "");
        plain = std::regex_replace(plain, std::regex("\u2212"), "-");
        const auto point = plain.find('.');
        const double last = point == plain.npos ? 1 : std::pow(10.0, -double(plain.size() - point - 1));
        const double seen = std::stod(plain), tolerance = number.tolerance.value_or(0.5001 * last);
        if (!(std::fabs(value->get<double>() - seen) <= tolerance))
            fault(shown + " is " + value->dump() + ": " + number.path + " of " + command_);
    }
    // In the file that the command writes, in what `run` prints, else in what the command prints with --json.
    const Json* find(const std::string& path) {
        if (!json_) {
            std::smatch file;
            static const std::regex kFile(R"(--json (\w+\.json))");
            if (std::regex_search(command_, file, kFile))
                json_ = Json::parse(room_.file(file[1]), nullptr, false);
            else if (command_.starts_with("fp8lab run "))
                json_ = Json::parse(*printed_, nullptr, false);
            else if (room_.bash(command_ + (command_.ends_with("--json") ? "" : " --json")) == 0)
                json_ = Json::parse(room_.output(), nullptr, false);
            else
                json_ = Json();
        }
        const Json* at = &*json_;
        std::istringstream parts(path);
        for (std::string part; std::getline(parts, part, '/');) {
            if (at->is_array() && std::stoul(part) < at->size())
                at = &(*at)[std::stoul(part)];
            else if (at->is_object() && at->contains(part))
                at = &(*at)[part];
            else
                return nullptr;
        }
        return at->is_object() && at->contains("value") ? &(*at)["value"] : at;
    }

    const ManualPage& page_;
    const bool with_torch_;
    Room room_;
    Outcome out_;
    std::string command_;                 // the last one
    std::optional<std::string> printed_;  // by its block; none: it was not run
    std::optional<Json> json_;            // of the command
};

}  // namespace

Outcome run_page(const ManualPage& page, bool with_torch) { return Reader(page, with_torch).read(); }

std::vector<std::string> dead_links(const ManualPage& page, const std::vector<ManualPart>& parts) {
    static const Glossary glossary = load_glossary();
    std::vector<std::string> out;
    for (const MarkdownBlock& block : parse_markdown(page.text)) {
        for (const MarkdownCell& cell : block.cells) {
            for (const MarkdownRun& words : cell) {
                const std::string& link = words.link;
                if (link.empty() || is_plain_link(link)) continue;
                const auto is_lab = [&](const LabEntry& lab) {
                    return std::string(kLabLink) + std::string(lab.id) == link;
                };
                const bool there = link.starts_with(kLabLink)    ? std::ranges::any_of(lab_registry(), is_lab)
                                   : link.find('/') != link.npos ? find_page(parts, link) != nullptr
                                                                 : glossary.find(link) != nullptr;
                if (!there) out.push_back(page.id + ": " + link);
            }
        }
    }
    return out;
}

std::vector<std::string> loose_numbers(const std::string& markdown) {
    const std::string text = std::regex_replace(markdown, std::regex(R"(\{runs [^}]*\})"), "RUNS");
    // Not in a word or behind ^, /, - or a point: E4M3, 2^-24, 1/17, L1.2.
    static const std::regex kNumber(
        R"((^|[^\w^/.\-\u2212])(\d[\d,]*(\.\d+)?)(\s?(%|dB|ms|s|GB|MB|GHz|TFLOP)(?!\w))?(?![\w/^]))");
    std::vector<std::string> out;
    for (const MarkdownBlock& block : parse_markdown(text)) {
        if (block.kind == BlockKind::code) continue;
        for (const MarkdownCell& cell : block.cells) {
            std::string words;  // a number of a run, of a publication, or in code, is none
            for (const MarkdownRun& run : cell)
                words += seen_number(run.link) || run.link.starts_with(kPublishedLink) || run.code ? "SEEN"
                                                                                                   : run.text;
            for (std::sregex_iterator at(words.begin(), words.end(), kNumber), end; at != end; ++at) {
                const std::string digits = std::regex_replace((*at)[2].str(), std::regex(","), "");
                if ((*at)[3].matched || (*at)[4].matched || std::stod(digits) > 256)
                    out.push_back((*at)[2].str() + (*at)[4].str() + " in: " + words);
            }
        }
    }
    return out;
}

}  // namespace manual_test
