// A saver (saver.cpp) that something befalls, and what is left of what it said.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/files/kept_file.h"
#include "core/json/checksum.h"
#include "core/lesson/journal.h"
#include "core/lesson/progress.h"

namespace fp8lab::test {

using Words = std::vector<std::string>;

// A process with its output in files: nothing of it is lost when it is killed.
class Process {
  public:
    Process(const Words& command, const Words& environment, const std::string& out, const std::string& err) {
        process_ = ::fork();
        if (process_ != 0) return;
        for (const auto& [file, fd] : {std::pair{&out, STDOUT_FILENO}, std::pair{&err, STDERR_FILENO}})
            ::dup2(::open(file->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666), fd);
        for (const std::string& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
        std::vector<char*> arguments;
        for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    ~Process() {
        if (process_ > 0) end(SIGKILL);
    }
    void signal(int number) const { ::kill(process_, number); }
    int wait() {  // exit code; 128 + signal
        int status = 0;
        ::waitpid(process_, &status, 0);
        process_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    int end(int number) {
        signal(number);
        return wait();
    }

  private:
    pid_t process_ = 0;
};

inline std::string contents(const std::filesystem::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// The last number said of each thing: "pass" -> 7, and of each exercise: "L1.1" -> 7; "unsaved" -> 0.
inline std::map<std::string, int> said(const std::string& out) {
    std::map<std::string, int> last;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
        const auto space = line.find(' ');
        const int number = space == std::string::npos ? 0 : std::stoi(line.substr(space));
        last[line.substr(0, space)] = number;
        if (line.starts_with("pass")) last["L1." + std::to_string(number % 3)] = number;
    }
    return last;
}

// Everything that was said to be saved is there, or something newer; every file can be read, none twice. Then
// the next start's questions are at most one, the journal's.
inline void check_saved(const std::filesystem::path& folder, std::map<std::string, int> said_so) {
    const ProfileFolders folders{folder};
    const Progress progress{folders};
    CHECK(progress.problem() == "");
    for (const char* exercise : {"L1.0", "L1.1", "L1.2"}) {
        if (said_so[exercise] == 0) continue;
        const Evidence* evidence = progress.passed(exercise);
        REQUIRE(evidence != nullptr);
        CHECK(std::stoi(evidence->seed) >= said_so[exercise]);
    }
    if (said_so["prediction"] > 0) {
        REQUIRE(progress.prediction("L1.1") != nullptr);
        CHECK(progress.prediction("L1.1")->values.front() >= said_so["prediction"]);
    }
    int settings = 0;
    const std::string problem = load_kept(
        folders.config / "settings.json",
        [&](const std::string& text) { settings = parse_with_checksum(text, "")["number"].get<int>(); },
        Access::read_only);
    CHECK(problem == "");
    CHECK(settings >= said_so["settings"]);
    const auto left = Journal::left_behind(folders.state / "journal.jsonl");
    if (said_so["journal"] > 0) {
        REQUIRE(left.has_value());
        CHECK(left->values.at("lab.bits")["code"].get<int>() >= said_so["journal"]);
    }
}

}  // namespace fp8lab::test
