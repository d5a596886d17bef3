// Every option of every verb that takes a whole number has a range, and one sentence for all that is outside of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "child.h"

namespace {

// "--steps", "--threads" of the lines of --help that take an INT or UINT.
std::set<std::string> integers_of(const std::string& help) {
    static const std::regex kInteger(R"(^ +(?:-\w,)?(--[a-z-]+) U?INT)");
    std::set<std::string> out;
    std::istringstream lines(help);
    std::smatch found;
    for (std::string line; std::getline(lines, line);)
        if (std::regex_search(line, found, kInteger)) out.insert(found[1]);
    return out;
}

// What comes before the option, so that nothing else is wrong with the call.
std::string call_of(const std::string& verb) {
    if (verb == "generate") return "generate --resume x ";
    if (verb == "infer") return "infer x --weights e4m3 --calibrate 1 ";
    if (verb == "draft") return "draft x --draft nvfp4 ";
    if (verb == "mismatch") return "mismatch x --rollout nvfp4 ";
    if (verb == "bench") return "bench step ";
    if (verb == "run") return "run L8 ";
    if (verb == "simulate") return "simulate --amax x ";
    if (verb == "watch") return "watch x ";
    if (verb == "plan") return "plan x --gpu h100 --batch 1 --seq 1 ";
    if (verb == "screenshot") return "screenshot -o x ";
    if (verb == "cast") return "cast --to e4m3 -i x -o y ";
    return verb + " ";
}

}  // namespace

TEST_CASE("a number beyond int, with an exponent, or nan gets the range of its option") {
    const std::string help = fp8lab("--help").out;
    std::set<std::string> verbs = {""};
    const std::regex verb("\n  ([a-z]+) +[A-Z]");
    for (std::sregex_iterator it(help.begin(), help.end(), verb), end; it != end; ++it)
        verbs.insert((*it)[1]);
    std::size_t options = 0;
    for (const std::string& name : verbs) {
        if (!kHasWindow && name == "screenshot") continue;
        for (const std::string& option : integers_of(name.empty() ? help : fp8lab(name + " --help").out)) {
            if (option == "--seed") continue;  // 64 bits: "values that cannot be meant are refused"
            ++options;
            std::string call = call_of(name) + option + " ";
            if (name == "infer" && option == "--calibrate") call = "infer x --weights e4m3 --calibrate ";
            std::set<std::string> ranges;
            for (const char* value :
                 {"2147483648", "-2147483649", "99999999999999999999", "1e3", "nan", "x"}) {
                CAPTURE(call);
                CAPTURE(value);
                const Finished run = fp8lab(call + value);
                CAPTURE(run.err);
                CHECK(run.code == 2);
                const std::string begins = "fp8lab: " + option + ": " + value + " is not in ";
                CHECK(run.err.starts_with(begins));
                CHECK(std::ranges::count(run.err, '\n') == 1);
                ranges.insert(run.err.substr(std::min(begins.size(), run.err.size())));
            }
            CHECK(ranges.size() == 1);
        }
    }
    CHECK(options >= 15);
}

TEST_CASE("a number beyond int gets the sentence of one that an int holds") {
    for (const char* option :
         {"--model transformer --d", "--model transformer --heads", "--steps", "--batch", "--warmup"}) {
        CAPTURE(option);
        const auto sentence = [&](const std::string& value) {
            const std::string err = fp8lab(std::string("train ") + option + " " + value).err;
            const std::size_t at = err.find(value);
            REQUIRE(at != err.npos);
            return err.substr(0, at) + err.substr(at + value.size());
        };
        CHECK(sentence("2147483647") == sentence("2147483648"));
    }
    CHECK(fp8lab("train --lr x").err == "fp8lab: --lr: 'x' is not a number\n");
}
