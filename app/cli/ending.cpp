#include "app/cli/ending.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/files/console.h"
#include "core/json/read_json.h"

namespace fp8lab::cli {
namespace {

int told(const Error& error) {
    tell(fmt::format("fp8lab: {}: {}", error.where(), error.why()));
    return static_cast<int>(error.kind());
}

// What the standard library throws says neither where nor why in words that a user knows.
Error in_our_words(const std::string& doing) {
    const std::string where = doing.empty() ? "fp8lab" : doing;
    try {
        throw;
    } catch (const Error& error) {
        return error;
    } catch (const std::bad_alloc&) {
        return {ErrorKind::failed, where, "not enough memory"};
    } catch (const std::length_error&) {
        return {ErrorKind::failed, where, "not enough memory: the size is beyond what a program can have"};
    } catch (const std::filesystem::filesystem_error& error) {
        // A file or folder that was looked at. Those that write throw Error: see make_folder().
        const std::string path = error.path1().string();
        return input_error(path.empty() ? where : path, error.code().message());
    } catch (const std::system_error& error) {
        if (std::ferror(stdout) != 0) return {ErrorKind::failed, "stdout", error.code().message()};
        if (error.code() ==
            std::errc::resource_unavailable_try_again)  // of a thread: its stack is memory too
            return {ErrorKind::failed, where,
                    "not enough memory for another thread, or too many processes; --threads 1 takes none"};
        return {ErrorKind::failed, where, error.code().message()};
    } catch (const nlohmann::json::exception& error) {
        return input_error(where, "a JSON file is not what it should be: " + json_reason(error.what()));
    } catch (const std::exception& error) {
        return {ErrorKind::failed, where, std::string("internal: ") + error.what()};
    }
}

bool reader_is_gone() {
    try {
        throw;
    } catch (const ClosedPipe&) {
        return true;
    } catch (const std::system_error& error) {
        return std::ferror(stdout) != 0 && error.code() == std::errc::broken_pipe;
    } catch (...) {
        return false;
    }
}

}  // namespace

std::string exit_codes() {
    return "Exit codes:\n"
           "  0    done\n"
           "  1    the work failed, or its result could not be written\n"
           "  2    usage: an unknown name or value, or an output that would replace an input\n"
           "  3    the backend asked for is not available here\n"
           "  4    an input is unreadable or invalid\n"
           "  129  ended by SIGHUP; what was done is kept\n"
           "  130  ended by SIGINT (Ctrl C); what was done is kept\n"
           "  141  stdout is a pipe that was closed, as by head -1\n"
           "  143  ended by SIGTERM; what was done is kept\n";
}

int to_the_end(const std::function<int()>& work, const std::string& doing) {
    try {
        const int code = work();
        flush_stdout();
        // The signal came after the verb had asked for the last time.
        if (code == 0) end_if_interrupted("; everything was done");
        return code;
    } catch (const Interrupted& end) {
        const std::string how_far = end.what();
        const bool joined = how_far.empty() || how_far.starts_with(';');
        tell(
            fmt::format("fp8lab: {}: ended by {}{}{}", doing, end_signal_name(), joined ? "" : " ", how_far));
        flush_or_drop_stdout();
        return end.exit_code();
    } catch (...) {
        if (reader_is_gone()) return kClosedPipe;
        return told(in_our_words(doing));
    }
}

}  // namespace fp8lab::cli
