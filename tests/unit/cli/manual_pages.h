// What is wrong with a page of the manual (core/lesson/manual/manual.h): its commands, the lines and numbers that it quotes of
// them, its links, and numbers that are of no command.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/lesson/manual/manual.h"

namespace manual_test {

struct Outcome {
    std::vector<std::string> faults;  // a sentence each
    std::set<std::string> skipped;    // what is not there: "torch"
    int commands = 0, lines = 0, numbers = 0;
};

// Runs the page in an empty folder and compares what it quotes; what needs PyTorch only `with_torch`.
Outcome run_page(const fp8lab::ManualPage& page, bool with_torch = false);

// Links of the page that lead nowhere: neither a page of `parts`, nor a lab, nor a term.
std::vector<std::string> dead_links(const fp8lab::ManualPage& page,
                                    const std::vector<fp8lab::ManualPart>& parts);

// Numbers in the words of a page, as it is written, that come from no command and no training: with decimals, above 256, or
// before a unit. Bits, blocks, steps and the like are whole numbers up to 256; what stands in a command or in code is a setting.
std::vector<std::string> loose_numbers(const std::string& markdown);

}  // namespace manual_test
