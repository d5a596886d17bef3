// What a reader's own training may show: the numbers of ten trainings, in texts. Data in assets/runs.csv, which
// scripts/runs.sh makes again; the table of it is assets/docs/runs.md.
//
//   run,recipe,quantity,1,2,3,...          seeds
//   L8,delayed,gap_pct,3.51,3.96,...       a training, one of its recipes, what was measured: with each seed
//
// A text names a number in braces, "ends {runs L8 delayed gap_pct interval} % above BF16": the run, the recipe, the
// quantity, and one of
//   mean, sd          of seeds 1 to 10
//   low, high, range  the smallest, the largest, "2.0 to 4.0"
//   from, to, interval  the 95 % prediction interval, in which one more seed lies with a probability of 95 % where the
//                     values are normal: mean -+ t s sqrt(1.1), t = 2.262 of 9 degrees of freedom
// The last decimal is at most a third of the standard deviation.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace fp8lab {

inline constexpr std::size_t kSeedsOfRuns = 10;  // the first ones; what else a row has is for comparison

struct Spread {
    double mean = 0, sd = 0;   // sd: of a sample, divisor n - 1
    double low = 0, high = 0;  // the smallest and the largest
    double from = 0, to = 0;   // the prediction interval
};
// The statistics of the first kSeedsOfRuns values, which must be there.
Spread spread_of(std::span<const double> values);

class Runs {
  public:
    using Key = std::tuple<std::string, std::string, std::string>;  // run, recipe, quantity

    Runs() = default;
    // Throws input_error with the line: no row, another head, a row of fewer than kSeedsOfRuns numbers, one twice.
    Runs(std::string_view csv, const std::string& where);

    // The values by seed, from seed 1 on; rows in the order of their names.
    const std::map<Key, std::vector<double>>& rows() const { return rows_; }
    // The text with every {runs ...} filled in. Other braces stay. Throws input_error(`where`, ...) where a run,
    // a recipe, a quantity or a word is unknown, or a brace is not closed.
    std::string fill(std::string_view text, const std::string& where) const;

  private:
    std::string number(std::string_view words, const std::string& where) const;
    std::map<Key, std::vector<double>> rows_;
};

// assets/runs.csv, read once.
const Runs& shipped_runs();
// shipped_runs().fill(): for texts that come with the program.
std::string with_runs(std::string_view text);

}  // namespace fp8lab
