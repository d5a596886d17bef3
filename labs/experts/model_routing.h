// The part "routing" of L18: which tokens get other experts where layers or the router compute in fewer bits, and what that costs
// (core/inference/experts/routing.h). The models are the shipped ones, assets/models/moe-1 to moe-5.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/inference/experts/routing.h"
#include "labs/table/long.h"

namespace fp8lab::experts {

inline constexpr int kSeeds = 5;  // of the shipped models

struct RoutedSpec {
    std::string layers = "mxfp8", router = "fp32";
    int seed = 1;  // of the model
    bool operator==(const RoutedSpec&) const = default;
};

// Tokens by the margin of their choice: bin i holds margins from 2^(kFirstBin + i) to twice that, the first one also smaller ones.
// Every token counts once in each block.
inline constexpr int kFirstBin = -15, kBins = 15;
struct Margins {
    std::vector<double> tokens = std::vector<double>(kBins), moved = std::vector<double>(kBins);
    double largest_moved = 0;
    // The smallest power of two below which all moved tokens are, or at least 95 % of them; 0: none is moved.
    double all_below = 0, most_below = 0;
};

struct Routed {
    RoutedSpec spec = {};
    std::size_t tokens = 0;  // 0: not computed
    RoutingChange change = {};
    Margins margins = {};
    double margin_below_1_100_pct = 0;
    bool is_reference() const { return spec.layers == "bf16" && spec.router == "fp32"; }
};

struct Pair {
    std::string layers, router;
    bool operator==(const Pair&) const = default;
};
struct PairRow {
    Pair pair;
    std::vector<double> changed_pct = {};  // of each seed
    double mean() const;
    double least() const;
    double most() const;
};
struct Pairs {
    Pair chosen = {};
    std::vector<PairRow> rows = {};  // the usual pairs, and the chosen one where it is none of them
    bool is_complete() const { return !rows.empty() && rows.back().changed_pct.size() == kSeeds; }
};

// Studies of the shipped models, each made once; used by one thread.
class Studies {
  public:
    RoutingStudy& of(int seed);

  private:
    std::map<int, std::unique_ptr<RoutingStudy>> all_;
};

class RoutingMaker {
  public:
    Routed operator()(const RoutedSpec& spec);

  private:
    Studies studies_;
};

class PairsMaker {
  public:
    Pairs operator()(const Pair& chosen, const table::Told<Pairs>& told);

  private:
    Studies studies_;
    std::vector<PairRow> known_;
};

// "MXFP8 layers, router in FP32".
std::string pair_words(const Pair& pair);
Pairs usual_pairs();  // without the chosen one, as recorded: for the home card, before anything is computed

std::string changed_title(const Pairs& pairs);
std::string margin_title(const Routed& routed);
// `named`: each bar has its names beside it; the stage has them in columns.
Figure changed_figure(const Pairs& pairs, const Routed& routed, bool named = true);
Figure margin_figure(const Routed& routed);

}  // namespace fp8lab::experts
