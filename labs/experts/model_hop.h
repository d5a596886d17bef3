// The part "hop" of L18: rows of tokens are sent to their experts and come back. What the cast on the way adds to the error of the
// layer's output (RoutingStudy::hop_error_pct), one model, choices kept.
#pragma once

#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "labs/experts/model_routing.h"

namespace fp8lab::experts {

struct Hop {
    std::string gemm = "mxfp8", send = "mxfp8", back = "bf16";
    bool operator==(const Hop&) const = default;
};
struct HopSpec {
    Hop hop = {};
    int seed = 1;
    bool operator==(const HopSpec&) const = default;
};
struct HopRow {
    Hop hop;
    std::vector<double> error_pct = {};  // of each block
    double mean_pct() const;
};
struct Hops {
    HopSpec spec = {};
    std::vector<HopRow> rows = {};      // the usual ones, and the chosen one where it is none of them
    std::vector<double> gemm_pct = {};  // of the GEMMs alone, sent and returned in BF16
    const HopRow* chosen() const;       // null: not computed
    double added_pct()
        const;  // of the chosen one over its GEMMs alone, per cent of the output's size, mean of the blocks
};

class HopMaker {
  public:
    Hops operator()(const HopSpec& spec);

  private:
    Studies studies_;
    int seed_ = 0;
    std::vector<HopRow> known_;  // of this seed
};

// "MXFP8 GEMMs, sent in BF16, back in BF16".
std::string hop_words(const Hop& hop);
std::string hop_title(const Hops& hops);
// `named`: as changed_figure().
Figure hop_figure(const Hops& hops, bool named = true);

}  // namespace fp8lab::experts
