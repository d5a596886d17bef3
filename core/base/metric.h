// One number of a lab's result, as `run` prints it, exercises judge it and tests read it.
#pragma once

#include <string>

namespace fp8lab {

struct Metric {
    std::string name;  // "sqnr_db"
    double value = 0;
    std::string unit = {};
    std::string text = {};  // set instead of value where the metric is a word
};

}  // namespace fp8lab
