// Grades as CSV (RFC 4180). Text that a spreadsheet would read as a formula gets an apostrophe before it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "labs/grading/grade.h"

namespace fp8lab {

// One line each, with its end of line.
std::string grades_head();
std::string grades_row(const Graded& graded);

// One line per student, by name; without a name by file, and for single evidence files by folder.
class GradeTotals {
  public:
    void add(const Graded& graded);
    std::string csv() const;

  private:
    struct Student {
        std::string name, path;
        std::set<std::string> files, exercises, passed;
        int unreadable = 0, predicted = 0, hints = 0, alike = 0;
    };
    std::vector<Student> students_;  // in the order in which they were first seen
    std::map<std::string, std::size_t> by_key_;
};

}  // namespace fp8lab
